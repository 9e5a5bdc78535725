/* A message cut into leaves of one size, which are hashed abreast; their chaining values go into
 * one last node, in order. What KangarooTwelve (kt.h) and ParallelHash (parallel_hash.h) share.
 *
 * Leaves that lie in memory one after the other are read where they are. What comes in pieces goes
 * to a buffer of the caller's. Work is counted in blocks: a permutation of one state is one, and
 * that of states abreast is KECCAK_ABREAST_COST. */
#ifndef SHA3_TREE_H
#define SHA3_TREE_H

#include "sponge.h"

/* As much buffer as pays: leaves of 8 KiB in pieces are then hashed as fast as whole ones. With
 * less, with none, or with leaves that are larger, what comes in pieces is hashed one leaf at a
 * time. */
#define TREE_BUFFER_BYTES ((size_t)8 * 8192)

/* Leaves that are hashed abreast. */
struct tree_group {
    uint64_t lanes[KECCAK_LANES * KECCAK_ABREAST_MAX];
    unsigned leaves; /* 0: there is no group */
    unsigned width;  /* states, 4 or 8; those beyond the leaves are of no use */
    size_t done;     /* bytes of each leaf */
    int buffered;    /* the leaves are in the buffer, not in what the caller passes */
};

struct tree {
    struct sponge top;  /* the last node */
    struct sponge leaf; /* that is hashed as its bytes come */
    size_t leaf_at;     /* bytes of it; 0: it has not begun */
    struct sponge_kind leaf_kind;
    size_t leaf_size;      /* not 0 */
    size_t value_size;     /* of a chaining value, a multiple of 8 */
    uint64_t leaves;       /* whose values are in the last node */
    unsigned char *buffer; /* the caller's, or NULL */
    unsigned buffer_leaves;
    size_t filled, taken; /* bytes of the buffer that are in it, and that are hashed */
    struct tree_group group;
};

#pragma GCC visibility push(hidden)

/* The caller sets up top, and keeps the buffer while it uses the tree. To wipe, wipe both. */
void tree_init(struct tree *tree, const struct keccak *keccak, const struct sponge_kind *leaf_kind,
               size_t leaf_size, size_t value_size, void *buffer, size_t buffer_size);

/* Hashes for about *blocks blocks at most, and takes off those that it used. Returns how many bytes
 * it is done with. The caller passes the others again, the same bytes or more of them, when it has
 * blocks again: leaves in the middle of which it stopped are not among those it is done with. */
size_t tree_absorb(struct tree *tree, const void *bytes, size_t size, size_t *blocks);

/* After the last byte: hashes what is in the buffer. Returns 1 when all values are in the last
 * node, 0 when there were not enough blocks. */
int tree_end(struct tree *tree, size_t *blocks);

/* A copy of the struct goes on alone once it has a buffer of its own, of the same size, or NULL
 * when the other has none. Not in the middle of leaves which the caller is to pass again. */
void tree_unshare(struct tree *copy, void *buffer);

#pragma GCC visibility pop

#endif
