/* Where the parser of JSON lines is, from one step to the next.
 *
 * The values of containers that are still open lie in one list, the last in front; the terms are
 * roots, so the VM keeps them from slice to slice. How many of them belong to which container is in
 * `levels`. At its end a container takes its values from the list: from the last to the first, as a
 * list is built. */
#ifndef JSON_PARSER_H
#define JSON_PARSER_H

#include <stdlib.h>
#include <tame.h>

#include "text.h"

enum { ROOT_CHUNK, ROOT_IODATA, ROOT_VALUES, ROOT_CONTAINER };

/* Deeper is refused; the levels take 8 MiB then. */
#define DEPTH_MAX ((size_t)1000000)
/* A run of bytes is copied in pieces of this size, and strings up to this size at once. */
#define COPY_BYTES ((size_t)4096)
/* Shorter strings are copied out of the input, because a part of it costs the VM as much; longer
 * ones are parts of it. */
#define SHORT_BYTES ((size_t)64)

enum where {
    AT_VALUE,
    AT_FIRST_VALUE, /* of a list: or its end */
    AT_KEY,
    AT_FIRST_KEY, /* of a map: or its end */
    AT_COLON,
    AT_NEXT, /* behind a value in a container */
    AT_LINE_END,
    IN_WORD, /* a number or a name */
    IN_STRING,
    IN_ESCAPE,
    IN_HEX,
    AT_STRING_END, /* of one whose bytes are in `text` */
    IN_LIST,       /* whose values are gathered */
    IN_MAP
};

struct level {
    uint64_t values : 63; /* keys count as well */
    uint64_t is_map : 1;
};

struct parser {
    struct tame_iodata in;
    size_t done; /* of the chunk */
    enum where where;
    uint64_t line, before, line_at; /* from 1; bytes before the chunk; and before the line */

    struct level *levels; /* owned; the last is the container at hand */
    size_t depth, levels_room;
    uint64_t left; /* values to gather */

    /* The token at hand: `text`, and behind that the chunk's bytes from `from` on. */
    size_t from;
    struct tame_output text; /* owned */
    int is_key;
    struct utf8 utf8;
    int hex_len;
    uint32_t hex, high; /* high: the first half of a pair of surrogates */
};

static inline size_t spent(size_t units, size_t cost)
{
    return units > cost ? units - cost : 0;
}

/* {json_lines, {Line, Column}, Sentence}: the column is that of the byte `back` before the next. */
static inline enum tame_status parser_fail_at(struct tame_call *call, struct parser *p, size_t back,
                                              const char *sentence)
{
    ErlNifEnv *env = call->env;
    const uint64_t column = p->before + p->done - back - p->line_at + 1;
    const size_t len = strlen(sentence);
    ERL_NIF_TERM text;

    memcpy(enif_make_new_binary(env, len, &text), sentence, len);
    return tame_fail(call, enif_make_tuple3(env, enif_make_atom(env, "json_lines"),
                                            enif_make_tuple2(env, enif_make_uint64(env, p->line),
                                                             enif_make_uint64(env, column)),
                                            text));
}

static inline enum tame_status parser_fail(struct tame_call *call, struct parser *p,
                                           const char *sentence)
{
    return parser_fail_at(call, p, 0, sentence);
}

/* A key or a value is there. */
static inline void parser_push(struct tame_call *call, struct parser *p, ERL_NIF_TERM term)
{
    call->root[ROOT_VALUES] = enif_make_list_cell(call->env, term, call->root[ROOT_VALUES]);
    if (p->depth == 0) {
        p->where = AT_LINE_END;
        return;
    }
    p->levels[p->depth - 1].values++;
    p->where = p->is_key ? AT_COLON : AT_NEXT;
    p->is_key = 0;
}

/* The last value, which is taken away. */
static inline ERL_NIF_TERM parser_pop(struct tame_call *call)
{
    ERL_NIF_TERM head;

    if (!enif_get_list_cell(call->env, call->root[ROOT_VALUES], &head, &call->root[ROOT_VALUES]))
        return call->root[ROOT_VALUES]; /* does not happen: levels count what is there */
    return head;
}

static inline enum tame_status parser_open(struct tame_call *call, struct parser *p, int is_map)
{
    if (p->depth == DEPTH_MAX)
        return parser_fail(call, p, "is nested too deep");
    if (p->depth == p->levels_room) {
        const size_t room = p->levels_room > 0 ? p->levels_room * 2 : 16;
        struct level *levels = realloc(p->levels, room * sizeof *levels);

        if (levels == NULL)
            return tame_enomem(call);
        p->levels = levels;
        p->levels_room = room;
    }
    p->levels[p->depth].values = 0;
    p->levels[p->depth++].is_map = (uint64_t)is_map;
    p->where = is_map ? AT_FIRST_KEY : AT_FIRST_VALUE;
    return TAME_MORE;
}

#endif
