/* A place in bytes, see etf_cursor.h. The bytes may be hostile. */
#include "memory/name.h"
#include "port/etf_cursor.h"

const unsigned char *etf_atom_text(struct etf_cursor *cursor, unsigned tag, unsigned char *buffer,
                                   size_t *size)
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
    return etf_atom_text(cursor, (unsigned)tag, buffer, size);
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

/* How a term of a tag is passed over: the bytes of its length, what one of that length takes, and
 * the bytes that it has besides. */
struct shape {
    unsigned char length_bytes;
    enum { UNKNOWN, FIXED, BYTES, TERMS, PAIRS, NODE, NODE_WORDS, SELF_COUNTED } what;
    unsigned char more;
};

/* ETF_FUN went with OTP 23; no VM that we run with writes it. */
static const struct shape shapes[256] = {
    [ETF_SMALL_INTEGER] = {0, FIXED, 1},
    [ETF_INTEGER] = {0, FIXED, 4},
    [ETF_NEW_FLOAT] = {0, FIXED, 8},
    [ETF_FLOAT] = {0, FIXED, 31},
    [ETF_NIL] = {0, FIXED, 0},
    [ETF_SMALL_ATOM] = {1, BYTES, 0},
    [ETF_SMALL_ATOM_UTF8] = {1, BYTES, 0},
    [ETF_ATOM] = {2, BYTES, 0},
    [ETF_ATOM_UTF8] = {2, BYTES, 0},
    [ETF_STRING] = {2, BYTES, 0},
    [ETF_BINARY] = {4, BYTES, 0},
    [ETF_BIT_BINARY] = {4, BYTES, 1},
    [ETF_SMALL_BIG] = {1, BYTES, 1},
    [ETF_LARGE_BIG] = {4, BYTES, 1},
    [ETF_NEW_FUN] = {4, SELF_COUNTED, 0},
    [ETF_SMALL_TUPLE] = {1, TERMS, 0},
    [ETF_LARGE_TUPLE] = {4, TERMS, 0},
    [ETF_LIST] = {4, TERMS, 1},
    [ETF_EXPORT] = {0, TERMS, 3},
    [ETF_MAP] = {4, PAIRS, 0},
    [ETF_NEW_PID] = {0, NODE, 12},
    [ETF_V4_PORT] = {0, NODE, 12},
    [ETF_PID] = {0, NODE, 9},
    [ETF_NEW_PORT] = {0, NODE, 8},
    [ETF_PORT] = {0, NODE, 5},
    [ETF_REFERENCE] = {0, NODE, 5},
    [ETF_NEW_REFERENCE] = {2, NODE_WORDS, 1},
    [ETF_NEWER_REFERENCE] = {2, NODE_WORDS, 4},
};

/* Passes over one term but for those in it. Returns how many these are. */
static uint64_t skip_one(struct etf_cursor *cursor)
{
    const struct shape *shape = &shapes[etf_u8(cursor)];
    uint64_t len = etf_number(cursor, shape->length_bytes);

    switch (shape->what) {
    case FIXED:
    case BYTES:
        etf_bytes(cursor, len + shape->more);
        return 0;
    case SELF_COUNTED: /* its length, too */
        if (len < shape->length_bytes)
            break;
        etf_bytes(cursor, len - shape->length_bytes);
        return 0;
    case TERMS:
        return len + shape->more;
    case PAIRS:
        return 2 * len;
    case NODE:
    case NODE_WORDS: {
        unsigned char buffer[2 * ATOM_CHARS_MAX];
        etf_atom(cursor, buffer, &(size_t){0});
        etf_bytes(cursor, shape->more + 4 * len);
        return 0;
    }
    case UNKNOWN:
        break;
    }
    cursor->bad = 1;
    return 0;
}

const unsigned char *etf_skip(struct etf_cursor *cursor, size_t *size)
{
    const unsigned char *start = cursor->at;

    /* left: terms still to pass over. */
    for (uint64_t left = 1; left > 0 && !cursor->bad; left--) {
        left += skip_one(cursor);
        if (left > etf_left(cursor) + 1)
            cursor->bad = 1;
    }
    *size = (size_t)(cursor->at - start);
    return cursor->bad ? NULL : start;
}
