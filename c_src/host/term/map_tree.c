/* Large maps that change, see map_tree.h. */
#include <string.h>

#include "term/hash.h"
#include "term/map_tree.h"
#include "term/order.h"

#define WAYS 16u
#define WAY_BITS 4u

struct leaf {
    term pair[2];
    uint64_t hash;
    const struct leaf *next; /* another key with all of the same hash */
};

/* Bit 0 of a map_tree: a leaf. What an environment allocates is aligned to 16 bytes. */
struct node {
    map_tree ways[WAYS];
};

static map_tree of_leaf(const struct leaf *leaf)
{
    return (map_tree)leaf | 1;
}

static int is_leaf(map_tree tree)
{
    return tree & 1;
}

static const struct leaf *leaf_of(map_tree tree)
{
    return (const struct leaf *)(tree - 1);
}

/* Two hashes that are not the same part at one of the 16 levels. */
static map_tree *way(struct node *node, uint64_t hash, unsigned level)
{
    return &node->ways[hash >> WAY_BITS * level & (WAYS - 1)];
}

static struct node *node_copy(ErlNifEnv *env, map_tree from)
{
    struct node *node = env_alloc(env, sizeof *node);

    if (from == 0)
        memset(node, 0, sizeof *node);
    else
        memcpy(node, (const void *)from, sizeof *node);
    return node;
}

/* The leaves of a hash without key. */
static const struct leaf *leaves_without(ErlNifEnv *env, const struct leaf *leaf, term key)
{
    const struct leaf *rest = NULL;

    for (; leaf != NULL; leaf = leaf->next) {
        if (term_identical(leaf->pair[0], key))
            continue;
        struct leaf *copy = env_alloc(env, sizeof *copy);
        *copy = *leaf;
        copy->next = rest;
        rest = copy;
    }
    return rest;
}

/* mine: no other map has these nodes yet, so that they are written in place. */
static map_tree put(ErlNifEnv *env, map_tree tree, unsigned level, struct leaf *leaf, int mine)
{
    struct node *node;

    if (tree == 0)
        return of_leaf(leaf);
    if (is_leaf(tree)) {
        if (leaf_of(tree)->hash == leaf->hash) {
            leaf->next = leaves_without(env, leaf_of(tree), leaf->pair[0]);
            return of_leaf(leaf);
        }
        node = node_copy(env, 0);
        *way(node, leaf_of(tree)->hash, level) = tree;
    } else {
        node = mine ? (struct node *)tree : node_copy(env, tree);
    }
    map_tree *below = way(node, leaf->hash, level);
    *below = put(env, *below, level + 1, leaf, mine);
    return (map_tree)node;
}

static map_tree put_pair(ErlNifEnv *env, map_tree tree, term key, term value, int mine)
{
    struct leaf *leaf = env_alloc(env, sizeof *leaf);

    *leaf = (struct leaf){{key, value}, term_hash(key, 0), NULL};
    return put(env, tree, 0, leaf, mine);
}

map_tree map_tree_put(ErlNifEnv *env, map_tree tree, term key, term value)
{
    return put_pair(env, tree, key, value, 0);
}

map_tree map_tree_new(ErlNifEnv *env, const term *pairs, size_t len)
{
    map_tree tree = 0;

    for (size_t i = 0; i < len; i++)
        tree = put_pair(env, tree, pairs[2 * i], pairs[2 * i + 1], 1);
    return tree;
}

/* The leaves of hash, or NULL. */
static const struct leaf *leaves(map_tree tree, uint64_t hash)
{
    for (unsigned level = 0; tree != 0 && !is_leaf(tree); level++)
        tree = *way((struct node *)tree, hash, level);
    return tree == 0 || leaf_of(tree)->hash != hash ? NULL : leaf_of(tree);
}

const term *map_tree_find(map_tree tree, term key)
{
    const struct leaf *leaf = leaves(tree, term_hash(key, 0));

    while (leaf != NULL && !term_identical(leaf->pair[0], key))
        leaf = leaf->next;
    return leaf == NULL ? NULL : &leaf->pair[1];
}

/* A node may be left with one way, or with none: their number is that of the pairs there were. */
static map_tree without(ErlNifEnv *env, map_tree tree, unsigned level, term key, uint64_t hash)
{
    if (is_leaf(tree)) {
        const struct leaf *rest = leaves_without(env, leaf_of(tree), key);
        return rest == NULL ? 0 : of_leaf(rest);
    }
    struct node *node = node_copy(env, tree);
    map_tree *below = way(node, hash, level);
    *below = without(env, *below, level + 1, key, hash);
    return (map_tree)node;
}

map_tree map_tree_remove(ErlNifEnv *env, map_tree tree, term key)
{
    return without(env, tree, 0, key, term_hash(key, 0));
}

term *map_tree_pairs(map_tree tree, term *to)
{
    if (tree == 0)
        return to;
    if (!is_leaf(tree)) {
        for (unsigned i = 0; i < WAYS; i++)
            to = map_tree_pairs(((struct node *)tree)->ways[i], to);
        return to;
    }
    for (const struct leaf *leaf = leaf_of(tree); leaf != NULL; leaf = leaf->next, to += 2)
        memcpy(to, leaf->pair, sizeof leaf->pair);
    return to;
}
