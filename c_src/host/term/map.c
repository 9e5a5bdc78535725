/* Maps, see map.h. */
#include <stdatomic.h>
#include <string.h>

#include "term/hash.h"
#include "term/map.h"
#include "term/map_tree.h"
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

/* Its first, or more room: a reader of the old ones finds the same there. */
static void set_pairs(struct map_store *store, term *pairs)
{
    atomic_store_explicit(&store->pairs, pairs, memory_order_release);
}

static term new_map(ErlNifEnv *env, size_t len, size_t max, int sorted)
{
    struct box_map *map = env_alloc(env, sizeof *map);
    struct map_store *store = env_alloc(env, sizeof *store);

    *store = (struct map_store){.findings = env_findings(env),
                                .env_id = id_of(env),
                                .len = len,
                                .max = max,
                                .sorted = sorted};
    if (max > 0)
        set_pairs(store, env_alloc(env, 2 * max * sizeof(term)));
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

static size_t index_slots(size_t len)
{
    size_t slots = 32;

    while (slots < 4 * len)
        slots *= 2;
    return slots;
}

static size_t index_bytes(size_t slots)
{
    return sizeof(struct map_index) + slots * sizeof(int);
}

static struct map_index *index_init(struct map_index *index, size_t slots)
{
    *index = (struct map_index){.slots = slots};
    memset(index->numbers, 0xff, slots * sizeof *index->numbers);
    return index;
}

static void index_up_to(struct map_index *index, const term *pairs, size_t len)
{
    for (; index->indexed < len; index->indexed++) {
        size_t slot = term_hash(pairs[2 * index->indexed], 0) & (index->slots - 1);
        while (index->numbers[slot] >= 0)
            slot = (slot + 1) & (index->slots - 1);
        index->numbers[slot] = (int)index->indexed;
    }
}

/* The number of key's pair, which is below len, or -1: a newer version may have more pairs. */
static int64_t index_find(const struct map_index *index, const term *pairs, size_t len, term key)
{
    size_t slot = term_hash(key, 0) & (index->slots - 1);

    for (; index->numbers[slot] >= 0; slot = (slot + 1) & (index->slots - 1)) {
        size_t number = (size_t)index->numbers[slot];
        if (number < len && term_identical(pairs[2 * number], key))
            return (int64_t)number;
    }
    return -1;
}

static const struct map_index *own_index(ErlNifEnv *env, struct map_store *store)
{
    if (store->index == NULL || 2 * store->len > store->index->slots) {
        size_t slots = index_slots(store->len);
        store->index = index_init(env_alloc(env, index_bytes(slots)), slots);
    }
    index_up_to(store->index, store->pairs, store->len);
    return store->index;
}

/* One that is never written again, as the owner and other readers may be other threads. It has at
 * least half of the pairs of a version of len. */
static const struct map_index *readers_index(struct map_store *store, size_t len)
{
    struct map_index *known = store->readers;

    if (known != NULL && 2 * known->indexed >= len)
        return known;
    size_t slots = index_slots(len);
    struct map_index *index = index_init(env_found_new(index_bytes(slots)), slots);
    index_up_to(index, store->pairs, len);
    env_found(store->findings, index);
    store->readers = index; /* one that another reader wrote meanwhile is as good, and stays */
    return index;
}

static int64_t scan(const term *pairs, size_t from, size_t len, term key)
{
    for (size_t i = from; i < len; i++) {
        if (term_identical(pairs[2 * i], key))
            return (int64_t)i;
    }
    return -1;
}

/* The number of key's pair, or -1. */
static int64_t find_pair(ErlNifEnv *env, term map, term key)
{
    struct map_store *store = map_of(map)->store;
    size_t len = map_of(map)->len;

    if (len <= MAP_SCAN_LEN)
        return scan(store->pairs, 0, len, key);
    if (owns(env, store))
        return index_find(own_index(env, store), store->pairs, len, key);
    const struct map_index *index = readers_index(store, len);
    int64_t found = index_find(index, store->pairs, len, key);
    return found >= 0 ? found : scan(store->pairs, index->indexed, len, key);
}

const term *map_find(ErlNifEnv *env, term map, term key)
{
    struct map_store *store = map_of(map)->store;

    if (store->tree != 0)
        return map_tree_find(store->tree, key);
    int64_t pair = find_pair(env, map, key);
    return pair < 0 ? NULL : &store->pairs[2 * pair + 1];
}

/* ---- changing ------------------------------------------------------------------------- */

static int can_append(ErlNifEnv *env, const struct box_map *box)
{
    return owns(env, box->store) && box->len == box->store->len && box->store->tree == 0;
}

static term append(ErlNifEnv *env, struct map_store *store, term key, term value)
{
    if (store->len == store->max) {
        term *old = store->pairs;
        store->max = store->max < 2 ? 2 : 2 * store->max;
        term *pairs = env_alloc(env, 2 * store->max * sizeof(term));
        if (store->len > 0)
            memcpy(pairs, old, 2 * store->len * sizeof(term));
        set_pairs(store, pairs);
    }
    store->pairs[2 * store->len] = key;
    store->pairs[2 * store->len + 1] = value;
    store->len++;
    store->sorted = 0;

    struct box_map *newer = env_alloc(env, sizeof *newer);
    *newer = (struct box_map){box_header(BOX_MAP, 0), store->len, store, NULL};
    return make_boxed(newer);
}

/* A copy of a small map with room for one more. */
static term copy_small(ErlNifEnv *env, term map)
{
    size_t len = map_len(map);
    term copy = new_map(env, len, len + 1 < 4 ? 4 : len + 1, map_of(map)->store->sorted);

    if (len > 0)
        memcpy(map_of(copy)->store->pairs, map_pairs(map), 2 * len * sizeof(term));
    return copy;
}

/* Made once for each version, which gets a store of its own with it; of another environment's map
 * for each change. */
static map_tree tree_of(ErlNifEnv *env, struct box_map *box)
{
    struct map_store *store = box->store;

    if (owns(env, store) && store->tree != 0)
        return store->tree;
    map_tree tree = map_tree_new(env, map_pairs(make_boxed(box)), box->len);
    if (owns(env, store)) {
        struct map_store *own = env_alloc(env, sizeof *own);
        *own = (struct map_store){.findings = store->findings,
                                  .env_id = store->env_id,
                                  .pairs = store->pairs,
                                  .tree = tree,
                                  .len = box->len,
                                  .max = box->len};
        box->store = own;
    }
    return tree;
}

static term map_of_tree(ErlNifEnv *env, map_tree tree, size_t len)
{
    term map = new_map(env, len, len <= MAP_FLAT_LEN ? len : 0, 0);

    if (len <= MAP_FLAT_LEN)
        map_tree_pairs(tree, map_of(map)->store->pairs);
    else
        map_of(map)->store->tree = tree;
    return map;
}

const term *map_write_out(struct map_store *store)
{
    term *none = NULL, *pairs = env_found_new(2 * store->len * sizeof *pairs);

    map_tree_pairs(store->tree, pairs);
    env_found(store->findings, pairs);
    /* What another reader wrote meanwhile is the same, and may have been handed out. */
    return atomic_compare_exchange_strong(&store->pairs, &none, pairs) ? pairs : none;
}

term map_put(ErlNifEnv *env, term map, term key, term value)
{
    struct box_map *box = map_of(map);
    const term *there = map_find(env, map, key);

    if (there == NULL && can_append(env, box))
        return append(env, box->store, key, value);
    if (box->len > MAP_FLAT_LEN) {
        map_tree tree = map_tree_put(env, tree_of(env, box), key, value);
        return map_of_tree(env, tree, box->len + (there == NULL));
    }
    map = copy_small(env, map);
    if (there == NULL)
        return append(env, map_of(map)->store, key, value);
    map_of(map)->store->pairs[2 * find_pair(env, map, key) + 1] = value;
    return map;
}

term map_remove(ErlNifEnv *env, term map, term key)
{
    struct box_map *box = map_of(map);

    if (map_find(env, map, key) == NULL)
        return map;
    if (box->len > MAP_FLAT_LEN)
        return map_of_tree(env, map_tree_remove(env, tree_of(env, box), key), box->len - 1);
    size_t at = (size_t)find_pair(env, map, key);
    map = copy_small(env, map);
    box = map_of(map);
    memmove(box->store->pairs + 2 * at, box->store->pairs + 2 * at + 2,
            2 * (box->len - at - 1) * sizeof(term));
    box->store->len = --box->len;
    return map;
}

/* ---- order ---------------------------------------------------------------------------- */

/* The store of a small map if it is in order, else one that is. */
static struct map_store *sorted_store(ErlNifEnv *env, const struct box_map *box)
{
    size_t len = box->len;

    if (box->store->sorted && box->store->len == len)
        return box->store;
    struct map_store *store = env_alloc(env, sizeof *store);
    *store = (struct map_store){
        .findings = env_findings(env), .env_id = id_of(env), .len = len, .max = len, .sorted = 1};
    set_pairs(store, env_alloc(env, 2 * len * sizeof(term)));
    if (len > 0)
        memcpy(store->pairs, box->store->pairs, 2 * len * sizeof(term));
    order_pairs(store->pairs, len);
    return store;
}

const term *map_iterate(ErlNifEnv *env, term map)
{
    struct box_map *box = map_of(map);

    if (box->len > MAP_FLAT_LEN)
        return map_pairs(map);
    struct map_store *store = sorted_store(env, box);
    if (owns(env, box->store))
        box->store = store; /* for the next time */
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
