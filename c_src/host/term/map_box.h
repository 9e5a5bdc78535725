/* What a map is in memory. Several versions of a map share one growing array of pairs (map.h). */
#ifndef TAME_HOST_MAP_BOX_H
#define TAME_HOST_MAP_BOX_H

#include "term/term.h"

/* The VM's limit for small maps, which have an order by key. */
#define MAP_FLAT_LEN 32

struct map_store {
    /* Whose memory this is: only a function called with that environment may grow it. */
    uint64_t env_id;
    term *pairs;               /* key, value, key, value ... */
    size_t len;                /* pairs in use by the newest version */
    size_t max;                /* pairs that fit */
    int sorted;                /* a small map's pairs are in the order of iteration */
    int *index;                /* open addressing: pair number, or -1; NULL: not built yet */
    size_t index_len, indexed; /* slots, a power of 2; pairs that are in it */
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

static inline const term *map_pairs(term map)
{
    return map_of(map)->store->pairs;
}

#endif
