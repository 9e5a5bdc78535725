/* Memory or the end, see alloc.h. */
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"

void (*host_no_memory)(void);

__attribute__((noreturn)) static void no_memory(size_t size)
{
    if (host_no_memory != NULL)
        host_no_memory();
    host_die("no memory for %zu bytes", size);
}

void *host_malloc(size_t size)
{
    void *new = malloc(size);

    if (new == NULL)
        no_memory(size);
    return new;
}

void *host_calloc(size_t size)
{
    return memset(host_malloc(size), 0, size);
}

void *host_realloc(void *old, size_t size)
{
    void *new = realloc(old, size);

    if (new == NULL)
        no_memory(size);
    return new;
}
