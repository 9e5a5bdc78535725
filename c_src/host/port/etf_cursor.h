/* Reading the external term format piece by piece, as bytes: no term is made. */
#ifndef TAME_HOST_ETF_CURSOR_H
#define TAME_HOST_ETF_CURSOR_H

#include <stddef.h>
#include <stdint.h>

#include "ring/etf_tags.h"

/* A place in bytes; bad once something was not as expected, and then stays so. */
struct etf_cursor {
    const unsigned char *at, *end;
    int bad;
};

/* NULL when bad. */
static inline const unsigned char *etf_bytes(struct etf_cursor *cursor, size_t size)
{
    const unsigned char *bytes = cursor->at;

    if (cursor->bad || size > (size_t)(cursor->end - cursor->at)) {
        cursor->bad = 1;
        return NULL;
    }
    cursor->at += size;
    return bytes;
}

/* An unsigned number of size bytes; 0 when bad. */
static inline uint64_t etf_number(struct etf_cursor *cursor, size_t size)
{
    const unsigned char *bytes = etf_bytes(cursor, size);
    uint64_t value = 0;

    for (size_t i = 0; bytes != NULL && i < size; i++)
        value = value << 8 | bytes[i];
    return value;
}

static inline uint64_t etf_u8(struct etf_cursor *cursor)
{
    return etf_number(cursor, 1);
}

static inline uint64_t etf_u16(struct etf_cursor *cursor)
{
    return etf_number(cursor, 2);
}

static inline uint64_t etf_u32(struct etf_cursor *cursor)
{
    return etf_number(cursor, 4);
}

static inline uint64_t etf_u64(struct etf_cursor *cursor)
{
    return etf_number(cursor, 8);
}

/* In bytes. */
static inline size_t etf_left(const struct etf_cursor *cursor)
{
    return (size_t)(cursor->end - cursor->at);
}

/* An atom as UTF-8, in buffer of 2 * ATOM_CHARS_MAX bytes or in place. NULL when bad. */
const unsigned char *etf_atom(struct etf_cursor *cursor, unsigned char *buffer, size_t *size);
size_t etf_tuple(struct etf_cursor *cursor); /* arity */
int64_t etf_integer(struct etf_cursor *cursor);

/* The same behind its tag. */
const unsigned char *etf_atom_text(struct etf_cursor *cursor, unsigned tag, unsigned char *buffer,
                                   size_t *size);

/* The bytes of one whole term, passed over. NULL when bad. */
const unsigned char *etf_skip(struct etf_cursor *cursor, size_t *size);

#endif
