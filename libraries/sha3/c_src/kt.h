/* KangarooTwelve (RFC 9861): KT128 and KT256. TurboSHAKE, which it is made of, is a sponge:
 *
 *     const struct sponge_kind kind = sponge_turboshake(128, 0x1f);
 *     sponge_init(&s, keccak, &kind);
 *
 * KT128 of a message with a customization string, which may be empty:
 *
 *     struct kt kt;                         about 3 KiB
 *     kt_init(&kt, keccak, 128, buffer, TREE_BUFFER_BYTES);
 *     done += kt_absorb(&kt, bytes + done, size - done, &blocks);    until all are done,
 *     ...                                                           then the string in the same way
 *     ... kt_end(&kt, custom_size, &blocks)                          until it returns 1
 *     kt_squeeze(&kt, digest, 32);                                   any number of times
 *
 * See tree.h for blocks and for the buffer. */
#ifndef SHA3_KT_H
#define SHA3_KT_H

#include "tree.h"

#define KT_LEAF_BYTES 8192

struct kt {
    struct tree tree;
    size_t head; /* bytes which the last node takes itself before the first leaf */
    int has_leaves;
    unsigned char tail[9]; /* the size of the customization string, once kt_end has begun */
    unsigned char tail_size, tail_done;
};

#pragma GCC visibility push(hidden)

/* Bits are 128 or 256. */
void kt_init(struct kt *kt, const struct keccak *keccak, unsigned bits, void *buffer,
             size_t buffer_size);

/* As tree_absorb. */
size_t kt_absorb(struct kt *kt, const void *bytes, size_t size, size_t *blocks);

/* Returns 1 when it is done, 0 to be called again with the same size and more blocks. */
int kt_end(struct kt *kt, uint64_t custom_size, size_t *blocks);

void kt_squeeze(struct kt *kt, void *to, size_t size);

#pragma GCC visibility pop

#endif
