/* One state in plain C. The file that includes this is compiled for an instruction set, and what
 * the compiler makes of it is the fastest there with general registers: with BMI a turn needs no
 * copy and and-not is one instruction. */
#ifndef SHA3_KECCAK_ONE_H
#define SHA3_KECCAK_ONE_H

#include "keccak_round.h"

KECCAK_ROUND(round_of_one, uint64_t)

static inline void absorb_one(uint64_t *lanes, unsigned rounds, size_t rate,
                              const unsigned char *from, size_t blocks)
{
    uint64_t a[KECCAK_LANES], e[KECCAK_LANES];

    memcpy(a, lanes, sizeof a);
    for (; blocks > 0; blocks--) {
        for (size_t i = 0; i < rate / 8; i++)
            a[i] ^= lane_load(from + 8 * i);
        if (rate > 0)
            from += rate;
        for (unsigned r = 24 - rounds; r < 24; r += 2) {
            round_of_one(e, a, keccak_constants[r]);
            round_of_one(a, e, keccak_constants[r + 1]);
        }
    }
    memcpy(lanes, a, sizeof a);
}

#endif
