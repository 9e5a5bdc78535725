/* subscription.h - what a context of a subscriber receives.
 *
 * While nng 1.5 hands a subscriber's contexts a message, one whose deadline passes at that moment, or
 * that is cancelled, ends the process (nng#1523). So what nng receives here has no deadline and ends
 * by the context's close, which is guarded; and the caller's wait is an operation that is ours. A
 * message that comes when nobody waits any more is the next caller's. */
#ifndef TAME_NNG_SUBSCRIPTION_H
#define TAME_NNG_SUBSCRIPTION_H

#include "context.h"

/* Under the lock: whether somebody waited, who does no more. */
static inline int tn_subscription_answer(struct tn_context *context)
{
    const int waited = context->waiting;

    context->waiting = 0;
    return waited;
}

/* On a thread of nng's: the source has a message, or has ended. */
static inline void tn_subscription_came(void *arg)
{
    struct tn_context *context = (struct tn_context *)arg;
    const int error = nng_aio_result(context->source);
    nng_msg *message = error == 0 ? nng_aio_get_msg(context->source) : NULL;
    int waited;

    nng_aio_set_msg(context->source, NULL);
    tn_contexts_lock();
    context->receiving = 0;
    waited = tn_subscription_answer(context);
    if (!waited)
        context->early = message;
    tn_contexts_unlock();
    if (waited) {
        nng_aio_set_msg(context->aio, message);
        nng_aio_finish(context->aio, error);
    }
}

/* nng calls it: the caller's deadline has passed, or the context ends. */
static inline void tn_subscription_cancel(nng_aio *aio, void *arg, int error)
{
    struct tn_context *context = (struct tn_context *)arg;
    int waited;

    tn_contexts_lock();
    waited = tn_subscription_answer(context);
    tn_contexts_unlock();
    if (waited)
        nng_aio_finish(aio, error);
}

/* context->aio ends with a message or an error. Without time nng looks once, and has nothing that
 * could be cancelled; nor has anybody time for a source that receives already. */
static inline void tn_subscription_receive(struct tn_context *context, nng_duration left)
{
    nng_msg *message;
    int asks, waits;

    (void)nng_aio_begin(context->aio); /* it is stopped only when nobody is inside */
    tn_contexts_lock();
    message = context->early;
    context->early = NULL;
    asks = message == NULL && !context->receiving;
    waits = asks || (message == NULL && left != NNG_DURATION_ZERO);
    context->receiving |= asks;
    context->waiting = waits;
    if (waits && left != NNG_DURATION_ZERO)
        nng_aio_defer(context->aio, tn_subscription_cancel, context);
    tn_contexts_unlock();
    if (asks) {
        nng_aio_set_timeout(context->source,
                            left == NNG_DURATION_ZERO ? left : NNG_DURATION_INFINITE);
        nng_ctx_recv(context->nng, context->source);
    } else if (!waits) {
        nng_aio_set_msg(context->aio, message);
        nng_aio_finish(context->aio, message == NULL ? NNG_ETIMEDOUT : 0);
    }
}

/* Returns nng's error. */
static inline int tn_subscription_open(struct tn_context *context)
{
    return nng_aio_alloc(&context->source, tn_subscription_came, context);
}

/* The context is closed, so the source has ended, or does. */
static inline void tn_subscription_end(struct tn_context *context)
{
    nng_aio_wait(context->source);
    nng_aio_free(context->source);
    if (context->early != NULL)
        nng_msg_free(context->early);
}

#endif
