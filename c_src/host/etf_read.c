/* Reading the external term format, see etf.h. The bytes may be hostile: a library hands us what it
 * got from a network (enif_binary_to_term). */
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "binary.h"
#include "env.h"
#include "etf.h"
#include "host.h"
#include "lease.h"
#include "map.h"
#include "query.h"
#include "resource.h"

/* Not a bound of the format, but of good sense: no bignum of the VM is larger. */
#define BIG_BYTES_MAX (1u << 23)

/* Funs within funs within ... of a term that does not come from the VM: each takes C stack. */
#define FUN_DEPTH_MAX 32

/* ---- a cursor ------------------------------------------------------------------------- */

const unsigned char *etf_bytes(struct etf_cursor *cursor, size_t size)
{
    const unsigned char *bytes = cursor->at;

    if (cursor->bad || size > (size_t)(cursor->end - cursor->at)) {
        cursor->bad = 1;
        return NULL;
    }
    cursor->at += size;
    return bytes;
}

static uint64_t get(struct etf_cursor *cursor, size_t size)
{
    const unsigned char *bytes = etf_bytes(cursor, size);
    uint64_t value = 0;

    for (size_t i = 0; bytes != NULL && i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

uint64_t etf_u8(struct etf_cursor *cursor)
{
    return get(cursor, 1);
}

uint64_t etf_u16(struct etf_cursor *cursor)
{
    return get(cursor, 2);
}

uint64_t etf_u32(struct etf_cursor *cursor)
{
    return get(cursor, 4);
}

uint64_t etf_u64(struct etf_cursor *cursor)
{
    return get(cursor, 8);
}

static size_t left_bytes(const struct etf_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

static const unsigned char *atom_text(struct etf_cursor *cursor, unsigned tag,
                                      unsigned char *buffer, size_t *size)
{
    int latin1 = tag == ETF_ATOM || tag == ETF_SMALL_ATOM;
    size_t len = tag == ETF_ATOM || tag == ETF_ATOM_UTF8 ? etf_u16(cursor) : etf_u8(cursor);
    const unsigned char *bytes = etf_bytes(cursor, len);

    if (len > (latin1 ? ATOM_CHARS_MAX : ATOM_BYTES_MAX)) {
        cursor->bad = 1;
        return NULL;
    }
    if (bytes == NULL || !latin1) {
        *size = len;
        return bytes;
    }
    *size = latin1_to_utf8(bytes, len, buffer);
    return buffer;
}

static int is_atom_tag(uint64_t tag)
{
    return tag == ETF_ATOM || tag == ETF_SMALL_ATOM || tag == ETF_ATOM_UTF8 ||
           tag == ETF_SMALL_ATOM_UTF8;
}

const unsigned char *etf_atom(struct etf_cursor *cursor, unsigned char *buffer, size_t *size)
{
    uint64_t tag = etf_u8(cursor);

    if (cursor->bad || !is_atom_tag(tag)) {
        cursor->bad = 1;
        return NULL;
    }
    return atom_text(cursor, (unsigned)tag, buffer, size);
}

size_t etf_tuple(struct etf_cursor *cursor)
{
    switch (etf_u8(cursor)) {
    case ETF_SMALL_TUPLE:
        return etf_u8(cursor);
    case ETF_LARGE_TUPLE:
        return etf_u32(cursor);
    default:
        cursor->bad = 1;
        return 0;
    }
}

int64_t etf_integer(struct etf_cursor *cursor)
{
    uint64_t value = 0, tag = etf_u8(cursor);

    if (tag == ETF_SMALL_INTEGER)
        return (int64_t)etf_u8(cursor);
    if (tag == ETF_INTEGER)
        return (int32_t)etf_u32(cursor);
    if (tag == ETF_SMALL_BIG) {
        size_t len = etf_u8(cursor);
        uint64_t negative = etf_u8(cursor);
        const unsigned char *bytes = etf_bytes(cursor, len);
        if (bytes != NULL && len <= 8) {
            for (size_t i = len; i-- > 0;)
                value = value << 8 | bytes[i];
            return negative ? (int64_t)-value : (int64_t)value;
        }
    }
    cursor->bad = 1;
    return 0;
}

/* ---- passing over --------------------------------------------------------------------- */

const unsigned char *etf_skip(struct etf_cursor *cursor, size_t *size)
{
    const unsigned char *start = cursor->at;
    uint64_t left = 1; /* terms still to pass over */

    for (; left > 0 && !cursor->bad; left--) {
        uint64_t tag = etf_u8(cursor), len;

        switch (tag) {
        case ETF_SMALL_INTEGER:
            etf_bytes(cursor, 1);
            break;
        case ETF_INTEGER:
            etf_bytes(cursor, 4);
            break;
        case ETF_NEW_FLOAT:
            etf_bytes(cursor, 8);
            break;
        case ETF_FLOAT:
            etf_bytes(cursor, 31);
            break;
        case ETF_SMALL_ATOM:
        case ETF_SMALL_ATOM_UTF8:
            etf_bytes(cursor, etf_u8(cursor));
            break;
        case ETF_ATOM:
        case ETF_ATOM_UTF8:
        case ETF_STRING:
            etf_bytes(cursor, etf_u16(cursor));
            break;
        case ETF_BINARY:
            etf_bytes(cursor, etf_u32(cursor));
            break;
        case ETF_BIT_BINARY:
            len = etf_u32(cursor);
            etf_bytes(cursor, len + 1);
            break;
        case ETF_SMALL_BIG:
            len = etf_u8(cursor);
            etf_bytes(cursor, len + 1);
            break;
        case ETF_LARGE_BIG:
            len = etf_u32(cursor);
            etf_bytes(cursor, len + 1);
            break;
        case ETF_NIL:
            break;
        case ETF_SMALL_TUPLE:
            left += etf_u8(cursor);
            break;
        case ETF_LARGE_TUPLE:
            left += etf_u32(cursor);
            break;
        case ETF_LIST:
            left += etf_u32(cursor) + 1;
            break;
        case ETF_MAP:
            left += 2 * etf_u32(cursor);
            break;
        case ETF_NEW_PID: /* the node, then a fixed part; so are the next ones */
        case ETF_PID:
        case ETF_NEW_PORT:
        case ETF_PORT:
        case ETF_V4_PORT:
        case ETF_REFERENCE: {
            unsigned char buffer[2 * ATOM_CHARS_MAX];
            etf_atom(cursor, buffer, &(size_t){0});
            etf_bytes(cursor, tag == ETF_NEW_PID || tag == ETF_V4_PORT ? 12
                              : tag == ETF_PID                         ? 9
                              : tag == ETF_NEW_PORT                    ? 8
                                                                       : 5);
            break;
        }
        case ETF_NEW_REFERENCE:
        case ETF_NEWER_REFERENCE: {
            unsigned char buffer[2 * ATOM_CHARS_MAX];
            len = etf_u16(cursor);
            etf_atom(cursor, buffer, &(size_t){0});
            etf_bytes(cursor, (tag == ETF_NEW_REFERENCE ? 1 : 4) + 4 * len);
            break;
        }
        case ETF_NEW_FUN:
            len = etf_u32(cursor); /* counts itself */
            if (len < 4)
                cursor->bad = 1;
            else
                etf_bytes(cursor, len - 4);
            break;
        case ETF_EXPORT:
            left += 3;
            break;
        default: /* ETF_FUN went with OTP 23; no VM that we run with writes it */
            cursor->bad = 1;
        }
        if (left > left_bytes(cursor) + 1)
            cursor->bad = 1;
    }
    *size = (size_t)(cursor->at - start);
    return cursor->bad ? NULL : start;
}

/* ---- reading -------------------------------------------------------------------------- */

struct reader {
    ErlNifEnv *env;
    int depth; /* of funs in funs */
    struct etf_cursor cursor;
    int flags;
    struct work work;
    struct box_map *unchecked;
    const unsigned char *stay_end; /* where the room behind the last binary that stays ends */
};

/* left places to fill, stride words apart; a step of -2 with pair set fills a large map, which
 * comes in the reverse of its order, from behind. */
struct place {
    term *to;
    size_t left;
    int stride; /* 1, 2, or 0: a pair at to, then the pair before it */
    int value;  /* with stride 0: the value of the pair is next */
};

static void push_place(struct reader *reader, term *to, size_t left, int stride)
{
    if (left > 0)
        *(struct place *)work_push(&reader->work) = (struct place){to, left, stride, 0};
}

static size_t read_at_depth(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags,
                            int depth, term *out);

static term bad(struct reader *reader)
{
    reader->cursor.bad = 1;
    return TERM_NONE;
}

static term read_atom(struct reader *reader, unsigned tag)
{
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    size_t size;
    const unsigned char *name = atom_text(&reader->cursor, tag, buffer, &size);
    term atom;

    if (name == NULL)
        return bad(reader);
    if (reader->flags & ETF_SAFE) {
        atom = atom_find(name, size);
        if (atom == TERM_NONE && !query_existing_atom(name, size))
            return bad(reader);
    }
    atom = atom_make(name, size, (reader->flags & (ETF_TRUSTED | ETF_SAFE)) != 0);
    return atom == TERM_NONE ? bad(reader) : atom;
}

static term read_big(struct reader *reader, size_t len)
{
    uint64_t negative = etf_u8(&reader->cursor);
    const unsigned char *bytes = etf_bytes(&reader->cursor, len);
    uint64_t few[4] = {0}, *digits = few;

    if (bytes == NULL || len > BIG_BYTES_MAX)
        return bad(reader);
    if (len > sizeof few) {
        digits = host_malloc(len + 8);
        memset(digits, 0, len + 8);
    }
    for (size_t i = 0; i < len; i++)
        digits[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
    term big = term_big(reader->env, negative != 0, digits, (len + 7) / 8);
    if (digits != few)
        free(digits);
    return big;
}

static term read_float(struct reader *reader, unsigned tag)
{
    double value;

    if (tag == ETF_NEW_FLOAT) {
        uint64_t bits = etf_u64(&reader->cursor);
        memcpy(&value, &bits, sizeof value);
    } else {
        char text[32] = {0};
        const unsigned char *bytes = etf_bytes(&reader->cursor, 31);
        char *end;
        if (bytes == NULL)
            return bad(reader);
        memcpy(text, bytes, 31);
        value = strtod(text, &end);
        if (end == text)
            return bad(reader);
    }
    return isfinite(value) ? term_float(reader->env, value) : bad(reader);
}

/* Whether a binary can be handed to a library where it stands: the VM's are aligned for any type of
 * C, and a library may write a little too far. So there must be room behind it. */
static int can_stay(struct reader *reader, const unsigned char *bytes, size_t size)
{
    if ((uintptr_t)bytes % BINARY_ALIGN_BYTES != 0 ||
        (size_t)(reader->cursor.end - bytes) < size + BINARY_SLACK_BYTES)
        return 0;
    reader->stay_end = bytes + size + BINARY_SLACK_BYTES;
    return 1;
}

static term read_binary(struct reader *reader, unsigned tag)
{
    size_t size = etf_u32(&reader->cursor);
    unsigned bits = tag == ETF_BIT_BINARY ? (unsigned)etf_u8(&reader->cursor) : 8;
    const unsigned char *bytes = etf_bytes(&reader->cursor, size);

    if (bytes == NULL || bits > 8 || (size > 0) > bits || (size == 0 && bits != 0 && bits != 8))
        return bad(reader);
    if (size <= BINARY_SHARE_BYTES)
        return term_small_binary(reader->env, bytes, size, bits & 7);
    /* Not what begins in the room behind one that stays. */
    if ((reader->flags & ETF_BORROW) && bytes >= reader->stay_end) {
        term lent = term_binary(reader->env, bytes, size, bits & 7, NULL);
        if (!can_stay(reader, bytes, size))
            ((struct box_binary *)box_of(lent))->header = box_header(BOX_BINARY, BINARY_LENT);
        return lent;
    }
    struct binary *binary = binary_new(size);
    memcpy(binary->data, bytes, size);
    term made = term_binary(reader->env, binary->data, size, bits & 7, &binary->shared);
    shared_drop(&binary->shared); /* the environment keeps it now */
    return made;
}

static term read_tuple(struct reader *reader, size_t arity)
{
    term *elements, tuple;

    if (arity > left_bytes(&reader->cursor))
        return bad(reader);
    tuple = term_new_tuple(reader->env, arity, &elements);
    push_place(reader, elements, arity, 1);
    return tuple;
}

static term read_string(struct reader *reader)
{
    size_t len = etf_u16(&reader->cursor);
    const unsigned char *bytes = etf_bytes(&reader->cursor, len);

    if (bytes == NULL || len == 0)
        return bytes == NULL ? bad(reader) : TERM_NIL;
    term *cells = env_alloc(reader->env, 2 * len * sizeof(term));
    for (size_t i = 0; i < len; i++) {
        cells[2 * i] = make_small(bytes[i]);
        cells[2 * i + 1] = make_cell(cells + 2 * i + 2);
    }
    cells[2 * len - 1] = TERM_NIL;
    return make_cell(cells);
}

static term read_list(struct reader *reader)
{
    size_t len = etf_u32(&reader->cursor);

    if (len > left_bytes(&reader->cursor))
        return bad(reader);
    if (len == 0) { /* only its tail comes */
        term *box = env_alloc(reader->env, sizeof *box);
        (void)box;
        return etf_u8(&reader->cursor) == ETF_NIL ? TERM_NIL : bad(reader);
    }
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

    if (len > left_bytes(&reader->cursor) / 2)
        return bad(reader);
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

/* Whether the VM reads this as an identifier of its own: what it never gave out it refuses, and a
 * reply with it would be none. Up to OTP 25 it looks at more bits. */
static int is_of_vm(unsigned tag, uint64_t id, uint64_t serial, const uint32_t *words, size_t len)
{
    int old = host.otp_release < 26;

    if (len > 0)
        return len != 4 && words[0] < 1u << 18;
    if (tag == ETF_NEW_PID || tag == ETF_PID)
        return id < 1u << (old ? 15 : 28) && serial < UINT64_C(1) << (old ? 13 : 32);
    return id < UINT64_C(1) << (old ? 28 : 60);
}

/* Pids, ports and references: start is where their tag stands. */
static term read_identifier(struct reader *reader, unsigned tag, const unsigned char *start)
{
    struct etf_cursor *cursor = &reader->cursor;
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    size_t size, len = 0;
    uint64_t id = 0, serial = 0, creation;
    uint32_t words[REF_WORDS_MAX] = {0};

    if (tag == ETF_NEW_REFERENCE || tag == ETF_NEWER_REFERENCE)
        len = etf_u16(cursor);
    const unsigned char *node = etf_atom(cursor, buffer, &size);
    if (len > REF_WORDS_MAX ||
        (len == 0 && (tag == ETF_NEW_REFERENCE || tag == ETF_NEWER_REFERENCE)))
        return bad(reader);

    int wide = tag == ETF_NEW_PID || tag == ETF_NEW_PORT || tag == ETF_V4_PORT ||
               tag == ETF_NEWER_REFERENCE;
    if (tag == ETF_V4_PORT)
        id = etf_u64(cursor);
    else if (len == 0)
        id = etf_u32(cursor);
    if (tag == ETF_NEW_PID || tag == ETF_PID)
        serial = etf_u32(cursor);
    creation = wide ? etf_u32(cursor) : etf_u8(cursor);
    if (tag == ETF_REFERENCE) {
        words[0] = (uint32_t)id;
        len = 1;
    } else {
        for (size_t i = 0; i < len; i++)
            words[i] = (uint32_t)etf_u32(cursor);
    }
    if (cursor->bad)
        return TERM_NONE;

    int is_pid = tag == ETF_NEW_PID || tag == ETF_PID, is_ref = len > 0;
    if (host_is_this_node(node, size, (uint32_t)creation, (reader->flags & ETF_ASK) != 0)) {
        if ((reader->flags & ETF_TRUSTED) == 0 && !is_of_vm(tag, id, serial, words, len))
            return bad(reader);
        if (is_ref)
            return resource_or_ref(reader->env, words, len);
        if (is_pid && id < 1u << 28)
            return (serial << 28 | id) << 4 | 3;
        if (!is_pid && id < UINT64_C(1) << 60)
            return id << 4 | 7;
    }
    if (atom_make(node, size, (reader->flags & ETF_TRUSTED) != 0) == TERM_NONE)
        return bad(reader); /* the node's name is no atom */
    return term_opaque(reader->env, BOX_FOREIGN,
                       is_ref   ? ERL_NIF_TERM_TYPE_REFERENCE
                       : is_pid ? ERL_NIF_TERM_TYPE_PID
                                : ERL_NIF_TERM_TYPE_PORT,
                       start, (size_t)(cursor->at - start));
}

/* Whether the next term in cursor reads, and is of this type (-1: any). It is thrown away. */
static int check_term(struct reader *reader, struct etf_cursor *cursor, int type)
{
    term made;
    size_t taken = read_at_depth(reader->env, cursor->at, left_bytes(cursor),
                                 reader->flags & ~ETF_BORROW, reader->depth + 1, &made);

    cursor->at += taken;
    return taken > 0 && (type < 0 || (int)enif_term_type(reader->env, made) == type);
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
    if (cursor.bad || free_len > left_bytes(&cursor) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_ATOM) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_INTEGER) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_INTEGER) ||
        !check_term(reader, &cursor, ERL_NIF_TERM_TYPE_PID))
        return 0;
    while (free_len-- > 0) {
        if (!check_term(reader, &cursor, -1))
            return 0;
    }
    return left_bytes(&cursor) == 0;
}

static term read_fun(struct reader *reader, const unsigned char *start)
{
    size_t size;

    reader->cursor.at = start;
    if (etf_skip(&reader->cursor, &size) == NULL ||
        ((reader->flags & ETF_TRUSTED) == 0 && !check_fun(reader, start, size)))
        return bad(reader);
    return term_opaque(reader->env, BOX_FUN, ERL_NIF_TERM_TYPE_FUN, start, size);
}

static term read_one(struct reader *reader)
{
    struct etf_cursor *cursor = &reader->cursor;
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
        return read_big(reader, etf_u8(cursor));
    case ETF_LARGE_BIG:
        return read_big(reader, etf_u32(cursor));
    case ETF_NEW_FLOAT:
    case ETF_FLOAT:
        return read_float(reader, tag);
    case ETF_ATOM:
    case ETF_SMALL_ATOM:
    case ETF_ATOM_UTF8:
    case ETF_SMALL_ATOM_UTF8:
        return read_atom(reader, tag);
    case ETF_BINARY:
    case ETF_BIT_BINARY:
        return read_binary(reader, tag);
    case ETF_SMALL_TUPLE:
        return read_tuple(reader, etf_u8(cursor));
    case ETF_LARGE_TUPLE:
        return read_tuple(reader, etf_u32(cursor));
    case ETF_NIL:
        return TERM_NIL;
    case ETF_STRING:
        return read_string(reader);
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
        return read_identifier(reader, tag, start);
    case ETF_NEW_FUN:
    case ETF_EXPORT:
        return read_fun(reader, start);
    default:
        return bad(reader);
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

/* Compressed terms: by the libz that the VM has too; it is not linked, because it is rarely used.
 */
static size_t read_compressed(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags,
                              term *out)
{
    struct etf_cursor cursor = {bytes, bytes + size, 0};
    unsigned long inflated_size = etf_u32(&cursor), compressed_size = left_bytes(&cursor);
    void *libz = dlopen("libz.so.1", RTLD_NOW | RTLD_LOCAL);
    int (*inflate)(unsigned char *, unsigned long *, const unsigned char *, unsigned long *) = NULL;
    size_t taken = 0;

    if (libz != NULL)
        *(void **)&inflate = dlsym(libz, "uncompress2");
    /* deflate makes a thousandth of a text at best */
    if (cursor.bad || inflate == NULL || inflated_size / 1100 > compressed_size)
        return 0;
    unsigned char *inflated = host_malloc(inflated_size + 1);
    unsigned long got_size = inflated_size;
    if (inflate(inflated, &got_size, cursor.at, &compressed_size) == 0 &&
        got_size == inflated_size && inflated_size > 0 && inflated[0] != ETF_COMPRESSED &&
        inflated[0] != ETF_VERSION &&
        etf_read(env, inflated, inflated_size, flags & ~ETF_BORROW, out) == inflated_size)
        taken = 4 + compressed_size;
    free(inflated);
    return taken;
}

static size_t read_at_depth(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags,
                            int depth, term *out)
{
    struct reader reader = {
        .env = env, .depth = depth, .cursor = {bytes, bytes + size, 0}, .flags = flags};
    term *to = out;

    if (depth > FUN_DEPTH_MAX)
        return 0;
    if (depth == 0 && size > 0 && bytes[0] == ETF_VERSION) {
        reader.cursor.at++;
        if (size > 1 && bytes[1] == ETF_COMPRESSED) {
            size_t taken = read_compressed(env, bytes + 2, size - 2, flags, out);
            return taken == 0 ? 0 : taken + 2;
        }
    }
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
