/* The round in C with gcc's vectors, so that one text serves a state and several abreast: a word is
 * a uint64_t, or a vector of them, one of each state. */
#ifndef SHA3_KECCAK_ROUND_H
#define SHA3_KECCAK_ROUND_H

#include "bytes.h"
#include "keccak.h"

#define KECCAK_TURN(lane, by) ((by) == 0 ? (lane) : (lane) << (by) | (lane) >> ((64 - (by)) & 63))

/* A row of the result comes from five lanes, one of each column: their numbers, columns and
 * turns. */
#define KECCAK_ROW(y, l0, x0, r0, l1, x1, r1, l2, x2, r2, l3, x3, r3, l4, x4, r4) \
    b0 = KECCAK_TURN(a[l0] ^ d##x0, r0);                                          \
    b1 = KECCAK_TURN(a[l1] ^ d##x1, r1);                                          \
    b2 = KECCAK_TURN(a[l2] ^ d##x2, r2);                                          \
    b3 = KECCAK_TURN(a[l3] ^ d##x3, r3);                                          \
    b4 = KECCAK_TURN(a[l4] ^ d##x4, r4);                                          \
    e[5 * (y)] = b0 ^ (~b1 & b2);                                                 \
    e[5 * (y) + 1] = b1 ^ (~b2 & b3);                                             \
    e[5 * (y) + 2] = b2 ^ (~b3 & b4);                                             \
    e[5 * (y) + 3] = b3 ^ (~b4 & b0);                                             \
    e[5 * (y) + 4] = b4 ^ (~b0 & b1)

/* Defines a function for one round, from a to e. */
#define KECCAK_ROUND(name, word)                                               \
    static inline __attribute__((always_inline)) void name(                    \
        word *restrict e, const word *restrict a, uint64_t constant)           \
    {                                                                          \
        const word c0 = a[0] ^ a[5] ^ a[10] ^ a[15] ^ a[20];                   \
        const word c1 = a[1] ^ a[6] ^ a[11] ^ a[16] ^ a[21];                   \
        const word c2 = a[2] ^ a[7] ^ a[12] ^ a[17] ^ a[22];                   \
        const word c3 = a[3] ^ a[8] ^ a[13] ^ a[18] ^ a[23];                   \
        const word c4 = a[4] ^ a[9] ^ a[14] ^ a[19] ^ a[24];                   \
        const word d0 = c4 ^ KECCAK_TURN(c1, 1), d1 = c0 ^ KECCAK_TURN(c2, 1), \
                   d2 = c1 ^ KECCAK_TURN(c3, 1), d3 = c2 ^ KECCAK_TURN(c4, 1), \
                   d4 = c3 ^ KECCAK_TURN(c0, 1);                               \
        word b0, b1, b2, b3, b4;                                               \
        KECCAK_ROW(0, 0, 0, 0, 6, 1, 44, 12, 2, 43, 18, 3, 21, 24, 4, 14);     \
        e[0] ^= constant;                                                      \
        KECCAK_ROW(1, 3, 3, 28, 9, 4, 20, 10, 0, 3, 16, 1, 45, 22, 2, 61);     \
        KECCAK_ROW(2, 1, 1, 1, 7, 2, 6, 13, 3, 25, 19, 4, 8, 20, 0, 18);       \
        KECCAK_ROW(3, 4, 4, 27, 5, 0, 36, 11, 1, 10, 17, 2, 15, 23, 3, 56);    \
        KECCAK_ROW(4, 2, 2, 62, 8, 3, 55, 14, 4, 39, 15, 0, 41, 21, 1, 2);     \
    }

#endif
