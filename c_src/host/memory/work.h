/* A stack of work that grows on the heap: terms nest deeper than a thread's stack allows. */
#ifndef TAME_HOST_WORK_H
#define TAME_HOST_WORK_H

#include <stddef.h>

struct work {
    void *items;
    size_t len, max, item_size;
    _Alignas(16) unsigned char small[1024];
};

void work_init(struct work *work, size_t item_size);
void *work_push(struct work *work); /* the new item, not yet filled in */
void *work_top(struct work *work);  /* NULL: there is none */
void work_pop(struct work *work);
void work_free(struct work *work);

#endif
