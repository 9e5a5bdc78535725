#include "tree.h"

void tree_init(struct tree *tree, const struct keccak *keccak, const struct sponge_kind *leaf_kind,
               size_t leaf_size, size_t value_size, void *buffer, size_t buffer_size)
{
    const size_t room = buffer == NULL ? 0 : buffer_size / leaf_size;

    tree->leaf_at = 0;
    tree->leaf_kind = *leaf_kind;
    tree->leaf_size = leaf_size;
    tree->value_size = value_size;
    tree->leaves = 0;
    tree->buffer = buffer;
    tree->buffer_leaves = room < keccak->abreast ? (unsigned)room : keccak->abreast;
    tree->filled = tree->taken = 0;
    tree->group.leaves = 0;
    sponge_init(&tree->leaf, keccak, leaf_kind);
}

void tree_unshare(struct tree *copy, void *buffer)
{
    if (copy->filled > 0)
        memcpy(buffer, copy->buffer, copy->filled);
    copy->buffer = buffer;
}

static void spend(size_t *blocks, size_t used)
{
    *blocks -= used < *blocks ? used : *blocks;
}

static void leaf_is_done(struct tree *tree, const unsigned char *value, size_t *blocks)
{
    const unsigned at = tree->top.at;

    sponge_absorb(&tree->top, value, tree->value_size);
    tree->leaves++;
    spend(blocks, tree->top.at < at); /* it is less than a block: 0 or 1 permutations */
}

/* ---- one leaf after the other ---- */

static void leaf_end(struct tree *tree, size_t *blocks)
{
    unsigned char value[64];

    sponge_squeeze(&tree->leaf, value, tree->value_size);
    sponge_init(&tree->leaf, tree->leaf.keccak, &tree->leaf_kind);
    tree->leaf_at = 0;
    spend(blocks, 1);
    leaf_is_done(tree, value, blocks);
}

/* Returns how many bytes it took: no more than the leaf wants. */
static size_t leaf_absorb(struct tree *tree, const unsigned char *bytes, size_t size,
                          size_t *blocks)
{
    const size_t wants = tree->leaf_size - tree->leaf_at;

    if (size > wants)
        size = wants;
    if (size / tree->leaf_kind.rate >= *blocks)
        size = *blocks * tree->leaf_kind.rate;
    sponge_absorb(&tree->leaf, bytes, size);
    spend(blocks, size / tree->leaf_kind.rate);
    tree->leaf_at += size;
    if (tree->leaf_at == tree->leaf_size)
        leaf_end(tree, blocks);
    return size;
}

/* ---- leaves abreast ---- */

static void group_begin(struct tree *tree, unsigned leaves, int buffered)
{
    struct tree_group *group = &tree->group;

    group->leaves = leaves;
    group->width = leaves > 4 ? 8 : 4;
    group->done = 0;
    group->buffered = buffered;
    memset(group->lanes, 0, sizeof group->lanes);
}

static void group_absorb(struct tree *tree, const unsigned char *const *from, size_t blocks)
{
    const struct keccak *keccak = tree->leaf.keccak;

    (tree->group.width == 8 ? keccak->eight : keccak->four)(
        tree->group.lanes, tree->leaf_kind.rounds, tree->leaf_kind.rate, from, blocks);
}

/* The last block of each leaf, padded. */
static void group_pad(struct tree *tree, const unsigned char *bytes)
{
    unsigned char padded[KECCAK_ABREAST_MAX][200];
    const unsigned char *from[KECCAK_ABREAST_MAX];
    const size_t rate = tree->leaf_kind.rate, left = tree->leaf_size - tree->group.done;

    for (unsigned i = 0; i < tree->group.width; i++) {
        from[i] = padded[i < tree->group.leaves ? i : 0];
        if (i >= tree->group.leaves)
            continue;
        memset(padded[i], 0, rate);
        memcpy(padded[i], bytes + i * tree->leaf_size + tree->group.done, left);
        padded[i][left] = tree->leaf_kind.suffix;
        padded[i][rate - 1] ^= 0x80;
    }
    group_absorb(tree, from, 1);
}

