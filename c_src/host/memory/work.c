/* A stack on the heap, see work.h. */
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/work.h"

void work_init(struct work *work, size_t item_size)
{
    work->item_size = item_size;
    work->len = 0;
    work->max = sizeof work->small / item_size;
    work->items = work->small;
}

void *work_push(struct work *work)
{
    if (work->len == work->max) {
        size_t size = work->max * work->item_size;
        void *old = work->items == work->small ? NULL : work->items;

        work->items = host_realloc(old, 2 * size);
        if (old == NULL)
            memcpy(work->items, work->small, size);
        work->max *= 2;
    }
    return (char *)work->items + work->len++ * work->item_size;
}

void *work_top(struct work *work)
{
    return work->len == 0 ? NULL : (char *)work->items + (work->len - 1) * work->item_size;
}

void work_pop(struct work *work)
{
    work->len--;
}

void work_free(struct work *work)
{
    if (work->items != work->small)
        free(work->items);
}
