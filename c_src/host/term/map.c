/* Maps, see map.h. */
#include <stdatomic.h>
#include <string.h>

#include "term/hash.h"
#include "term/map.h"
#include "term/order.h"

/* Up to this many pairs a search by comparison is as fast as by hash. */
#define MAP_SCAN_LEN 8

static uint64_t id_of(ErlNifEnv *env)
{
    static _Atomic uint64_t last_id;

    if (env->id == 0)
        env->id = ++last_id;
    return env->id;
}

static int owns(ErlNifEnv *env, const struct map_store *store)
{
    return env->id == store->env_id;
}

static term new_map(ErlNifEnv *env, size_t len, size_t max, int sorted)
{
    struct box_map *map = env_alloc(env, sizeof *map);
    struct map_store *store = env_alloc(env, sizeof *store);

    *store = (struct map_store){.env_id = id_of(env), .len = len, .max = max, .sorted = sorted};
    if (max > 0)
        store->pairs = env_alloc(env, 2 * max * sizeof(term));
    *map = (struct box_map){box_header(BOX_MAP, 0), len, store, NULL};
    return make_boxed(map);
}

term map_new(ErlNifEnv *env, size_t len, int sorted, term **pairs)
{
    term map = new_map(env, len, len, sorted);

    *pairs = map_of(map)->store->pairs;
    return map;
}

term map_empty(ErlNifEnv *env)
{
    return new_map(env, 0, 0, 1);
}

term map_new_like(ErlNifEnv *env, term map, term **pairs)
{
    return map_new(env, map_len(map), map_of(map)->store->sorted, pairs);
}

/* ---- finding a key -------------------------------------------------------------------- */

static void index_add(struct map_store *store, size_t pair)
{
    size_t slot = term_hash(store->pairs[2 * pair], 0) & (store->index_len - 1);

    while (store->index[slot] >= 0)
        slot = (slot + 1) & (store->index_len - 1);
    store->index[slot] = (int)pair;
}

static void index_all(ErlNifEnv *env, struct map_store *store)
{
    if (store->index == NULL || 2 * store->len > store->index_len) {
        size_t len = 32;
        while (len < 4 * store->len)
            len *= 2;
        store->index = env_alloc(env, len * sizeof *store->index);
        store->index_len = len;
        store->indexed = 0;
        memset(store->index, 0xff, len * sizeof *store->index);
    }
    while (store->indexed < store->len)
        index_add(store, store->indexed++);
}

/* The number of key's pair, or -1. */
static int64_t find_pair(ErlNifEnv *env, term map, term key)
{
    struct map_store *store = map_of(map)->store;
    size_t len = map_of(map)->len;

    /* Of another environment, which other threads may be reading: nothing is added to it. */
    if (len <= MAP_SCAN_LEN || !owns(env, store)) {
        for (size_t i = 0; i < len; i++) {
            if (term_identical(store->pairs[2 * i], key))
                return (int64_t)i;
        }
        return -1;
    }
    index_all(env, store);
    size_t slot = term_hash(key, 0) & (store->index_len - 1);
    for (; store->index[slot] >= 0; slot = (slot + 1) & (store->index_len - 1)) {
        int pair = store->index[slot];
        /* A newer version of the map may have more pairs than this one. */
        if ((size_t)pair < len && term_identical(store->pairs[2 * pair], key))
            return pair;
    }
    return -1;
}

const term *map_find(ErlNifEnv *env, term map, term key)
{
    int64_t pair = find_pair(env, map, key);

    return pair < 0 ? NULL : &map_of(map)->store->pairs[2 * pair + 1];
}

/* ---- changing ------------------------------------------------------------------------- */

/* A copy with room for one more. */
static term copy_map(ErlNifEnv *env, term map, size_t without)
{
    size_t len = map_len(map);
    term copy = new_map(env, len, len + 1 < 4 ? 4 : len + 1, map_of(map)->store->sorted);
    struct map_store *store = map_of(copy)->store;

    if (len > 0)
        memcpy(store->pairs, map_pairs(map), 2 * len * sizeof(term));
    if (without < len) {
        memmove(store->pairs + 2 * without, store->pairs + 2 * without + 2,
                2 * (len - without - 1) * sizeof(term));
        store->len = map_of(copy)->len = len - 1;
    }
    return copy;
}

static term append(ErlNifEnv *env, term map, term key, term value)
{
    struct map_store *store = map_of(map)->store;

    if (map_of(map)->len != store->len || !owns(env, store)) {
        map = copy_map(env, map, SIZE_MAX);
        store = map_of(map)->store;
    }
    if (store->len == store->max) {
        term *old = store->pairs;
        store->max = store->max < 2 ? 2 : 2 * store->max;
        store->pairs = env_alloc(env, 2 * store->max * sizeof(term));
        if (store->len > 0)
            memcpy(store->pairs, old, 2 * store->len * sizeof(term));
    }
    store->pairs[2 * store->len] = key;
    store->pairs[2 * store->len + 1] = value;
    store->len++;
    store->sorted = 0;

    struct box_map *newer = env_alloc(env, sizeof *newer);
    *newer = (struct box_map){box_header(BOX_MAP, 0), store->len, store, NULL};
    return make_boxed(newer);
}

term map_put(ErlNifEnv *env, term map, term key, term value)
{
    int64_t pair = find_pair(env, map, key);

    if (pair < 0)
        return append(env, map, key, value);
    map = copy_map(env, map, SIZE_MAX);
    map_of(map)->store->pairs[2 * pair + 1] = value;
    return map;
}

term map_remove(ErlNifEnv *env, term map, term key)
{
    int64_t pair = find_pair(env, map, key);

    return pair < 0 ? map : copy_map(env, map, (size_t)pair);
}

/* ---- order ---------------------------------------------------------------------------- */

/* The store of a small map if it is in order, else one that is. */
static struct map_store *sorted_store(ErlNifEnv *env, const struct box_map *box)
{
    size_t len = box->len;

    if (box->store->sorted && box->store->len == len)
        return box->store;
    struct map_store *store = env_alloc(env, sizeof *store);
    *store = (struct map_store){.env_id = id_of(env), .len = len, .max = len, .sorted = 1};
    store->pairs = env_alloc(env, 2 * len * sizeof(term));
    if (len > 0)
        memcpy(store->pairs, box->store->pairs, 2 * len * sizeof(term));
    order_pairs(store->pairs, len);
    return store;
}

const term *map_iterate(ErlNifEnv *env, term map)
{
    struct map_store *store = map_of(map)->store;

    if (map_len(map) <= MAP_FLAT_LEN) {
        store = sorted_store(env, map_of(map));
        if (owns(env, map_of(map)->store))
            map_of(map)->store = store; /* for the next time */
    }
    return store->pairs;
}

int map_normalise(ErlNifEnv *env, term map)
{
    struct box_map *box = map_of(map);
    size_t len = box->len;

    if (len > MAP_FLAT_LEN) {
        /* Twice the same key: the second is not found under its own number. */
        for (size_t i = 0; i < len; i++) {
            if (find_pair(env, map, box->store->pairs[2 * i]) != (int64_t)i)
                return 0;
        }
        return 1;
    }
    box->store = sorted_store(env, box);
    for (size_t i = 1; i < len; i++) {
        if (term_identical(box->store->pairs[2 * i - 2], box->store->pairs[2 * i]))
            return 0;
    }
    return 1;
}
