/* Maps. Several versions of a map share one growing array of pairs: a put of a new key appends to
 * it when the map is the newest version, so a map built key by key costs no more than its size. Any
 * other change of a map over 32 pairs goes through a tree (map_tree.h) and costs by the depth of
 * it; a smaller map is copied.
 *
 * The order of iteration of a map that came from the VM is the VM's, which its external format
 * keeps: as it stands there up to 32 pairs, and backwards above. Up to 32 pairs that is the order
 * of the keys; but from OTP 26 on the atoms among them are in the order in which the VM first made
 * them, which nothing here can tell. So a small map that is made here is in the order of its keys
 * on any OTP. A larger one keeps the order of insertion until another change than that,
 * because the VM's order comes from its hash function.
 */
#ifndef TAME_HOST_MAP_H
#define TAME_HOST_MAP_H

#include "term/map_box.h"

static inline int is_map(term t)
{
    return is_kind(t, BOX_MAP);
}

/* A map of len pairs that the caller fills in at once: keys must be unique. */
term map_new(ErlNifEnv *env, size_t len, int sorted, term **pairs);
term map_empty(ErlNifEnv *env);

/* The same as map, with pairs still to fill in. */
term map_new_like(ErlNifEnv *env, term map, term **pairs);

const term *map_find(ErlNifEnv *env, term map, term key); /* its value, or NULL */

/* Sets key, whether it is there or not; without key, whether it was there or not. */
term map_put(ErlNifEnv *env, term map, term key, term value);
term map_remove(ErlNifEnv *env, term map, term key);

/* The pairs in the order of iteration. Keys of a small map that is not in order get one now. */
const term *map_iterate(ErlNifEnv *env, term map);

/* Puts a map of env's own, of few pairs, into order. Returns 0 when a key is there twice, in one of
 * any size. */
int map_normalise(ErlNifEnv *env, term map);

#endif
