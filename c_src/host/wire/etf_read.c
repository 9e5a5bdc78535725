/* Reading the external term format, see etf.h. The bytes may be hostile: a library hands us what it
 * got from a network (enif_binary_to_term). */
#include <string.h>

#include "term/map.h"
#include "wire/etf_reader.h"

/* Funs within funs within ... of a term that does not come from the VM: each takes C stack. */
#define FUN_DEPTH_MAX 32

/* left places to fill, stride words apart. With stride 0 they are the pairs of a large map, which
 * come in the reverse of its order: the pair at to, then the one before it. */
struct place {
    term *to;
    size_t left;
    int stride; /* 1, 2 or 0 */
    int value;  /* with stride 0: the value of the pair is next */
};

static void push_place(struct reader *reader, term *to, size_t left, int stride)
{
    if (left > 0)
        *(struct place *)work_push(&reader->work) = (struct place){to, left, stride, 0};
}

static size_t read_at_depth(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags,
                            int depth, term *out);

static term read_tuple(struct reader *reader, size_t arity)
{
    term *elements, tuple;

    if (arity > etf_left(&reader->cursor))
        return etf_bad(reader);
    tuple = term_new_tuple(reader->env, arity, &elements);
    push_place(reader, elements, arity, 1);
    return tuple;
}

static term read_list(struct reader *reader)
{
    size_t len = etf_u32(&reader->cursor);

    if (len == 0 || len > etf_left(&reader->cursor))
        return etf_bad(reader);
    term *cells = env_alloc(reader->env, 2 * len * sizeof(term));
    for (size_t i = 0; i + 1 < len; i++)
        cells[2 * i + 1] = make_cell(cells + 2 * i + 2);
    push_place(reader, cells + 2 * len - 1, 1, 1);
    push_place(reader, cells, len, 2);
    return make_cell(cells);
}

static term read_map(struct reader *reader)
{
    size_t len = etf_u32(&reader->cursor);
    term *pairs, map;
    int trusted = (reader->flags & ETF_TRUSTED) != 0;

    if (len > etf_left(&reader->cursor) / 2)
        return etf_bad(reader);
    map = map_new(reader->env, len, trusted, &pairs);
    if (len > MAP_FLAT_LEN)
        push_place(reader, pairs + 2 * (len - 1), 2 * len, 0);
    else
        push_place(reader, pairs, 2 * len, 1);
    if (!trusted && len > 0) {
        struct box_map *box = box_of(map);
        box->unchecked = reader->unchecked;
        reader->unchecked = box;
    }
    return map;
}

/* Whether the next term in cursor reads, and is of this type (-1: any). It is thrown away. */
static int check_term(struct reader *reader, struct etf_cursor *cursor, int type)
{
    term made;
    size_t taken = read_at_depth(reader->env, cursor->at, etf_left(cursor),
                                 reader->flags & ~ETF_BORROW, reader->depth + 1, &made);

    cursor->at += taken;
    return taken > 0 && (type < 0 || (int)term_type(made) == type);
}

/* A fun is carried unread, so what a library got from anywhere is looked at once: what goes out to
 * the VM must be a term. */
static int check_fun(struct reader *reader, const unsigned char *bytes, size_t size)
{
    struct etf_cursor cursor = {bytes + 1, bytes + size, 0};

    if (bytes[0] == ETF_EXPORT)
        return check_term(reader, &cursor, ERL_NIF_TERM_TYPE_ATOM) &&
               check_term(reader, &cursor, ERL_NIF_TERM_TYPE_ATOM) &&
               *cursor.at == ETF_SMALL_INTEGER;
    etf_bytes(&cursor, 4 + 1 + 16 + 4); /* size, arity, checksum, index */
    uint64_t free_len = etf_u32(&cursor);
    if (cursor.bad || free_len > etf_left(&cursor) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_ATOM) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_INTEGER) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_INTEGER) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_PID))
        return 0;
    while (free_len-- > 0) {
        if (!check_term(reader, &cursor, -1))
            return 0;
    }
    return etf_left(&cursor) == 0;
}

static term read_fun(struct reader *reader, const unsigned char *start)
{
    size_t size;

    reader->cursor.at = start;
    if (etf_skip(&reader->cursor, &size) == NULL ||
        ((reader->flags & ETF_TRUSTED) == 0 && !check_fun(reader, start, size)))
        return etf_bad(reader);
    return term_opaque(reader->env, BOX_FUN, ERL_NIF_TERM_TYPE_FUN, start, size);
}

