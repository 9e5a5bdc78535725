#include "parallel_hash.h"
#include "sp800_185.h"

void parallel_hash_init(struct parallel_hash *hash, const struct keccak *keccak, unsigned bits,
                        size_t leaf_size, const void *custom, size_t custom_size, void *buffer,
                        size_t buffer_size)
{
    unsigned char bytes[SP800_185_NUMBER_MAX];
    struct sponge *top = &hash->tree.top;

    tree_init(&hash->tree, keccak, bits == 128 ? &sponge_shake128 : &sponge_shake256, leaf_size,
              bits / 4, buffer, buffer_size);
    cshake_init(top, keccak, bits, "ParallelHash", 12, custom, custom_size);
    sponge_absorb(top, bytes, left_encode(bytes, leaf_size));
}

size_t parallel_hash_absorb(struct parallel_hash *hash, const void *bytes, size_t size,
                            size_t *blocks)
{
    return tree_absorb(&hash->tree, bytes, size, blocks);
}

int parallel_hash_end(struct parallel_hash *hash, uint64_t digest_size, size_t *blocks)
{
    unsigned char bytes[SP800_185_NUMBER_MAX];
    struct sponge *top = &hash->tree.top;

    if (!tree_end(&hash->tree, blocks))
        return 0;
    sponge_absorb(top, bytes, right_encode(bytes, hash->tree.leaves));
    sponge_absorb(top, bytes, right_encode(bytes, digest_size * 8));
    return 1;
}

void parallel_hash_squeeze(struct parallel_hash *hash, void *to, size_t size)
{
    sponge_squeeze(&hash->tree.top, to, size);
}
