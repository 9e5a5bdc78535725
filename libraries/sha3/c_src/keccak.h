/* The permutation Keccak-p[1600] (FIPS 202), of one state and of several abreast, in as many
 * implementations as there are instruction sets for it.
 *
 *     const struct keccak *keccak = keccak_choose(getenv("TAME_SHA3_IMPL"));
 *
 * A state is 25 lanes of 64 bits; lane x + 5y is the standard's A[x, y]. Abreast, the states are
 * interleaved: lane l of state s of 8 is at [8 * l + s].
 *
 * All functions take the same time for any bytes and any state: no branch and no index comes from
 * them. They keep nothing and may run on any number of threads. */
#ifndef SHA3_KECCAK_H
#define SHA3_KECCAK_H

#include <stddef.h>
#include <stdint.h>

#define KECCAK_LANES 25
#define KECCAK_ABREAST_MAX 8

/* A permutation abreast takes about as long as that number of permutations of one state. */
#define KECCAK_ABREAST_COST 2

#pragma GCC visibility push(hidden)

/* Absorbs `blocks` blocks of `rate` bytes from each of that number of inputs into as many states: a block
 * is XORed into the state, then the state is permuted. The rounds are the last 24 or 12 of the 24;
 * the rate is a multiple of 8 below 200. With rate 0 nothing is read, and each block is a bare
 * permutation. */
typedef void keccak_absorb(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *from,
                           size_t blocks);
typedef void keccak_absorb_many(uint64_t *lanes, unsigned rounds, size_t rate,
                                const unsigned char *const *from, size_t blocks);

struct keccak {
    const char *name;
    unsigned abreast;      /* how many at once are faster than one by one: 8, 4, or 1: none are */
    keccak_absorb *absorb; /* one state */
    keccak_absorb_many *four; /* 4 states abreast, 100 lanes, 4 inputs */
    keccak_absorb_many *eight;
};

/* The fastest implementation for this processor and operating system, or the one with that name:
 * "portable", "avx2" or "avx512". NULL: this machine or this build does not have that one. */
const struct keccak *keccak_choose(const char *forced);

/* For keccak_choose and tests. The last two are only in a build for x86-64. */
extern const struct keccak keccak_portable, keccak_avx2, keccak_avx512;

extern const uint64_t keccak_constants[24]; /* of the rounds */

#pragma GCC visibility pop

static inline void keccak_permute(const struct keccak *keccak, uint64_t lanes[KECCAK_LANES],
                                  unsigned rounds)
{
    keccak->absorb(lanes, rounds, 0, NULL, 1);
}

#endif
