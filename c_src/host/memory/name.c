/* Names, see name.h. */
#include <string.h>

#include "memory/alloc.h"
#include "memory/name.h"

size_t latin1_to_utf8(const unsigned char *latin1, size_t size, unsigned char *utf8)
{
    size_t out = 0;

    for (size_t i = 0; i < size; i++) {
        if (latin1[i] < 0x80) {
            utf8[out++] = latin1[i];
        } else {
            utf8[out++] = (unsigned char)(0xc0 | latin1[i] >> 6);
            utf8[out++] = (unsigned char)(0x80 | (latin1[i] & 0x3f));
        }
    }
    return out;
}

char *name_of_latin1(const char *latin1)
{
    const size_t size = strlen(latin1);
    char *utf8 = host_malloc(2 * size + 1);

    utf8[latin1_to_utf8((const unsigned char *)latin1, size, (unsigned char *)utf8)] = '\0';
    return utf8;
}

size_t utf8_put(int64_t c, unsigned char *utf8)
{
    if (c < 0 || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    if (c < 0x80) {
        utf8[0] = (unsigned char)c;
        return 1;
    }

    const size_t size = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

    for (size_t i = size - 1; i > 0; i--, c >>= 6)
        utf8[i] = (unsigned char)(0x80 | (c & 0x3f));
    utf8[0] = (unsigned char)((0xf00 >> size & 0xff) | c);
    return size;
}

size_t utf8_get(const unsigned char *utf8, size_t size, int64_t *character)
{
    if (size == 0)
        return 0;

    const unsigned char first = utf8[0];
    const size_t len = first < 0x80   ? 1
                       : first < 0xc0 ? 0
                       : first < 0xe0 ? 2
                       : first < 0xf0 ? 3
                                      : 4;
    int64_t c = len == 1 ? first : first & (0x7f >> len);
    unsigned char again[4];

    if (len == 0 || len > size)
        return 0;
    for (size_t i = 1; i < len; i++)
        c = c << 6 | (utf8[i] & 0x3f);
    /* Only what is written in this one way is a character: neither a longer form nor one whose later
     * bytes are no later bytes. */
    if (utf8_put(c, again) != len || memcmp(again, utf8, len) != 0)
        return 0;
    *character = c;
    return len;
}
