/* The functions of the API on maps. */
#include "term/map.h"

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
    return map_empty(env);
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
    if (map_find(env, map, key) == NULL) {
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
    *out = map_remove(env, map, key);
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
    *iter = (ErlNifMapIterator){.map = map, .size = map_len(map)};
    if (entry == ERL_NIF_MAP_ITERATOR_FIRST)
        iter->idx = 1;
    else if (entry == ERL_NIF_MAP_ITERATOR_LAST)
        iter->idx = iter->size;
    else
        return 0;
    iter->u.flat.ks = (term *)map_iterate(env, map);
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
