/* malloc, calloc and realloc that end the program with a line when there is no memory. */
#ifndef TAME_HOST_ALLOC_H
#define TAME_HOST_ALLOC_H

#include <stddef.h>

void *host_malloc(size_t size);
void *host_calloc(size_t size);
void *host_realloc(void *old, size_t size);

/* Called just before that end; NULL: nobody wants to know. */
extern void (*host_no_memory)(void);

#endif
