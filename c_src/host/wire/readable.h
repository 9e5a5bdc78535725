/* Whether the VM reads a frame, asked before it is written: it ends a host that writes another. */
#ifndef TAME_HOST_READABLE_H
#define TAME_HOST_READABLE_H

#include <stddef.h>

/* Of a term's size in external format: whether a frame may be as long, with what stands around it. */
int readable_size(size_t size);

/* Of a term of that size, and the byte before it. It is scanned as the VM scans it: the memory that it takes,
 * how deep it is, and references that no VM makes. */
int readable(const unsigned char *bytes, size_t size);

#endif
