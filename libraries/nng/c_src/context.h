/* context.h - a context: a request, reply, survey or subscription of its own on a socket.
 *
 * nng has no descriptor for a context, so here an nng_aio waits, and its callback, on a thread of
 * nng's, tells the result. nng keeps the deadline. Each operation that begins ends by one
 * callback, closed or not; what may not be done in a callback (nng: freeing, stopping, closing)
 * the reaper does later. */
#ifndef TAME_NNG_CONTEXT_H
#define TAME_NNG_CONTEXT_H

#include "reaper.h"
#include "socket.h"

/* First member of what a way has besides. Allocated by the way, freed by `freed'. */
struct tn_context {
    struct tn_reap reap; /* first */
    nng_ctx nng;
    nng_aio *aio;
    int busy; /* atomic: an operation is on its way; it alone has what follows */
    int sending;
    /* On a thread of nng's, once for each operation: the next may begin at once. A message that
     * came is the way's. */
    void (*told)(struct tn_context *context, int error, nng_msg *message);
    void (*freed)(struct tn_context *context);
};

static inline void tn_context_callback(void *arg)
{
    struct tn_context *context = (struct tn_context *)arg;
    const int error = nng_aio_result(context->aio);
    nng_msg *message = nng_aio_get_msg(context->aio);

    nng_aio_set_msg(context->aio, NULL);
    if (error != 0 && context->sending && message != NULL)
        nng_msg_free(message); /* nng did not take it */
    if (error != 0 || context->sending)
        message = NULL;
    context->told(context, error, message);
}

/* Returns nng's error. */
static inline int tn_context_open(struct tn_context *context, nng_socket socket)
{
    int error = nng_aio_alloc(&context->aio, tn_context_callback, context);

    if (error != 0)
        return error;
    error = nng_ctx_open(&context->nng, socket);
    if (error != 0)
        nng_aio_free(context->aio); /* it was never used */
    return error;
}

/* Whether the context is the caller's for an operation. */
static inline int tn_context_take(struct tn_context *context)
{
    int free = 0;

    return __atomic_compare_exchange_n(&context->busy, &free, 1, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

static inline void tn_context_let_go(struct tn_context *context)
{
    __atomic_store_n(&context->busy, 0, __ATOMIC_RELEASE);
}

/* For ever. */
#define TN_NO_DEADLINE INT64_MAX

static inline nng_duration tn_context_left(int64_t deadline, int64_t now)
{
    if (deadline == TN_NO_DEADLINE)
        return NNG_DURATION_INFINITE;
    if (deadline <= now)
        return NNG_DURATION_ZERO;
    return deadline - now < INT32_MAX ? (nng_duration)(deadline - now) : INT32_MAX;
}

/* Sends the message, or receives when it is NULL. Whose the context is; `told' may be called before
 * this returns. The deadline is a time of the VM's monotonic clock, ms. */
static inline void tn_context_start(struct tn_context *context, nng_msg *message, int64_t deadline,
                                    int64_t now)
{
    context->sending = message != NULL;
    nng_aio_set_timeout(context->aio, tn_context_left(deadline, now));
    nng_aio_set_msg(context->aio, message);
    if (message != NULL)
        nng_ctx_send(context->nng, context->aio);
    else
        nng_ctx_recv(context->nng, context->aio);
}

/* What is on its way ends with an error. Any number of times, from any thread; does not wait. */
static inline void tn_context_close(struct tn_context *context)
{
    (void)nng_ctx_close(context->nng);
}

static inline void tn_context_reap(struct tn_reap *reap)
{
    struct tn_context *context = (struct tn_context *)reap;

    nng_aio_stop(context->aio);
    nng_aio_free(context->aio);
    context->freed(context);
}

/* Once, when nobody begins an operation any more. */
static inline void tn_context_end(struct tn_context *context)
{
    tn_context_close(context);
    context->reap.run = tn_context_reap;
    tn_reaper_take(&context->reap);
}

#endif
