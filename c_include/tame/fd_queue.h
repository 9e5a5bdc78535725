/* tame/fd_queue.h - the queue for a direction of a descriptor: first come, first served, and found by
 * its process whatever its length.
 *
 * Part of tame/fd.h, which has the manual. With the descriptor's lock held, all of it. */
#ifndef TAME_FD_QUEUE_H
#define TAME_FD_QUEUE_H

#include <erl_nif.h>
#include <string.h>

#include "watch.h"

/* Beyond this length a queue has an index. */
#define TAME_IMPL_FD_WALKED 16

/* Who waits. In a queue, or spare. */
struct tame_impl_fd_waiter {
    struct tame_impl_fd_waiter *next, *before;
    struct tame_impl_fd_waiter
        *same; /* further back in the queue, in the same chain of the index */
    ErlNifPid pid;
    ErlNifEnv *env;   /* the waiter's, of a kilobyte; NULL until a reference has to be kept */
    ERL_NIF_TERM ref; /* in env; 0: the descriptor's own term */
    struct tame_impl_watched watched; /* not of an owner */
};

struct tame_impl_fd_queue {
    struct tame_impl_fd_waiter *first, *last;
    struct tame_impl_fd_waiter **chains; /* the index, until the queue is empty; NULL: none */
    size_t count, chained;               /* who waits; chains, a power of two */
};

static inline struct tame_impl_fd_waiter **
tame_impl_fd_chain(const struct tame_impl_fd_queue *queue, const ErlNifPid *pid)
{
    return &queue->chains[(tame_impl_watch_hash(NULL, pid) >> 32) & (queue->chained - 1)];
}

/* A longer index. Without memory chains become longer, or there is none yet. */
static inline void tame_impl_fd_index(struct tame_impl_fd_queue *queue)
{
    const size_t chained = queue->chained == 0 ? 4 * TAME_IMPL_FD_WALKED : 2 * queue->chained;
    struct tame_impl_fd_waiter **chains =
        (struct tame_impl_fd_waiter **)enif_alloc(chained * sizeof *chains); /* the queue's */

    if (chains == NULL)
        return;
    memset(chains, 0, chained * sizeof *chains);
    enif_free(queue->chains);
    queue->chains = chains;
    queue->chained = chained;
    for (struct tame_impl_fd_waiter *waiter = queue->last; waiter != NULL;
         waiter = waiter->before) {
        struct tame_impl_fd_waiter **chain = tame_impl_fd_chain(queue, &waiter->pid);

        waiter->same = *chain;
        *chain = waiter;
    }
}

/* One more, whose links are set. Of two of one process the one before the other is found. */
static inline void tame_impl_fd_entered(struct tame_impl_fd_queue *queue,
                                        struct tame_impl_fd_waiter *waiter)
{
    queue->count++;
    if (queue->chains != NULL) {
        struct tame_impl_fd_waiter **at = tame_impl_fd_chain(queue, &waiter->pid);

        while (*at != NULL && waiter->next == NULL)
            at = &(*at)->same;
        waiter->same = *at;
        *at = waiter;
    }
    if (queue->count > TAME_IMPL_FD_WALKED && queue->count > queue->chained)
        tame_impl_fd_index(queue);
}

/* Behind all others. */
static inline void tame_impl_fd_append(struct tame_impl_fd_queue *queue,
                                       struct tame_impl_fd_waiter *waiter)
{
    waiter->next = NULL;
    waiter->before = queue->last;
    if (queue->last != NULL)
        queue->last->next = waiter;
    else
        queue->first = waiter;
    queue->last = waiter;
    tame_impl_fd_entered(queue, waiter);
}

/* Before all others. */
static inline void tame_impl_fd_prepend(struct tame_impl_fd_queue *queue,
                                        struct tame_impl_fd_waiter *waiter)
{
    waiter->before = NULL;
    waiter->next = queue->first;
    if (queue->first != NULL)
        queue->first->before = waiter;
    else
        queue->last = waiter;
    queue->first = waiter;
    tame_impl_fd_entered(queue, waiter);
}

static inline void tame_impl_fd_remove(struct tame_impl_fd_queue *queue,
                                       struct tame_impl_fd_waiter *waiter)
{
    if (waiter->before != NULL)
        waiter->before->next = waiter->next;
    else
        queue->first = waiter->next;
    if (waiter->next != NULL)
        waiter->next->before = waiter->before;
    else
        queue->last = waiter->before;
    queue->count--;
    if (queue->chains == NULL)
        return;
    if (queue->count == 0) {
        enif_free(queue->chains);
        queue->chains = NULL;
        queue->chained = 0;
    } else {
        struct tame_impl_fd_waiter **at = tame_impl_fd_chain(queue, &waiter->pid);

        while (*at != waiter)
            at = &(*at)->same;
        *at = waiter->same;
    }
}

/* NULL: the process does not wait. */
static inline struct tame_impl_fd_waiter *tame_impl_fd_find(const struct tame_impl_fd_queue *queue,
                                                            const ErlNifPid *pid)
{
    const int indexed = queue->chains != NULL;
    struct tame_impl_fd_waiter *waiter = indexed ? *tame_impl_fd_chain(queue, pid) : queue->first;

    while (waiter != NULL && enif_compare_pids(&waiter->pid, pid) != 0)
        waiter = indexed ? waiter->same : waiter->next;
    return waiter;
}

#endif
