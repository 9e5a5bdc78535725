/* Maps. Several versions of a map share one growing array of pairs: a put of a new key appends to
 * it when the map is the newest version, so a map built key by key costs no more than its size.
 *
 * The order of iteration is the VM's: by key up to 32 pairs; above, as the VM's external
 * format says it (it writes such a map backwards). A larger map that is made here keeps the order
 * of insertion, because the VM's order comes from its hash function.
 */
#ifndef TAME_HOST_MAP_H
#define TAME_HOST_MAP_H

#include "term.h"

/* The VM's limit for maps that are sorted by key. */
#define MAP_FLAT_LEN 32

struct map_store {
    uint64_t
        env_id; /* whose memory this is: only a function called with that environment may grow it */
    term *pairs;               /* key, value, key, value ... */
    size_t len;                /* pairs in use by the newest version */
    size_t max;                /* pairs that fit */
    int sorted;                /* the pairs are in the order of their keys */
    int *index;                /* open addressing: pair number, or -1; NULL: not built yet */
    size_t index_len, indexed; /* slots, a power of 2; pairs that are in it */
};

struct box_map {
    uint64_t header;
    size_t len;
    struct map_store *store;
    struct box_map *unchecked; /* while decoding: the next one to look at */
};

/* A map of len pairs that the caller fills in at once: keys must be unique. */
term map_new(ErlNifEnv *env, size_t len, int sorted, term **pairs);

/* The same as map, with pairs still to fill in. */
term map_new_like(ErlNifEnv *env, term map, term **pairs);

size_t map_len(term map);
const term *map_pairs(term map);
const term *map_find(ErlNifEnv *env, term map, term key); /* its value, or NULL */

/* Sets key, whether it is there or not. */
term map_put(ErlNifEnv *env, term map, term key, term value);

/* Fills in keys and their values, ordered by key. */
void map_sorted(term map, term *keys, term *values);

/* Puts a map of env's own, of few pairs, into order. Returns 0 when a key is there twice, in one of
 * any size. */
int map_normalise(ErlNifEnv *env, term map);

#endif
