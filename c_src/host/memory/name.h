/* The names of atoms: their limits. Latin-1 as UTF-8, and characters in UTF-8. */
#ifndef TAME_HOST_NAME_H
#define TAME_HOST_NAME_H

#include <stddef.h>
#include <stdint.h>

#define ATOM_CHARS_MAX 255
#define ATOM_BYTES_MAX (4 * ATOM_CHARS_MAX)

/* Turns size bytes of Latin-1 into UTF-8 of at most 2 * size bytes. Returns its size. */
size_t latin1_to_utf8(const unsigned char *latin1, size_t size, unsigned char *utf8);

/* A name that ends with a zero byte, in memory of its own. */
char *name_of_latin1(const char *latin1);

/* A character in UTF-8, of at most 4 bytes; its size. 0: no number of a character. */
size_t utf8_put(int64_t character, unsigned char *utf8);

/* The first character of size bytes; its size. 0: these begin with none. */
size_t utf8_get(const unsigned char *utf8, size_t size, int64_t *character);

#endif
