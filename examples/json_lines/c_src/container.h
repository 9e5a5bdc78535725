/* The end of a list or a map: its values become one term, some at a time. */
#ifndef JSON_CONTAINER_H
#define JSON_CONTAINER_H

#include "parser.h"

/* A map of up to this number of pairs is made at once, in about 20 us. */
#define PAIRS_MAX 128

/* What is worth how many bytes of parsing. */
#define CHUNK_UNITS 16
#define ELEMENT_UNITS 8
#define PAIR_UNITS 100

/* Of keys that are the same the last counts; it is popped first. */
static inline ERL_NIF_TERM with_pair(struct tame_call *call, ERL_NIF_TERM map, ERL_NIF_TERM key,
                                     ERL_NIF_TERM value)
{
    ERL_NIF_TERM there;

    if (!enif_get_map_value(call->env, map, key, &there))
        (void)enif_make_map_put(call->env, map, key, value, &map);
    return map;
}

static inline ERL_NIF_TERM small_map(struct tame_call *call, size_t pairs)
{
    ERL_NIF_TERM keys[PAIRS_MAX], values[PAIRS_MAX], map;

    for (size_t i = pairs; i-- > 0;) {
        values[i] = parser_pop(call);
        keys[i] = parser_pop(call);
    }
    if (enif_make_map_from_arrays(call->env, keys, values, pairs, &map))
        return map;
    map = enif_make_new_map(call->env);
    for (size_t i = pairs; i-- > 0;)
        map = with_pair(call, map, keys[i], values[i]);
    return map;
}

/* At ] or }. */
static inline void container_close(struct tame_call *call, struct parser *p)
{
    const struct level level = p->levels[--p->depth];

    if (level.is_map && level.values <= 2 * PAIRS_MAX) {
        parser_push(call, p, small_map(call, level.values / 2));
        return;
    }
    p->left = level.values;
    p->where = level.is_map ? IN_MAP : IN_LIST;
    call->root[ROOT_CONTAINER] =
        level.is_map ? enif_make_new_map(call->env) : enif_make_list(call->env, 0);
}

/* Returns how many units are left; the container is a value when `where` says so. */
static inline size_t list_gather(struct tame_call *call, struct parser *p, size_t units)
{
    ERL_NIF_TERM list = call->root[ROOT_CONTAINER];

    for (; p->left > 0 && units > 0; p->left--, units = spent(units, ELEMENT_UNITS))
        list = enif_make_list_cell(call->env, parser_pop(call), list);
    call->root[ROOT_CONTAINER] = list;
    if (p->left > 0)
        return 0;
    call->root[ROOT_CONTAINER] = enif_make_list(call->env, 0);
    parser_push(call, p, list);
    return units;
}

static inline size_t map_gather(struct tame_call *call, struct parser *p, size_t units)
{
    ERL_NIF_TERM map = call->root[ROOT_CONTAINER];

    for (; p->left > 0 && units > 0; p->left -= 2, units = spent(units, PAIR_UNITS)) {
        const ERL_NIF_TERM value = parser_pop(call), key = parser_pop(call);

        map = with_pair(call, map, key, value);
    }
    call->root[ROOT_CONTAINER] = map;
    if (p->left > 0)
        return 0;
    call->root[ROOT_CONTAINER] = enif_make_list(call->env, 0);
    parser_push(call, p, map);
    return units;
}

#endif
