/* Many messages, of any lengths, hashed abreast with the same algorithm.
 *
 *     struct hash_many m;                   about 4 KiB
 *     hash_many_init(&m, keccak, &sponge_sha3_256, 32);
 *     for (;;) {
 *         while (there is a message && hash_many_put(&m, bytes, size, to))
 *             go on to the next;
 *         if (hash_many_busy(&m) == 0)
 *             break;                        all are hashed
 *         if (blocks == 0)
 *             return;                       go on later, with the same m
 *         hash_many_step(&m, &blocks);
 *     }
 *
 * A message stays where it is, and so does `to`, until nothing is busy. The fewer messages are at
 * hand the narrower the permutation: 8 abreast, 4, or one. Blocks count as in tree.h. */
#ifndef SHA3_HASH_MANY_H
#define SHA3_HASH_MANY_H

#include "sponge.h"

/* One message in the works. */
struct hash_many_slot {
    const unsigned char *from;
    size_t blocks;     /* whole ones that are left before the last */
    unsigned char *to; /* NULL: the slot is free */
    int last;          /* from is the last block */
    unsigned char padded[200];
};

struct hash_many {
    uint64_t lanes[KECCAK_LANES * KECCAK_ABREAST_MAX];
    const struct keccak *keccak;
    struct sponge_kind kind;
    size_t digest;
    unsigned width; /* states in lanes: 8, 4 or 1 */
    unsigned busy;
    struct hash_many_slot slots[KECCAK_ABREAST_MAX];
};

#pragma GCC visibility push(hidden)

/* The digest has at most kind->rate bytes: one squeeze, for the extendable ones too. */
void hash_many_init(struct hash_many *many, const struct keccak *keccak,
                    const struct sponge_kind *kind, size_t digest);

/* Returns 0 when there is no slot for it: then step. */
int hash_many_put(struct hash_many *many, const void *bytes, size_t size, void *to);

/* Hashes until a message is done, or for about *blocks blocks, and takes off those that it used.
 * Does nothing when nothing is busy. */
void hash_many_step(struct hash_many *many, size_t *blocks);

#pragma GCC visibility pop

static inline unsigned hash_many_busy(const struct hash_many *many)
{
    return many->busy;
}

#endif
