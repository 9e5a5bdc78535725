/* Maps. */
#include "contract.h"

static term kept_maps[2]; /* of 20 and of 100 pairs, in the private environment */

void load_maps(ErlNifEnv *private_env)
{
    for (int i = 0; i < 2; i++) {
        kept_maps[i] = enif_make_new_map(private_env);
        for (int key = i == 0 ? 20 : 100; key > 0; key--)
            enif_make_map_put(private_env, kept_maps[i], enif_make_int(private_env, key),
                              enif_make_int(private_env, -key), &kept_maps[i]);
    }
}

/* "Makes a copy of map map_in and inserts key with value. If key already exists in map_in, the old
 * associated value is replaced by value"; update: "Returns true on success or false if map_in is
 * not a map or if it does not contain key"; remove: "If map map_in does not contain key, map_in is
 * returned". IN: {Map, Key, Value}. */
CASE(maps)
{
    struct results r = {.len = 0};
    const term *in;
    int arity;
    size_t size = 77;
    term out, none = enif_make_atom(env, "none");

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 3)
        return enif_make_badarg(env);
    add_int(env, &r, enif_get_map_size(env, in[0], &size) != 0);
    add_int(env, &r, (long)size);
    out = none;
    add_int(env, &r, enif_get_map_value(env, in[0], in[1], &out) != 0);
    add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_put(env, in[0], in[1], in[2], &out) != 0);
    add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_update(env, in[0], in[1], in[2], &out) != 0);
    if (out != 0)
        add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_remove(env, in[0], in[1], &out) != 0);
    add(&r, out);
    return all(env, &r);
}

static term iterate(ErlNifEnv *env, term map, ErlNifMapIteratorEntry from)
{
    ErlNifMapIterator iter;
    term key, value, list = enif_make_list(env, 0);

    if (!enif_map_iterator_create(env, map, &iter, from))
        return enif_make_atom(env, "no_map");
    list = enif_make_list_cell(
        env,
        enif_make_tuple2(env, boolean(env, enif_map_iterator_is_head(env, &iter)),
                         boolean(env, enif_map_iterator_is_tail(env, &iter))),
        list);
    while (enif_map_iterator_get_pair(env, &iter, &key, &value)) {
        list = enif_make_list_cell(env, enif_make_tuple2(env, key, value), list);
        if (from == ERL_NIF_MAP_ITERATOR_FIRST)
            enif_map_iterator_next(env, &iter);
        else
            enif_map_iterator_prev(env, &iter);
    }
    list = enif_make_list_cell(
        env,
        enif_make_tuple2(env, boolean(env, enif_map_iterator_is_head(env, &iter)),
                         boolean(env, enif_map_iterator_is_tail(env, &iter))),
        list);
    enif_map_iterator_destroy(env, &iter);
    return list;
}

/* "Creates an iterator for the map"; "from first to last", and from last to first. */
CASE(map_order)
{
    return enif_make_tuple2(env, iterate(env, IN, ERL_NIF_MAP_ITERATOR_FIRST),
                            iterate(env, IN, ERL_NIF_MAP_ITERATOR_LAST));
}

/* "Moves iterator: returns true if the iterator is pointing to a key-value pair": to and fro. */
CASE(map_walk)
{
    struct results r = {.len = 0};
    ErlNifMapIterator iter;
    term key, value;
    static const char moves[] = "nppnnpnnnnnnnnppppppppnn";

    if (!enif_map_iterator_create(env, IN, &iter, ERL_NIF_MAP_ITERATOR_FIRST))
        return enif_make_badarg(env);
    for (const char *move = moves; *move != '\0'; move++) {
        int moved =
            *move == 'n' ? enif_map_iterator_next(env, &iter) : enif_map_iterator_prev(env, &iter);
        add_int(env, &r, moved != 0);
        if (enif_map_iterator_get_pair(env, &iter, &key, &value))
            add(&r, key);
    }
    enif_map_iterator_destroy(env, &iter);
    return all(env, &r);
}

/* A map made key by key, of the list IN as keys: its order up to 32 keys is that of the keys. */
CASE(map_of_keys)
{
    term map = enif_make_new_map(env), head, tail = IN, ordered;

    while (enif_get_list_cell(env, tail, &head, &tail))
        enif_make_map_put(env, map, head, enif_make_int(env, 1), &map);
    size_t size;
    enif_get_map_size(env, map, &size);
    ordered = size <= 32 ? iterate(env, map, ERL_NIF_MAP_ITERATOR_FIRST) : enif_make_list(env, 0);
    return enif_make_tuple2(env, map, ordered);
}

