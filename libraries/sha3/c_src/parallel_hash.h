/* ParallelHash128 and 256 (SP 800-185), of a fixed size or extendable.
 *
 *     struct parallel_hash p;               about 3 KiB
 *     parallel_hash_init(&p, keccak, 128, 8192, custom, custom_size, buffer, TREE_BUFFER_BYTES);
 *     done += parallel_hash_absorb(&p, bytes + done, size - done, &blocks);     until all are done
 *     ... parallel_hash_end(&p, 32, &blocks)                                    until it returns 1
 *     parallel_hash_squeeze(&p, digest, 32);                                    any number of times
 *
 * See tree.h for blocks and for the buffer. */
#ifndef SHA3_PARALLEL_HASH_H
#define SHA3_PARALLEL_HASH_H

#include "tree.h"

#define PARALLEL_HASH_XOF 0

struct parallel_hash {
    struct tree tree;
};

#pragma GCC visibility push(hidden)

/* Bits are 128 or 256, leaf_size is the standard's B in bytes, and not 0. Works for custom_size /
 * 136 permutations. */
void parallel_hash_init(struct parallel_hash *hash, const struct keccak *keccak, unsigned bits,
                        size_t leaf_size, const void *custom, size_t custom_size, void *buffer,
                        size_t buffer_size);

/* As tree_absorb. */
size_t parallel_hash_absorb(struct parallel_hash *hash, const void *bytes, size_t size,
                            size_t *blocks);

/* After the last byte, with the size of the digest in bytes, or PARALLEL_HASH_XOF: any. Returns 1
 * when it is done, 0 to be called again with more blocks. */
int parallel_hash_end(struct parallel_hash *hash, uint64_t digest_size, size_t *blocks);

void parallel_hash_squeeze(struct parallel_hash *hash, void *to, size_t size);

#pragma GCC visibility pop

#endif
