/* context.h - a context: a request, reply, survey or subscription of its own on a socket.
 *
 * nng has no descriptor for a context, so here an nng_aio waits, and its callback, on a thread of
 * nng's, tells the result. nng keeps the deadline. Each operation that begins ends by one callback,
 * closed or not.
 *
 * nng 1.5 frees a context, and a socket, beside who is still at it. So here
 * - no call on a context is inside nng while its socket is closed: the last one frees the context,
 *   looks at the socket for that, and nng_close does not wait for it;
 * - an aio whose deadline is near is freed before its context is closed: nng's thread of deadlines may
 *   be about to look at the context, and nng_aio_free alone waits for that;
 * - no aio is stopped or freed while its operation is on its way: nng 1.9 to 1.11 takes one that is
 *   about to end for one that never began, and ends it when it is freed (nng#2208). It ends by itself,
 *   or because its context is closed;
 * - what a subscription receives is neither cancelled nor has a deadline in nng, which may hand it a
 *   message at that moment (nng#1523): subscription.h.
 * All of this takes time and is the reaper's: that of a context which is closed, and that of those
 * which a socket still has when it is closed. */
#ifndef TAME_NNG_CONTEXT_H
#define TAME_NNG_CONTEXT_H

#include "control.h"
#include "reaper.h"

struct tn_context;

/* What is left to do of a socket. First member of what a way has besides. */
struct tn_end {
    struct tn_reap reap; /* first */
    nng_socket nng;
    struct tn_context *contexts; /* those that nng has */
    struct tn_context *leaving;  /* leaving.h; or NULL */
};

/* First member of what a way has besides. Allocated by the way, freed by `freed'. */
struct tn_context {
    struct tn_reap reap; /* first */
    nng_ctx nng;
    nng_aio *aio;
    int sending, surveys;
    struct tn_survey survey;
    int64_t due; /* an operation's deadline, ms of tn_survey_now; INT64_MAX: none */
    /* On a thread of nng's, once for each operation: the next may begin at once. A message that
     * came is the way's. */
    void (*told)(struct tn_context *context, int error, nng_msg *message);
    void (*freed)(struct tn_context *context);
    /* What follows is under tn_contexts.lock. */
    struct tn_end *end;            /* its socket's; NULL: nng has the context no more */
    struct tn_context *next, **at; /* of the socket's */
    int inside;                    /* calls that are in nng */
    int busy;                      /* an operation is on its way */
    int closed;                    /* none begins any more */
    int ending;                    /* nng is about to have it no more */
    int queued;                    /* the reaper has it */
    int left;                      /* nobody else has it any more */
    /* Of a subscription alone. */
    nng_aio *source; /* receives from nng for as long as it takes; NULL: it is none */
    nng_msg *early;  /* came when nobody waited any more */
    int receiving, waiting;
};

/* One lock for all: it is held for some instructions at a time. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
} tn_contexts = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};

static inline void tn_contexts_lock(void)
{
    (void)pthread_mutex_lock(&tn_contexts.lock);
}

static inline void tn_contexts_unlock(void)
{
    (void)pthread_mutex_unlock(&tn_contexts.lock);
}

/* ---- an operation ---- */

/* For ever. */
#define TN_NO_DEADLINE INT64_MAX

/* Whether the context is the caller's for an operation: 0, or nng's error. */
static inline int tn_context_take(struct tn_context *context)
{
    int error;

    tn_contexts_lock();
    error = context->closed ? NNG_ECLOSED : context->busy ? NNG_EBUSY : 0;
    if (error == 0) {
        context->busy = 1;
        context->inside++;
    }
    tn_contexts_unlock();
    return error;
}

/* What was taken is not in nng any more. */
static inline void tn_context_leave(struct tn_context *context)
{
    tn_contexts_lock();
    context->inside--;
    if (context->closed)
        (void)pthread_cond_broadcast(&tn_contexts.changed);
    tn_contexts_unlock();
}

