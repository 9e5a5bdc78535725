/* Maps: `term` is a map of the keys 0 to N - 1, each its own value, or N. */
#include "threads.h"

OP(map_from_arrays)
{
    unsigned count;
    ERL_NIF_TERM *keys, map;

    if (!enif_get_uint(env, term, &count))
        return atom(env, "refused");
    keys = enif_alloc(sizeof *keys * (count + 1)); /* freed below */
    for (unsigned i = 0; i < count; i++)
        keys[i] = enif_make_uint(env, i);
    if (!enif_make_map_from_arrays(env, keys, keys, count, &map))
        map = atom(env, "refused");
    enif_free(keys);
    return map;
}

OP(map_put)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    unsigned count;

    if (!enif_get_uint(env, term, &count))
        return atom(env, "refused");
    for (unsigned i = 0; i < count; i++) {
        const ERL_NIF_TERM key = enif_make_uint(env, i);

        if (!enif_make_map_put(env, map, key, key, &map))
            return atom(env, "refused");
    }
    return map;
}

/* Updates each key to what it is, gets it, and removes all but the last. */
OP(map_update)
{
    ERL_NIF_TERM map = term;
    size_t count;

    if (!enif_get_map_size(env, map, &count))
        return atom(env, "refused");
    for (size_t i = 0; i < count; i++) {
        const ERL_NIF_TERM key = enif_make_uint64(env, i);
        ERL_NIF_TERM value;

        if (!enif_make_map_update(env, map, key, key, &map) ||
            !enif_get_map_value(env, map, key, &value) || !enif_is_identical(key, value))
            return atom(env, "refused");
    }
    for (size_t i = 0; i + 1 < count; i++)
        if (!enif_make_map_remove(env, map, enif_make_uint64(env, i), &map))
            return atom(env, "refused");
    return map;
}

/* The sum of the keys, forth and back. */
OP(map_iterator)
{
    ErlNifMapIterator at;
    ERL_NIF_TERM key, value;
    ErlNifUInt64 sum = 0, number;

    if (!enif_map_iterator_create(env, term, &at, ERL_NIF_MAP_ITERATOR_FIRST))
        return atom(env, "refused");
    for (; enif_map_iterator_get_pair(env, &at, &key, &value); enif_map_iterator_next(env, &at))
        sum += enif_get_uint64(env, key, &number) ? number : 0;
    for (enif_map_iterator_prev(env, &at); enif_map_iterator_get_pair(env, &at, &key, &value);
         enif_map_iterator_prev(env, &at))
        sum += enif_get_uint64(env, key, &number) ? number : 0;
    enif_map_iterator_destroy(env, &at);
    return enif_make_uint64(env, sum);
}
