/* Maps. Several versions of a map share one growing array of pairs: a put of a new key appends to
 * it when the map is the newest version, so a map built key by key costs no more than its size.
 *
 * The order of iteration of a map that came from the VM is the VM's, which its external format
 * keeps: as it stands there up to 32 pairs, and backwards above. Up to 32 pairs that is the order
 * of the keys; but from OTP 26 on the atoms among them are in the order in which the VM first made
 * them, which nothing here can tell. So a small map that is made here is in the order of its keys
 * on any OTP. A larger one keeps the order of insertion, because the VM's order comes from its hash
 * function.
 */
#ifndef TAME_HOST_MAP_H
#define TAME_HOST_MAP_H

#include "term.h"

/* The VM's limit for small maps, which have an order by key. */
#define MAP_FLAT_LEN 32

struct map_store {
    uint64_t
        env_id; /* whose memory this is: only a function called with that environment may grow it */
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

/* A map of len pairs that the caller fills in at once: keys must be unique. */
term map_new(ErlNifEnv *env, size_t len, int sorted, term **pairs);

/* The same as map, with pairs still to fill in. */
term map_new_like(ErlNifEnv *env, term map, term **pairs);

size_t map_len(term map);
const term *map_pairs(term map);
const term *map_find(ErlNifEnv *env, term map, term key); /* its value, or NULL */

/* Sets key, whether it is there or not. */
term map_put(ErlNifEnv *env, term map, term key, term value);

/* Fills in keys and their values, ordered by key: to compare with another map. */
void map_sorted(term map, term *keys, term *values);

/* The same in the order of iteration for a small map, and by key for any other: to print it. */
void map_ordered(term map, term *keys, term *values);

/* Puts a map of env's own, of few pairs, into order. Returns 0 when a key is there twice, in one of
 * any size. */
int map_normalise(ErlNifEnv *env, term map);

#endif
