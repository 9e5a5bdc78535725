/* What a map is in memory. Several versions of a map share one growing array of pairs (map.h). */
#ifndef TAME_HOST_MAP_BOX_H
#define TAME_HOST_MAP_BOX_H

#include <stdatomic.h>

#include "term/term.h"

/* The VM's limit for small maps, which have an order by key. */
#define MAP_FLAT_LEN 32

/* 0: no pairs. It lies in the environment, as its pairs do (map_tree.h). */
typedef uintptr_t map_tree;

/* The numbers of pairs by the hashes of their keys: open addressing. */
struct map_index {
    size_t slots;   /* a power of 2, over twice the pairs */
    size_t indexed; /* pairs that are in it */
    int numbers[];  /* -1: none */
};

struct map_store {
    /* Whose memory this is: only a function called with that environment may write to it, but for
     * what readers find out, which are other threads: pairs of a tree, and their own index. */
    struct env_findings *findings;
    uint64_t env_id;
    _Atomic(term *) pairs;               /* key, value, key, value ... NULL: not written out yet */
    map_tree tree;                       /* 0: none; else the store has one version */
    size_t len;                          /* pairs in use by the newest version */
    size_t max;                          /* pairs that fit */
    int sorted;                          /* a small map's pairs are in the order of iteration */
    struct map_index *index;             /* the owner's; NULL: not built yet */
    _Atomic(struct map_index *) readers; /* all others' */
};

struct box_map {
    uint64_t header;
    size_t len;
    struct map_store *store;
    struct box_map *unchecked; /* while decoding: the next one to look at */
};

static inline struct box_map *map_of(term map)
{
    return box_of(map);
}

static inline size_t map_len(term map)
{
    return map_of(map)->len;
}

/* Writes the pairs of a tree out, once. */
const term *map_write_out(struct map_store *store);

static inline const term *map_pairs(term map)
{
    struct map_store *store = map_of(map)->store;
    const term *pairs = atomic_load_explicit(&store->pairs, memory_order_acquire);

    return pairs != NULL || store->len == 0 ? pairs : map_write_out(store);
}

#endif
