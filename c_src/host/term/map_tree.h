/* Large maps that change: a trie by the hashes of the keys, 16 ways at each level, so that a change
 * copies one node a level and shares all others with the map before. Nothing that is made is ever
 * written again: any thread may read.
 */
#ifndef TAME_HOST_MAP_TREE_H
#define TAME_HOST_MAP_TREE_H

#include "term/map_box.h"

/* Of len pairs whose keys are unique. */
map_tree map_tree_new(ErlNifEnv *env, const term *pairs, size_t len);

const term *map_tree_find(map_tree tree, term key); /* its value, or NULL */

/* Sets key, whether it is there or not; without key, which is there. */
map_tree map_tree_put(ErlNifEnv *env, map_tree tree, term key, term value);
map_tree map_tree_remove(ErlNifEnv *env, map_tree tree, term key);

/* Writes all pairs, in the order of the hashes. Returns where the next one would go. */
term *map_tree_pairs(map_tree tree, term *to);

#endif
