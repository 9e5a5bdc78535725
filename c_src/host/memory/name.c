/* Names, see name.h. */
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
