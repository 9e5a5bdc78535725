#include "kt.h"

#define SUFFIX_LEAF 0x0b
#define SUFFIX_SINGLE 0x07 /* of the only node */
#define SUFFIX_LAST 0x06   /* of the node that has leaves */

void kt_init(struct kt *kt, const struct keccak *keccak, unsigned bits, void *buffer,
             size_t buffer_size)
{
    const struct sponge_kind leaf = sponge_turboshake(bits, SUFFIX_LEAF),
                             single = sponge_turboshake(bits, SUFFIX_SINGLE);

    tree_init(&kt->tree, keccak, &leaf, KT_LEAF_BYTES, bits / 4, buffer, buffer_size);
    sponge_init(&kt->tree.top, keccak, &single);
    kt->head = KT_LEAF_BYTES;
    kt->has_leaves = 0;
    kt->tail_size = kt->tail_done = 0;
}

/* The number's bytes, the highest first and none for 0, then how many they are. */
static size_t length_encode(unsigned char to[9], uint64_t number)
{
    size_t size = 0;

    while (size < 8 && number >> 8 * size != 0)
        size++;
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(number >> 8 * (size - 1 - i));
    to[size] = (unsigned char)size;
    return size + 1;
}

static void leaves_begin(struct kt *kt)
{
    static const unsigned char mark[8] = {3};

    sponge_absorb(&kt->tree.top, mark, sizeof mark);
    kt->tree.top.suffix = SUFFIX_LAST;
    kt->has_leaves = 1;
}

size_t kt_absorb(struct kt *kt, const void *bytes, size_t size, size_t *blocks)
{
    const size_t rate = kt->tree.top.rate;
    size_t some = size < kt->head ? size : kt->head;

    if (size == 0 || *blocks == 0)
        return 0;
    if (some > 0) {
        if (some / rate >= *blocks)
            some = *blocks * rate;
        sponge_absorb(&kt->tree.top, bytes, some);
        kt->head -= some;
        *blocks -= some / rate;
    }
    if (kt->head > 0 || some == size)
        return some;
    if (!kt->has_leaves)
        leaves_begin(kt);
    return some + tree_absorb(&kt->tree, (const unsigned char *)bytes + some, size - some, blocks);
}

int kt_end(struct kt *kt, uint64_t custom_size, size_t *blocks)
{
    static const unsigned char mark[2] = {0xff, 0xff};
    unsigned char bytes[9];

    if (kt->tail_size == 0)
        kt->tail_size = (unsigned char)length_encode(kt->tail, custom_size);
    while (kt->tail_done < kt->tail_size) {
        if (*blocks == 0)
            return 0;
        kt->tail_done = (unsigned char)(kt->tail_done +
                                        kt_absorb(kt, kt->tail + kt->tail_done,
                                                  (size_t)(kt->tail_size - kt->tail_done), blocks));
    }
    if (!tree_end(&kt->tree, blocks))
        return 0;
    if (kt->has_leaves) {
        sponge_absorb(&kt->tree.top, bytes, length_encode(bytes, kt->tree.leaves));
        sponge_absorb(&kt->tree.top, mark, sizeof mark);
    }
    return 1;
}

void kt_squeeze(struct kt *kt, void *to, size_t size)
{
    sponge_squeeze(&kt->tree.top, to, size);
}
