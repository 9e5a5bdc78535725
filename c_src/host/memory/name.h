/* The names of atoms: their limits, and Latin-1 as UTF-8. */
#ifndef TAME_HOST_NAME_H
#define TAME_HOST_NAME_H

#include <stddef.h>

#define ATOM_CHARS_MAX 255
#define ATOM_BYTES_MAX (4 * ATOM_CHARS_MAX)

/* Turns size bytes of Latin-1 into UTF-8 of at most 2 * size bytes. Returns its size. */
size_t latin1_to_utf8(const unsigned char *latin1, size_t size, unsigned char *utf8);

#endif
