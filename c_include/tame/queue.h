/* tame/queue.h - first come, first served: the one queue of the gate, of a context and of the pool.
 *
 * Part of tame.h; usable alone. Plain C, without a lock of its own and without an allocation. An
 * entry knows its neighbours, so it leaves from wherever it is at the same small cost. */
#ifndef TAME_QUEUE_H
#define TAME_QUEUE_H

#include <stddef.h>
#include <stdint.h>

struct tame_impl_queue;

/* An entry, which is part of what is queued. It stands in one queue at a time. */
struct tame_impl_link {
    struct tame_impl_link *next, *before;
    struct tame_impl_queue *queue; /* that it stands in; NULL: in none */
};

/* Entries in the order in which they came. `len` is read without the queue's lock, too. */
struct tame_impl_queue {
    struct tame_impl_link *head, *tail;
    uint32_t len;
};

static inline void tame_impl_queue_push(struct tame_impl_queue *queue, struct tame_impl_link *link)
{
    link->queue = queue;
    link->next = NULL;
    link->before = queue->tail;
    if (queue->tail == NULL)
        queue->head = link;
    else
        queue->tail->next = link;
    queue->tail = link;
    __atomic_store_n(&queue->len, queue->len + 1, __ATOMIC_RELAXED);
}

/* In front of all others. */
static inline void tame_impl_queue_push_first(struct tame_impl_queue *queue,
                                              struct tame_impl_link *link)
{
    link->queue = queue;
    link->before = NULL;
    link->next = queue->head;
    if (queue->head == NULL)
        queue->tail = link;
    else
        queue->head->before = link;
    queue->head = link;
    __atomic_store_n(&queue->len, queue->len + 1, __ATOMIC_RELAXED);
}

/* Takes an entry out of this queue. Returns 0 when it does not stand there. */
static inline int tame_impl_queue_remove(struct tame_impl_queue *queue, struct tame_impl_link *link)
{
    if (link->queue != queue)
        return 0;
    if (link->before == NULL)
        queue->head = link->next;
    else
        link->before->next = link->next;
    if (link->next == NULL)
        queue->tail = link->before;
    else
        link->next->before = link->before;
    link->queue = NULL;
    __atomic_store_n(&queue->len, queue->len - 1, __ATOMIC_RELAXED);
    return 1;
}

/* The first entry, taken out; NULL when there is none. */
static inline struct tame_impl_link *tame_impl_queue_pop(struct tame_impl_queue *queue)
{
    struct tame_impl_link *link = queue->head;

    if (link != NULL)
        (void)tame_impl_queue_remove(queue, link);
    return link;
}

#endif