static void group_end(struct tree *tree, size_t *blocks)
{
    const unsigned width = tree->group.width;
    unsigned char value[64];

    for (unsigned i = 0; i < tree->group.leaves; i++) {
        for (unsigned l = 0; l < tree->value_size / 8; l++)
            lane_store_some(value + (size_t)8 * l, tree->group.lanes[width * l + i], 8);
        leaf_is_done(tree, value, blocks);
    }
    tree->group.leaves = 0;
}

/* Goes on with the group, whose leaves are at bytes. Returns 1 when it is done. */
static int group_step(struct tree *tree, const unsigned char *bytes, size_t *blocks)
{
    struct tree_group *group = &tree->group;
    const unsigned char *from[KECCAK_ABREAST_MAX];
    const size_t rate = tree->leaf_kind.rate, left = (tree->leaf_size - group->done) / rate;
    size_t some = (*blocks - 1) / KECCAK_ABREAST_COST + 1; /* there are some */

    if (some > left)
        some = left;
    if (some > 0) {
        for (unsigned i = 0; i < group->width; i++)
            from[i] = bytes + (i < group->leaves ? i * tree->leaf_size : 0) + group->done;
        group_absorb(tree, from, some);
        group->done += some * rate;
        spend(blocks, some * KECCAK_ABREAST_COST);
    }
    if (tree->leaf_size - group->done >= rate || *blocks == 0)
        return 0;
    group_pad(tree, bytes);
    spend(blocks, KECCAK_ABREAST_COST);
    group_end(tree, blocks);
    return 1;
}

/* ---- the message ---- */

static void buffer_is_hashed(struct tree *tree)
{
    if (tree->taken == tree->filled)
        tree->taken = tree->filled = 0;
}

/* What begins next, with that number of bytes at hand; the tree is between leaves. Returns how many bytes
 * went to the buffer. */
static size_t begin(struct tree *tree, const unsigned char *bytes, size_t size)
{
    const unsigned abreast = tree->leaf.keccak->abreast;
    const size_t room = tree->buffer_leaves * tree->leaf_size - tree->filled,
                 whole = size / tree->leaf_size;

    if (tree->filled == 0 && abreast > 1 && whole >= (tree->buffer_leaves < 2 ? 2 : abreast)) {
        group_begin(tree, whole < abreast ? (unsigned)whole : abreast, 0);
        return 0;
    }
    if (tree->buffer_leaves < 2)
        return 0;
    if (size > room)
        size = room;
    memcpy(tree->buffer + tree->filled, bytes, size);
    tree->filled += size;
    if (size == room)
        group_begin(tree, tree->buffer_leaves, 1);
    return size;
}

size_t tree_absorb(struct tree *tree, const void *bytes, size_t size, size_t *blocks)
{
    const unsigned char *const first = bytes, *const end = first + size, *at = first;

    while (at<end && * blocks> 0) {
        if (tree->group.leaves > 0) {
            const int buffered = tree->group.buffered;
            const size_t leaves_size = tree->group.leaves * tree->leaf_size;

            if (!group_step(tree, buffered ? tree->buffer : at, blocks))
                break;
            if (buffered)
                tree->filled = 0;
            else
                at += leaves_size;
            continue;
        }
        if (tree->leaf_at == 0)
            at += begin(tree, at, (size_t)(end - at));
        if (tree->group.leaves == 0 && tree->filled == 0)
            at += leaf_absorb(tree, at, (size_t)(end - at), blocks);
    }
    return (size_t)(at - first);
}

int tree_end(struct tree *tree, size_t *blocks)
{
    while (tree->group.leaves > 0 || tree->taken < tree->filled) {
        const size_t left = tree->filled - tree->taken, whole = left / tree->leaf_size;

        if (*blocks == 0)
            return 0;
        if (tree->group.leaves > 0) {
            const size_t leaves_size = tree->group.leaves * tree->leaf_size;

            if (!group_step(tree, tree->buffer + tree->taken, blocks))
                return 0;
            tree->taken += leaves_size;
        } else if (whole > 1 && tree->leaf_at == 0) {
            group_begin(tree, (unsigned)whole, 1);
        } else {
            tree->taken += leaf_absorb(tree, tree->buffer + tree->taken, left, blocks);
        }
        buffer_is_hashed(tree);
    }
    if (tree->leaf_at > 0)
        leaf_end(tree, blocks);
    return 1;
}
