/* nif/handle.h - a socket as a resource: one descriptor of tame/fd.h for each direction, and one
 * end.
 *
 * A descriptor of nng's is readable when the socket may receive, and another when it may send: so
 * each is waited for in the direction TAME_FD_READ. The handle has the first, or the only one;
 * another resource has the second. */
#ifndef TAME_NNG_NIF_HANDLE_H
#define TAME_NNG_NIF_HANDLE_H

#include <erl_nif.h>
#include <tame/fd.h>

#include "../control.h"
#include "../credit.h"
#include "../leaving.h"

/* ---- what the functions return ---- */

static inline ERL_NIF_TERM tn_atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

static inline ERL_NIF_TERM tn_ok(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return enif_make_tuple2(env, tn_atom(env, "ok"), term);
}

static inline ERL_NIF_TERM tn_error(ErlNifEnv *env, const char *reason)
{
    return enif_make_tuple2(env, tn_atom(env, "error"), tn_atom(env, reason));
}

static inline ERL_NIF_TERM tn_failed(ErlNifEnv *env, int error)
{
    return tn_error(env, tn_error_name(error));
}

/* The answer of tame_fd_begin, wait or again that is not TAME_FD_GO. */
static inline ERL_NIF_TERM tn_answer(ErlNifEnv *env, enum tame_fd_answer answer)
{
    switch (answer) {
    case TAME_FD_WAIT:
        return tn_atom(env, "wait");
    case TAME_FD_CLOSED:
        return tn_error(env, "closed");
    default:
        return tn_error(env, "enomem");
    }
}

/* ---- the end ---- */

/* What is left to do when the descriptors are closed. Made with the handle, so that an end needs no
 * memory; the reaper's from the close hook on. */
struct tn_nif_end {
    struct tn_end end; /* first */
    int asked;         /* atomic: somebody calls close, and is told by what follows */
    ErlNifPid pid;
    ErlNifEnv *env;
    ERL_NIF_TERM ref;
};

static inline void tn_nif_end_run(struct tn_reap *reap)
{
    struct tn_nif_end *end = (struct tn_nif_end *)reap;

    tn_end_socket(&end->end);
    if (__atomic_load_n(&end->asked, __ATOMIC_ACQUIRE))
        (void)enif_send(NULL, &end->pid, end->env,
                        enif_make_tuple3(end->env, tn_atom(end->env, "tame_nng"), end->ref,
                                         tn_atom(end->env, "closed")));
    enif_free_env(end->env);
    enif_free(end);
}

/* ---- the handle ---- */

struct tn_nif {
    struct tame_fd fd; /* first: receives, or sends where the protocol does not receive */
    struct tn_socket socket;
    struct tame_fd *sends;   /* a resource that we hold; NULL: fd is what sends */
    struct tn_nif_end *end;  /* the close hook gives it away */
    void *kept;              /* a resource that keeps the type of messages (message.h) */
    nng_msg *early;          /* of who holds fd: came when nobody wanted it any more */
    struct tn_credit credit; /* messages to the owner */
    int pushing;             /* atomic: calls that receive for credit at this moment */
    ERL_NIF_TERM reader;     /* atomic: a pid; who waits for the owner, once credit was given */
};

static inline void tn_nif_close(struct tame_fd *fd, int number)
{
    struct tn_nif *handle = (struct tn_nif *)fd;

    (void)close(number);
    if (handle->end != NULL)
        tn_reaper_take(&handle->end->end.reap);
    handle->end = NULL;
}

static inline void tn_nif_destroy(struct tame_fd *fd)
{
    struct tn_nif *handle = (struct tn_nif *)fd;

    if (handle->sends != NULL)
        enif_release_resource(handle->sends);
    if (handle->kept != NULL)
        enif_release_resource(handle->kept);
    if (handle->early != NULL)
        nng_msg_free(handle->early);
}

static void tn_nif_lost(ErlNifEnv *env, struct tame_fd *fd, enum tame_fd_direction direction);

TAME_FD(tn_handles, struct tn_nif, .close = tn_nif_close, .destroy = tn_nif_destroy,
        .lost = tn_nif_lost)

struct tn_nif_sends {
    struct tame_fd fd;
};
TAME_FD(tn_sends, struct tn_nif_sends)

static inline struct tn_nif *tn_get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return (struct tn_nif *)tame_fd_get(env, term, &tn_handles);
}

static inline struct tame_fd *tn_sending(struct tn_nif *handle)
{
    return handle->sends != NULL ? handle->sends : &handle->fd;
}

static inline struct tame_fd *tn_direction(ErlNifEnv *env, struct tn_nif *handle,
                                           ERL_NIF_TERM direction)
{
    return enif_is_identical(direction, tn_atom(env, "send")) ? tn_sending(handle) : &handle->fd;
}

#endif