/* A list of no elements is its tail. */
static void skip_empty_lists(struct etf_cursor *cursor)
{
    static const unsigned char empty[] = {ETF_LIST, 0, 0, 0, 0};

    while (etf_left(cursor) > sizeof empty && memcmp(cursor->at, empty, sizeof empty) == 0)
        cursor->at += sizeof empty;
}

static term read_one(struct reader *reader)
{
    struct etf_cursor *cursor = &reader->cursor;

    skip_empty_lists(cursor);
    const unsigned char *start = cursor->at;
    unsigned tag = (unsigned)etf_u8(cursor);

    if (cursor->bad)
        return TERM_NONE;
    switch (tag) {
    case ETF_SMALL_INTEGER:
        return make_small((int64_t)etf_u8(cursor));
    case ETF_INTEGER:
        return make_small((int32_t)etf_u32(cursor));
    case ETF_SMALL_BIG:
        return etf_read_big(reader, etf_u8(cursor));
    case ETF_LARGE_BIG:
        return etf_read_big(reader, etf_u32(cursor));
    case ETF_NEW_FLOAT:
    case ETF_FLOAT:
        return etf_read_float(reader, tag);
    case ETF_ATOM:
    case ETF_SMALL_ATOM:
    case ETF_ATOM_UTF8:
    case ETF_SMALL_ATOM_UTF8:
        return etf_read_atom(reader, tag);
    case ETF_BINARY:
    case ETF_BIT_BINARY:
        return etf_read_binary(reader, tag);
    case ETF_SMALL_TUPLE:
        return read_tuple(reader, etf_u8(cursor));
    case ETF_LARGE_TUPLE:
        return read_tuple(reader, etf_u32(cursor));
    case ETF_NIL:
        return TERM_NIL;
    case ETF_STRING:
        return etf_read_string(reader);
    case ETF_LIST:
        return read_list(reader);
    case ETF_MAP:
        return read_map(reader);
    case ETF_NEW_PID:
    case ETF_PID:
    case ETF_NEW_PORT:
    case ETF_PORT:
    case ETF_V4_PORT:
    case ETF_REFERENCE:
    case ETF_NEW_REFERENCE:
    case ETF_NEWER_REFERENCE:
        return etf_read_identifier(reader, tag, start);
    case ETF_NEW_FUN:
    case ETF_EXPORT:
        return read_fun(reader, start);
    default:
        return etf_bad(reader);
    }
}

/* The next place to fill, or NULL. */
static term *next_place(struct reader *reader)
{
    struct place *top = work_top(&reader->work);
    term *to;

    if (top == NULL)
        return NULL;
    to = top->to;
    if (top->stride > 0) {
        top->to += top->stride;
    } else {
        to += top->value;
        if (top->value && top->left > 1)
            top->to -= 2;
        top->value = !top->value;
    }
    if (--top->left == 0)
        work_pop(&reader->work);
    return to;
}

/* Maps that do not come from the VM: sorted, and no key twice. The inner ones stand first in the
 * list, and must be in order before an outer one that has them as keys is looked at. */
static int check_maps(struct reader *reader)
{
    for (struct box_map *map = reader->unchecked; map != NULL; map = map->unchecked) {
        if (!map_normalise(reader->env, make_boxed(map)))
            return 0;
    }
    return 1;
}

static size_t read_at_depth(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags,
                            int depth, term *out)
{
    struct reader reader;
    term *to = out;

    /* Field by field: the room for work is a kilobyte, which needs no zeros. */
    reader.env = env;
    reader.depth = depth;
    reader.cursor = (struct etf_cursor){bytes, bytes + size, 0};
    reader.flags = flags;
    reader.unchecked = NULL;
    reader.stay_end = NULL;

    if (depth > FUN_DEPTH_MAX)
        return 0;
    if (depth == 0 && size > 0 && bytes[0] == ETF_VERSION)
        reader.cursor.at++;
    *out = TERM_NIL;
    work_init(&reader.work, sizeof(struct place));
    while (to != NULL && !reader.cursor.bad) {
        *to = read_one(&reader);
        to = next_place(&reader);
    }
    work_free(&reader.work);
    if (reader.cursor.bad || !check_maps(&reader))
        return 0;
    return (size_t)(reader.cursor.at - bytes);
}

size_t etf_read(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags, term *out)
{
    return read_at_depth(env, bytes, size, flags, 0, out);
}
