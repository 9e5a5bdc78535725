/* tame/queue.h - first come, first served: the one queue of the gate and of the pool.
 *
 * Part of tame.h; usable alone. Plain C, without a lock of its own and without an allocation. */
#ifndef TAME_QUEUE_H
#define TAME_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* An entry, which is part of what is queued. */
struct tame_impl_link {
    struct tame_impl_link *next;
};

/* Entries in the order in which they came. `len` is read without the queue's lock, too. */
struct tame_impl_queue {
    struct tame_impl_link *head, *tail;
    uint32_t len;
};

static inline void tame_impl_queue_push(struct tame_impl_queue *queue, struct tame_impl_link *link)
{
    link->next = NULL;
    if (queue->head == NULL)
        queue->head = link;
    else
        queue->tail->next = link;
    queue->tail = link;
    __atomic_store_n(&queue->len, queue->len + 1, __ATOMIC_RELAXED);
}

static inline struct tame_impl_link *tame_impl_queue_pop(struct tame_impl_queue *queue)
{
    struct tame_impl_link *link = queue->head;

    if (link != NULL) {
        queue->head = link->next;
        __atomic_store_n(&queue->len, queue->len - 1, __ATOMIC_RELAXED);
    }
    return link;
}

/* Takes an entry out from wherever it is. Returns 0 when it is not there. */
static inline int tame_impl_queue_remove(struct tame_impl_queue *queue, struct tame_impl_link *link)
{
    struct tame_impl_link *before = NULL;

    for (struct tame_impl_link *at = queue->head; at != NULL; before = at, at = at->next) {
        if (at != link)
            continue;
        if (before == NULL)
            queue->head = link->next;
        else
            before->next = link->next;
        if (queue->tail == link)
            queue->tail = before;
        __atomic_store_n(&queue->len, queue->len - 1, __ATOMIC_RELAXED);
        return 1;
    }
    return 0;
}

#endif
