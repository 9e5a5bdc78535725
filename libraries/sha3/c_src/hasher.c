#include "hasher.h"

#include <stdlib.h>

/* Twice what sponge_* and the permutation take, at -O2. */
#define WIPED_STACK_BYTES 1536

/* The permutation works on a copy on the stack, and a scheduler that has nothing to do leaves it
 * there. From what it was at the key or at the digest anybody makes MACs. Called where those were
 * called, so that it has their stack. The others' states are worth no 20 ns. */
static __attribute__((noinline)) void wipe_stack(void)
{
    unsigned char below[WIPED_STACK_BYTES];

    wipe(below, sizeof below);
}

static int open_tree(struct hasher *hasher, const struct keccak *keccak,
                     const struct hasher_spec *spec)
{
    /* Freed by hasher_close. */
    struct hasher_tree *tree = malloc(sizeof *tree + spec->custom.size);

    if (tree == NULL)
        return 0;
    hasher->tree = tree;
    tree->custom_size = tree->custom_done = 0;
    if (spec->form == HASHER_PARALLEL) {
        parallel_hash_init(&tree->of.parallel, keccak, spec->bits, spec->leaf_size,
                           spec->custom.bytes, spec->custom.size, tree->buffer,
                           sizeof tree->buffer);
        return 1;
    }
    kt_init(&tree->of.kt, keccak, spec->bits, tree->buffer, sizeof tree->buffer);
    tree->custom_size = spec->custom.size;
    if (spec->custom.size > 0)
        memcpy(tree->custom, spec->custom.bytes, spec->custom.size);
    return 1;
}

int hasher_open(struct hasher *hasher, const struct keccak *keccak, const struct hasher_spec *spec)
{
    hasher->form = spec->form;
    hasher->extendable = spec->extendable;
    hasher->digest = 0;
    hasher->in_between = 0;
    hasher->tree = NULL;
    switch (spec->form) {
    case HASHER_SPONGE:
        sponge_open(&hasher->sponge, keccak, &spec->kind);
        hasher->digest = spec->kind.digest;
        return 1;
    case HASHER_CSHAKE:
        cshake_init(&hasher->sponge, keccak, spec->bits, spec->name.bytes, spec->name.size,
                    spec->custom.bytes, spec->custom.size);
        return 1;
    case HASHER_KMAC:
        kmac_init(&hasher->sponge, keccak, spec->bits, spec->key.bytes, spec->key.size,
                  spec->custom.bytes, spec->custom.size);
        wipe_stack();
        return 1;
    case HASHER_KT:
    case HASHER_PARALLEL:
        break;
    }
    return open_tree(hasher, keccak, spec);
}

static size_t absorb_tree(struct hasher *hasher, const unsigned char *bytes, size_t size,
                          size_t *blocks)
{
    struct hasher_tree *tree = hasher->tree;
    size_t done;

    if (hasher->form == HASHER_KT)
        done = kt_absorb(&tree->of.kt, bytes, size, blocks);
    else
        done = parallel_hash_absorb(&tree->of.parallel, bytes, size, blocks);
    hasher->in_between = done < size;
    return done;
}

size_t hasher_absorb(struct hasher *hasher, const unsigned char *bytes, size_t size, size_t *blocks)
{
    const size_t rate = hasher->sponge.rate;
    size_t whole;

    if (hasher->tree != NULL)
        return absorb_tree(hasher, bytes, size, blocks);
    whole = size < rate ? 0 : size / rate; /* a division takes 5 ns */
    if (whole >= *blocks) {
        whole = *blocks;
        size = whole * rate;
    }
    sponge_absorb(&hasher->sponge, bytes, size);
    if (hasher->form == HASHER_KMAC)
        wipe_stack();
    *blocks -= whole;
    return size;
}

int hasher_end(struct hasher *hasher, size_t digest_size, size_t *blocks)
{
    struct hasher_tree *tree = hasher->tree;

    switch (hasher->form) {
    case HASHER_SPONGE:
    case HASHER_CSHAKE:
        return 1;
    case HASHER_KMAC:
        kmac_end(&hasher->sponge, hasher->extendable ? KMAC_XOF : digest_size);
        wipe_stack();
        return 1;
    case HASHER_PARALLEL:
        return parallel_hash_end(&tree->of.parallel,
                                 hasher->extendable ? PARALLEL_HASH_XOF : digest_size, blocks);
    case HASHER_KT:
        break;
    }
    while (tree->custom_done<tree->custom_size && * blocks> 0)
        tree->custom_done += kt_absorb(&tree->of.kt, tree->custom + tree->custom_done,
                                       tree->custom_size - tree->custom_done, blocks);
    return tree->custom_done == tree->custom_size &&
           kt_end(&tree->of.kt, tree->custom_size, blocks);
}

void hasher_squeeze(struct hasher *hasher, unsigned char *to, size_t size)
{
    if (hasher->form == HASHER_KT)
        kt_squeeze(&hasher->tree->of.kt, to, size);
    else if (hasher->form == HASHER_PARALLEL)
        parallel_hash_squeeze(&hasher->tree->of.parallel, to, size);
    else
        sponge_squeeze(&hasher->sponge, to, size);
    if (hasher->form == HASHER_KMAC)
        wipe_stack();
}

int hasher_clone(struct hasher *to, const struct hasher *from)
{
    const size_t size = from->tree == NULL ? 0 : sizeof *from->tree + from->tree->custom_size;

    *to = *from;
    if (from->tree == NULL)
        return 1;
    to->tree = malloc(size); /* freed by hasher_close */
    if (to->tree == NULL)
        return 0;
    memcpy(to->tree, from->tree, size);
    tree_unshare(to->form == HASHER_KT ? &to->tree->of.kt.tree : &to->tree->of.parallel.tree,
                 to->tree->buffer);
    return 1;
}

void hasher_close(struct hasher *hasher)
{
    if (hasher->tree != NULL) {
        wipe(hasher->tree, sizeof *hasher->tree + hasher->tree->custom_size);
        free(hasher->tree);
    }
    wipe(hasher, sizeof *hasher);
}
