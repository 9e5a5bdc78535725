/* leaving.h - a surveyor that leaves a respondent.
 *
 * nng before 1.10 forgets to take a connection that has ended out of the list of those with a survey
 * that waits to be received, and who receives it then reads freed memory (nng#1959): a surveyor that
 * asks twice and leaves before the first reply would end the process. So while a connection ends,
 * and before nng frees it, what waits is received in a context of ours and dropped, up to what that
 * connection sent. Who sent the others gets no reply from here, which surveys bear. */
#ifndef TAME_NNG_LEAVING_H
#define TAME_NNG_LEAVING_H

#include "ending.h"

/* From nng_alloc; the socket's end frees it when no connection is left. */
struct tn_leaving {
    struct tn_context context; /* first */
    int connections;           /* atomic: that were begun and have not ended */
    int error;
    nng_msg *message;
};

static inline void tn_leaving_told(struct tn_context *context, int error, nng_msg *message)
{
    struct tn_leaving *leaving = (struct tn_leaving *)context;

    leaving->error = error;
    leaving->message = message;
}

static inline void tn_leaving_freed(struct tn_context *context)
{
    nng_free(context, sizeof(struct tn_leaving));
}

/* Whether a survey waited, which is dropped, and more may wait. */
static inline int tn_leaving_drop(struct tn_leaving *leaving, nng_pipe pipe)
{
    nng_aio *aio = leaving->context.aio;
    int more;

    nng_aio_set_timeout(aio, NNG_DURATION_ZERO);
    nng_ctx_recv(leaving->context.nng, aio);
    nng_aio_wait(aio);
    if (leaving->error != 0)
        return 0;
    more = nng_pipe_id(nng_msg_get_pipe(leaving->message)) != nng_pipe_id(pipe);
    nng_msg_free(leaving->message);
    return more;
}

/* A connection begins, or ends: on nng's thread for that, one after the other. The list goes in turn
 * and has each connection once, so what waits before this one's is no more than there are
 * connections. Where the socket is closed nobody receives any more. */
static inline void tn_leaving_pipe(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
    struct tn_leaving *leaving = (struct tn_leaving *)arg;
    int most;

    if (event == NNG_PIPE_EV_ADD_PRE) {
        (void)__atomic_add_fetch(&leaving->connections, 1, __ATOMIC_ACQ_REL);
        return;
    }
    most = __atomic_fetch_sub(&leaving->connections, 1, __ATOMIC_ACQ_REL);
    if (tn_context_take(&leaving->context) != 0)
        return;
    while (most-- > 0 && tn_leaving_drop(leaving, pipe))
        ;
    tn_context_let_go(&leaving->context);
    tn_context_leave(&leaving->context);
}

static inline int tn_leaving_is_mended(void)
{
    int major = 0, minor = 0;

    return sscanf(nng_version(), "%d.%d", &major, &minor) == 2 &&
           (major > 1 || (major == 1 && minor >= 10));
}

/* Returns nng's error. */
static inline int tn_leaving_open(struct tn_end *end, const struct tn_socket *socket)
{
    struct tn_leaving *leaving = (struct tn_leaving *)nng_alloc(sizeof *leaving);
    int error = NNG_ENOMEM;

    if (leaving != NULL) {
        memset(leaving, 0, sizeof *leaving);
        leaving->context.told = tn_leaving_told;
        leaving->context.freed = tn_leaving_freed;
        error = tn_context_open(&leaving->context, end, socket);
    }
    if (error != 0 && leaving != NULL)
        nng_free(leaving, sizeof *leaving);
    if (error != 0)
        return error;
    error = nng_pipe_notify(end->nng, NNG_PIPE_EV_ADD_PRE, tn_leaving_pipe, leaving);
    if (error == 0)
        error = nng_pipe_notify(end->nng, NNG_PIPE_EV_REM_POST, tn_leaving_pipe, leaving);
    if (error == 0) {
        end->leaving = &leaving->context;
        return 0;
    }
    tn_end_contexts(end);
    tn_context_close_last(&leaving->context);
    return error;
}

/* The end of a socket that is new. Returns nng's error. */
static inline int tn_end_open(struct tn_end *end, const struct tn_socket *socket)
{
    end->nng = socket->nng;
    return socket->protocol->traits & TN_KEEPS && !tn_leaving_is_mended()
               ? tn_leaving_open(end, socket)
               : 0;
}

#endif
