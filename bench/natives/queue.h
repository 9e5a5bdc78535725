/* A queue of jobs for threads, as an intrusive list: the latency lab's worker pool takes its
 * work from one, and its thread-per-call method hands finished threads over in another.
 *
 * Plain C: no ErlNifEnv, no allocation, no lock of its own. The caller holds a lock around
 * every call. A node belongs to the queue from push until pop, then to who popped it. */
#ifndef TAME_ECHO_QUEUE_H
#define TAME_ECHO_QUEUE_H

#include <stddef.h>

struct queue_node {
    struct queue_node *next;
};

struct queue {
    struct queue_node *head; /* next to pop; NULL means empty */
    struct queue_node *tail; /* last pushed; meaningless while head is NULL */
    size_t len;
};

static inline void queue_init(struct queue *queue)
{
    queue->head = NULL;
    queue->tail = NULL;
    queue->len = 0;
}

static inline void queue_push(struct queue *queue, struct queue_node *node)
{
    node->next = NULL;
    if (queue->head == NULL)
        queue->head = node;
    else
        queue->tail->next = node;
    queue->tail = node;
    queue->len++;
}

/* Returns the oldest node, or NULL when the queue is empty. */
static inline struct queue_node *queue_pop(struct queue *queue)
{
    struct queue_node *node = queue->head;

    if (node != NULL) {
        queue->head = node->next;
        queue->len--;
    }
    return node;
}

#endif