/* "Makes a map term from the given keys and values ... returns false if there are any duplicate
 * keys." IN: keys. */
CASE(map_from_arrays)
{
    term keys[512], values[512], head, tail = IN, map = enif_make_atom(env, "none");
    size_t len = 0;

    while (len < 512 && enif_get_list_cell(env, tail, &head, &tail)) {
        keys[len] = head;
        values[len] = enif_make_ulong(env, len);
        len++;
    }
    int made = enif_make_map_from_arrays(env, keys, values, len, &map);
    return made ? map : enif_make_atom(env, "duplicate");
}

/* Older versions of a map stay as they were. */
CASE(maps_do_not_change)
{
    term versions[40], map = enif_make_new_map(env);

    for (int i = 0; i < 40; i++) {
        versions[i] = map;
        enif_make_map_put(env, map, enif_make_int(env, i), enif_make_int(env, i), &map);
    }
    for (int i = 0; i < 40; i += 7)
        enif_make_map_put(env, versions[i], enif_make_atom(env, "branch"), enif_make_int(env, i),
                          &versions[i]);
    return enif_make_list_from_array(env, versions, 40);
}

/* Terms of a process-independent environment, looked at in one call after the other. */
CASE(maps_of_another_environment)
{
    struct results r = {.len = 0};
    term value = IN;

    for (int i = 0; i < 2; i++) {
        term map = kept_maps[i];
        add_int(env, &r, enif_get_map_value(env, map, IN, &value) != 0);
        add(&r, enif_make_copy(env, value));
        if (i == 0)
            add(&r, iterate(env, map, ERL_NIF_MAP_ITERATOR_FIRST));
        add(&r, enif_make_copy(env, map));
    }
    return all(env, &r);
}

/* Any version of a map may be changed, and none of the others does. IN: {Map, Changes}; a change is
 * {put | update | remove | get, Version, Key, Value} and makes the next version; 0 is Map. */
CASE(map_changes)
{
    term versions[256], found[256], head, tail;
    const term *in, *change;
    int arity, version;
    unsigned len = 1, looked = 0;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2)
        return enif_make_badarg(env);
    versions[0] = in[0];
    for (tail = in[1]; len < 256 && enif_get_list_cell(env, tail, &head, &tail);) {
        if (!enif_get_tuple(env, head, &arity, &change) || arity != 4 ||
            !enif_get_int(env, change[1], &version) || version < 0)
            return enif_make_badarg(env);
        term map = versions[(unsigned)version % len], next = map;
        if (enif_is_identical(change[0], enif_make_atom(env, "put"))) {
            enif_make_map_put(env, map, change[2], change[3], &next);
        } else if (enif_is_identical(change[0], enif_make_atom(env, "update"))) {
            if (!enif_make_map_update(env, map, change[2], change[3], &next))
                next = map;
        } else if (enif_is_identical(change[0], enif_make_atom(env, "remove"))) {
            enif_make_map_remove(env, map, change[2], &next);
        } else {
            term value = change[0];
            enif_get_map_value(env, map, change[2], &value);
            found[looked++] = value;
        }
        versions[len++] = next;
    }
    return enif_make_tuple2(env, enif_make_list_from_array(env, versions, len),
                            enif_make_list_from_array(env, found, looked));
}

/* Counts the terms of the list IN, then again: a map of counts, after as many changes. */
CASE(map_of_counts)
{
    term counts = enif_make_new_map(env), head, tail, count;
    long number;

    for (int times = 0; times < 2; times++) {
        for (tail = IN; enif_get_list_cell(env, tail, &head, &tail);) {
            number = 0;
            if (enif_get_map_value(env, counts, head, &count))
                enif_get_long(env, count, &number);
            enif_make_map_put(env, counts, head, enif_make_long(env, number + 1), &counts);
        }
    }
    return counts;
}

/* Each key of the list of IN, {Map, Keys}, in a copy that an environment of its own has. */
CASE(map_elsewhere)
{
    ErlNifEnv *other = enif_alloc_env();
    const term *in;
    term map, head, tail, value;
    int arity;
    long sum = 0, number;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2)
        return enif_make_badarg(env);
    map = enif_make_copy(other, in[0]);
    for (tail = in[1]; enif_get_list_cell(env, tail, &head, &tail);) {
        if (enif_get_map_value(env, map, head, &value) && enif_get_long(env, value, &number))
            sum += number;
    }
    enif_free_env(other);
    return enif_make_long(env, sum);
}
