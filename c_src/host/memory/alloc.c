/* Memory or the end, see alloc.h. */
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"

void *host_malloc(size_t size)
{
    void *new = malloc(size);

    if (new == NULL)
        host_die("no memory for %zu bytes", size);
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
        host_die("no memory for %zu bytes", size);
    return new;
}