/* As TN_SET has it; also beside an operation. Returns nng's error. */
static inline int tn_context_set(struct tn_context *context, const unsigned char *bytes,
                                 size_t size)
{
    int error;

    tn_contexts_lock();
    error = context->closed ? NNG_ECLOSED : 0;
    context->inside += error == 0;
    tn_contexts_unlock();
    if (error != 0)
        return error;
    error =
        tn_control_context(context->nng, context->surveys ? &context->survey : NULL, bytes, size);
    tn_context_leave(context);
    return error;
}

/* The next operation may begin. */
static inline void tn_context_let_go(struct tn_context *context)
{
    tn_contexts_lock();
    context->busy = 0;
    if (context->closed)
        (void)pthread_cond_broadcast(&tn_contexts.changed);
    tn_contexts_unlock();
}

static inline int tn_context_is_closed(const struct tn_context *context)
{
    int closed;

    tn_contexts_lock();
    closed = context->closed;
    tn_contexts_unlock();
    return closed;
}

static inline void tn_context_callback(void *arg)
{
    struct tn_context *context = (struct tn_context *)arg;
    int error = nng_aio_result(context->aio);
    nng_msg *message = nng_aio_get_msg(context->aio);

    nng_aio_set_msg(context->aio, NULL);
    if (error != 0 && context->sending && message != NULL)
        nng_msg_free(message); /* nng did not take it */
    if (error != 0 || context->sending)
        message = NULL;
    if (error == NNG_ECANCELED && tn_context_is_closed(context))
        error = NNG_ECLOSED;
    context->told(context, error, message);
}

static inline nng_duration tn_context_left(int64_t deadline, int64_t now)
{
    if (deadline == TN_NO_DEADLINE)
        return NNG_DURATION_INFINITE;
    if (deadline <= now)
        return NNG_DURATION_ZERO;
    return deadline - now < INT32_MAX ? (nng_duration)(deadline - now) : INT32_MAX;
}

/* What nng has for the operation: ms, or NNG_DURATION_INFINITE. */
static inline void tn_context_time(struct tn_context *context, nng_duration left)
{
    context->due = left == NNG_DURATION_INFINITE ? INT64_MAX : tn_survey_now() + left;
    nng_aio_set_timeout(context->aio, left);
}

/* The operation ends with this error, and nng does not see it. */
static inline void tn_context_fail(struct tn_context *context, int error)
{
    (void)nng_aio_begin(context->aio); /* it is stopped only when nobody is inside */
    nng_aio_finish(context->aio, error);
}

/* For the caller's time, and for as long as the survey goes on. */
static inline void tn_context_receive(struct tn_context *context, nng_duration left)
{
    const nng_duration survey =
        context->surveys ? tn_survey_left(&context->survey) : NNG_DURATION_INFINITE;

    if (survey == 0) {
        tn_context_fail(context, NNG_ESTATE);
        return;
    }
    if (survey != NNG_DURATION_INFINITE && (left == NNG_DURATION_INFINITE || left > survey))
        tn_context_time(context, survey);
    else if (context->surveys && left == NNG_DURATION_ZERO)
        tn_context_time(context, 1); /* none is nng's own time of the survey, from 1.7 on */
    nng_ctx_recv(context->nng, context->aio);
}

/* subscription.h */
static inline void tn_subscription_receive(struct tn_context *context, nng_duration left);

/* Sends the message, or receives when it is NULL. Whose the context is; `told' may be called before
 * this returns. The deadline is a time of the VM's monotonic clock, ms. */
static inline void tn_context_start(struct tn_context *context, nng_msg *message, int64_t deadline,
                                    int64_t now)
{
    const nng_duration left = tn_context_left(deadline, now);

    context->sending = message != NULL;
    tn_context_time(context, left);
    nng_aio_set_msg(context->aio, message);
    if (message != NULL && context->surveys)
        tn_survey_begin(&context->survey);
    if (message != NULL)
        nng_ctx_send(context->nng, context->aio);
    else if (context->source != NULL)
        tn_subscription_receive(context, left);
    else
        tn_context_receive(context, left);
    tn_context_leave(context);
}

#endif
