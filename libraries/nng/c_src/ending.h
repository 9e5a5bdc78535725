/* ending.h - how contexts begin, and how they and their socket end. context.h says what nng wants.
 *
 * A context is closed any number of times, left once, and ended by the reaper, or by its socket's
 * end. Who is the last to have it frees it. */
#ifndef TAME_NNG_ENDING_H
#define TAME_NNG_ENDING_H

#include "subscription.h"

/* ---- nng has a context ---- */

/* While the socket does not end. Returns nng's error. */
static inline int tn_context_open(struct tn_context *context, struct tn_end *end,
                                  const struct tn_socket *socket)
{
    int error = nng_aio_alloc(&context->aio, tn_context_callback, context);

    if (error != 0)
        return error;
    context->surveys = (socket->protocol->traits & TN_SURVEYS) != 0;
    context->survey.time = __atomic_load_n(&socket->survey.time, __ATOMIC_RELAXED);
    if (socket->protocol->traits & TN_SUBSCRIBES)
        error = tn_subscription_open(context);
    if (error == 0)
        error = nng_ctx_open(&context->nng, end->nng);
    if (error != 0) {
        nng_aio_free(context->source);
        nng_aio_free(context->aio); /* they were never used */
        return error;
    }
    tn_contexts_lock();
    context->end = end;
    context->at = &end->contexts;
    context->next = end->contexts;
    if (context->next != NULL)
        context->next->at = &context->next;
    end->contexts = context;
    tn_contexts_unlock();
    return 0;
}

/* A deadline that is nearer than this, ms, may pass while nng closes the context. */
#define TN_CONTEXT_NEAR_MS 100

/* Whether an operation is on its way; waits first for one whose deadline is near. */
static inline int tn_context_is_busy(struct tn_context *context)
{
    int busy;

    tn_contexts_lock();
    while (context->busy && context->due < INT64_MAX &&
           context->due - tn_survey_now() < TN_CONTEXT_NEAR_MS)
        (void)pthread_cond_wait(&tn_contexts.changed, &tn_contexts.lock);
    busy = context->busy;
    tn_contexts_unlock();
    return busy;
}

/* nng has the context no more, and no operation is on its way; waits for that. */
static inline void tn_context_withdraw(struct tn_context *context)
{
    (void)nng_ctx_close(context->nng);
    if (context->source != NULL)
        tn_subscription_end(context);
    tn_contexts_lock();
    while (context->busy)
        (void)pthread_cond_wait(&tn_contexts.changed, &tn_contexts.lock);
    tn_contexts_unlock();
}

/* What is on its way ends; waits for that. A subscription's aio nng's context does not know. */
static inline void tn_context_stop(struct tn_context *context)
{
    const int first = context->source != NULL || tn_context_is_busy(context);

    if (first)
        tn_context_withdraw(context);
    nng_aio_stop(context->aio);
    nng_aio_free(context->aio);
    if (!first)
        tn_context_withdraw(context);
}

/* ---- and has it no more ---- */

/* Under the lock, but while it waits. Closed, and not ending yet. */
static inline void tn_context_end(struct tn_context *context)
{
    context->ending = 1;
    while (context->inside > 0)
        (void)pthread_cond_wait(&tn_contexts.changed, &tn_contexts.lock);
    tn_contexts_unlock();
    tn_context_stop(context);
    tn_contexts_lock();
    *context->at = context->next;
    if (context->next != NULL)
        context->next->at = context->at;
    context->end = NULL;
    (void)pthread_cond_broadcast(&tn_contexts.changed);
}

/* Under the lock, which it gives up. */
static inline void tn_context_drop(struct tn_context *context)
{
    const int last = context->left && !context->queued && context->end == NULL;

    tn_contexts_unlock();
    if (last)
        context->freed(context);
}

/* On the reaper's threads. */
static inline void tn_context_reap(struct tn_reap *reap)
{
    struct tn_context *context = (struct tn_context *)reap;

    tn_contexts_lock();
    if (context->end != NULL && !context->ending)
        tn_context_end(context);
    context->queued = 0;
    tn_context_drop(context);
}

/* Under the lock. No operation begins any more; whether the reaper is to have it. */
static inline int tn_context_shut(struct tn_context *context)
{
    if (context->closed)
        return 0;
    context->closed = context->queued = 1;
    context->reap.run = tn_context_reap;
    return 1;
}

/* What is on its way ends with an error, soon. From any thread; does not wait. */
static inline void tn_context_close(struct tn_context *context)
{
    int shut;

    tn_contexts_lock();
    shut = tn_context_shut(context);
    tn_contexts_unlock();
    if (shut)
        tn_reaper_take(&context->reap);
}

/* The same; nobody but us has the context any more. */
static inline void tn_context_close_last(struct tn_context *context)
{
    tn_contexts_lock();
    context->left = 1;
    if (!tn_context_shut(context)) {
        tn_context_drop(context);
        return;
    }
    tn_contexts_unlock();
    tn_reaper_take(&context->reap);
}

/* ---- a socket ---- */

/* No context is opened any more. */
static inline void tn_end_contexts(struct tn_end *end)
{
    struct tn_context *context;

    tn_contexts_lock();
    while ((context = end->contexts) != NULL) {
        if (context->ending) { /* by another thread */
            (void)pthread_cond_wait(&tn_contexts.changed, &tn_contexts.lock);
            continue;
        }
        context->closed = 1;
        tn_context_end(context);
        tn_context_drop(context);
        tn_contexts_lock();
    }
    tn_contexts_unlock();
}

/* Closes the socket, and first what contexts it has. On the reaper's threads. */
static inline void tn_end_socket(struct tn_end *end)
{
    tn_end_contexts(end);
    tn_dialing_close(end->nng);
    if (end->leaving != NULL)
        tn_context_close_last(end->leaving);
}

#endif
