/* Maps (see map.h), and the functions of the API on them. */
#include <stdlib.h>
#include <string.h>

#include "env.h"
#include "host.h"
#include "map.h"

/* Up to this many pairs a search by comparison is as fast as by hash. */
#define MAP_SCAN_LEN 8

static struct box_map *map_of(term map)
{
    return box_of(map);
}

size_t map_len(term map)
{
    return map_of(map)->len;
}

const term *map_pairs(term map)
{
    return map_of(map)->store->pairs;
}

static uint64_t id_of(ErlNifEnv *env)
{
    if (env->id == 0)
        env->id = ++host.last_env;
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

/* ---- order ---------------------------------------------------------------------------- */

struct pair {
    term key, value;
};

static int compare_pairs(const void *a, const void *b)
{
    return term_compare(((const struct pair *)a)->key, ((const struct pair *)b)->key, 1);
}

/* From OTP 26 on a small map of the VM has its atoms in the order in which they were made: it stays
 * in the order in which it came, but that is not the order of its keys. */
static int flat_maps_by_key(void)
{
    return host.otp_release < 26;
}

static void fill_pairs(term map, int in_order, term *keys, term *values)
{
    size_t len = map_len(map);
    struct pair *pairs = host_malloc(len * sizeof *pairs + 1);

    if (len > 0) /* an empty map may have no pairs at all */
        memcpy(pairs, map_pairs(map), len * sizeof *pairs);
    if (!in_order || !map_of(map)->store->sorted || len > MAP_FLAT_LEN)
        qsort(pairs, len, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < len; i++) {
        keys[i] = pairs[i].key;
        values[i] = pairs[i].value;
    }
    free(pairs);
}

void map_sorted(term map, term *keys, term *values)
{
    fill_pairs(map, flat_maps_by_key(), keys, values);
}

void map_ordered(term map, term *keys, term *values)
{
    fill_pairs(map, 1, keys, values);
}

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
    qsort(store->pairs, len, sizeof(struct pair), compare_pairs);
    return store;
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

/* ---- the API -------------------------------------------------------------------------- */

static int is_map(term t)
{
    return is_kind(t, BOX_MAP);
}

int enif_is_map(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_map(t);
}

int enif_get_map_size(ErlNifEnv *env, ERL_NIF_TERM t, size_t *size)
{
    (void)env;
    if (!is_map(t))
        return 0;
    *size = map_len(t);
    return 1;
}

ERL_NIF_TERM enif_make_new_map(ErlNifEnv *env)
{
    return new_map(env, 0, 0, 1);
}

int enif_make_map_put(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM value,
                      ERL_NIF_TERM *out)
{
    if (!is_map(map))
        return 0;
    *out = map_put(env, map, key, value);
    return 1;
}

int enif_get_map_value(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *value)
{
    const term *found = is_map(map) ? map_find(env, map, key) : NULL;

    if (found == NULL)
        return 0;
    *value = *found;
    return 1;
}

int enif_make_map_update(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM value,
                         ERL_NIF_TERM *out)
{
    if (!is_map(map))
        return 0;
    if (find_pair(env, map, key) < 0) {
        if (map_len(map) > MAP_FLAT_LEN)
            *out = TERM_NONE; /* as the VM does */
        return 0;
    }
    *out = map_put(env, map, key, value);
    return 1;
}

int enif_make_map_remove(ErlNifEnv *env, ERL_NIF_TERM map, ERL_NIF_TERM key, ERL_NIF_TERM *out)
{
    if (!is_map(map))
        return 0;
    int64_t pair = find_pair(env, map, key);
    *out = pair < 0 ? map : copy_map(env, map, (size_t)pair);
    return 1;
}

int enif_make_map_from_arrays(ErlNifEnv *env, ERL_NIF_TERM keys[], ERL_NIF_TERM values[],
                              size_t count, ERL_NIF_TERM *out)
{
    term *pairs, map = map_new(env, count, 0, &pairs);

    for (size_t i = 0; i < count; i++) {
        pairs[2 * i] = keys[i];
        pairs[2 * i + 1] = values[i];
    }
    /* As the manual says. With more than 32 keys the VM took one of two same ones instead, and at
     * times made a broken map, up to erts 16.3 (OTP-20098). */
    if (!map_normalise(env, map))
        return 0;
    *out = map;
    return 1;
}

/* ---- iterators: idx goes from 0 (head) over 1 .. size to size + 1 (tail) ----------------- */

int enif_map_iterator_create(ErlNifEnv *env, ERL_NIF_TERM map, ErlNifMapIterator *iter,
                             ErlNifMapIteratorEntry entry)
{
    if (!is_map(map))
        return 0;
    struct map_store *store = map_of(map)->store;
    if (map_len(map) <= MAP_FLAT_LEN) {
        store = sorted_store(env, map_of(map));
        if (owns(env, map_of(map)->store))
            map_of(map)->store = store; /* for the next time */
    }
    *iter = (ErlNifMapIterator){.map = map, .size = map_len(map)};
    if (entry == ERL_NIF_MAP_ITERATOR_FIRST)
        iter->idx = 1;
    else if (entry == ERL_NIF_MAP_ITERATOR_LAST)
        iter->idx = iter->size;
    else
        return 0;
    iter->u.flat.ks = store->pairs;
    return 1;
}

void enif_map_iterator_destroy(ErlNifEnv *env, ErlNifMapIterator *iter)
{
    (void)env;
    (void)iter;
}

int enif_map_iterator_is_head(ErlNifEnv *env, ErlNifMapIterator *iter)
{
    (void)env;
    return iter->size == 0 || iter->idx == 0;
}

int enif_map_iterator_is_tail(ErlNifEnv *env, ErlNifMapIterator *iter)
{
    (void)env;
    return iter->size == 0 || iter->idx == iter->size + 1;
}

int enif_map_iterator_next(ErlNifEnv *env, ErlNifMapIterator *iter)
{
    (void)env;
    if (iter->idx <= iter->size)
        iter->idx++;
    return iter->idx <= iter->size;
}

int enif_map_iterator_prev(ErlNifEnv *env, ErlNifMapIterator *iter)
{
    (void)env;
    if (iter->idx > 0)
        iter->idx--;
    return iter->idx > 0;
}

int enif_map_iterator_get_pair(ErlNifEnv *env, ErlNifMapIterator *iter, ERL_NIF_TERM *key,
                               ERL_NIF_TERM *value)
{
    (void)env;
    if (iter->idx < 1 || iter->idx > iter->size)
        return 0;
    *key = iter->u.flat.ks[2 * iter->idx - 2];
    *value = iter->u.flat.ks[2 * iter->idx - 1];
    return 1;
}
