/* Bytes of JSON strings: which end a run, which are UTF-8, and what an escape stands for. Plain C: no
 * ErlNifEnv. */
#ifndef JSON_TEXT_H
#define JSON_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* How many bytes from the first on are printable ASCII but no quote and no backslash; whole eights
 * only, so 0 may mean "look yourself". */
static inline size_t text_plain(const unsigned char *bytes, size_t size)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), highs = ones * 0x80;
    size_t at = 0;

    for (; at + 8 <= size; at += 8) {
        uint64_t eight, quote, slash;

        memcpy(&eight, bytes + at, 8);
        quote = eight ^ (ones * '"');
        slash = eight ^ (ones * '\\');
        /* A byte's high bit is set where it is zero in quote or slash, or below 0x20, or is high
         * itself; a borrow may set one more above it, which costs no more than a look. */
        if ((((quote - ones) & ~quote) | ((slash - ones) & ~slash) | (eight - ones * 0x20) |
             eight) &
            highs)
            break;
    }
    return at;
}

/* A sequence of UTF-8 (RFC 3629) that is being read; zeros between two. */
struct utf8 {
    unsigned char need, low, high; /* bytes to come, and between which the next must be */
};

/* Takes one byte. Returns 0 when it is wrong. */
static inline int utf8_next(struct utf8 *u, unsigned char byte)
{
    if (u->need > 0) {
        if (byte < u->low || byte > u->high)
            return 0;
        u->need--;
        u->low = 0x80;
        u->high = 0xBF;
        return 1;
    }
    if (byte < 0x80)
        return 1;
    if (byte < 0xC2 || byte > 0xF4)
        return 0;
    u->need = byte < 0xE0 ? 1 : byte < 0xF0 ? 2 : 3;
    u->low = byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0x80;
    u->high = byte == 0xED ? 0x9F : byte == 0xF4 ? 0x8F : 0xBF;
    return 1;
}

/* Writes a code point; returns how many bytes it takes. */
static inline size_t utf8_write(unsigned char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (unsigned char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (unsigned char)(0xC0 | code >> 6);
        to[1] = (unsigned char)(0x80 | (code & 0x3F));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (unsigned char)(0xE0 | code >> 12);
        to[1] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
        to[2] = (unsigned char)(0x80 | (code & 0x3F));
        return 3;
    }
    to[0] = (unsigned char)(0xF0 | code >> 18);
    to[1] = (unsigned char)(0x80 | (code >> 12 & 0x3F));
    to[2] = (unsigned char)(0x80 | (code >> 6 & 0x3F));
    to[3] = (unsigned char)(0x80 | (code & 0x3F));
    return 4;
}

/* The value of a hexadecimal digit; -1 when it is none. */
static inline int hex_value(unsigned char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

#endif
