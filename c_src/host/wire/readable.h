/* Whether the VM reads a frame, asked before it is written: it ends a host that writes another. */
#ifndef TAME_HOST_READABLE_H
#define TAME_HOST_READABLE_H

#include <stddef.h>

#include "port/frame_bounds.h"

/* What stands around a question, or a message without its leases, at most: in bytes, and in memory. */
#define AROUND_BYTES 2048

/* The largest term, in external format, in a frame that the VM reads. */
#define READABLE_BYTES (FRAME_BYTES_MAX - AROUND_BYTES)

/* Of a term of that size, and the byte before it. It is scanned as the VM scans it: the memory that it takes,
 * how deep it is, and references that no VM makes. */
int readable(const unsigned char *bytes, size_t size);

#endif
