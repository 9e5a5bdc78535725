/* nif/opening.h - a new socket, its owner, and its end. */
#ifndef TAME_NNG_NIF_OPENING_H
#define TAME_NNG_NIF_OPENING_H

#include "active.h"
#include "handle.h"

/* NULL without memory. */
static inline struct tn_nif_end *tn_nif_end_new(const struct tn_socket *socket)
{
    struct tn_nif_end *end =
        (struct tn_nif_end *)enif_alloc(sizeof *end); /* tn_nif_end_run frees */

    if (end == NULL)
        return NULL;
    memset(end, 0, sizeof *end);
    end->end.reap.run = tn_nif_end_run;
    end->env = enif_alloc_env();
    if (end->env != NULL && tn_end_open(&end->end, socket) == 0)
        return end;
    if (end->env != NULL)
        enif_free_env(end->env);
    enif_free(end);
    return NULL;
}

/* The resource owns what it is given; NULL, and then all of it is closed. */
static inline struct tn_nif *tn_nif_new(ErlNifEnv *env, const struct tn_socket *socket,
                                        int receives, int sends)
{
    struct tn_nif_end *end = tn_nif_end_new(socket);
    struct tn_message *kept = tn_message_hold(NULL);
    struct tame_fd *second = NULL;
    struct tn_nif *handle = NULL;
    ErlNifPid self;

    (void)enif_self(env, &self);
    if (end != NULL && kept != NULL && receives >= 0 && sends >= 0) {
        second = (struct tame_fd *)tame_fd_new(env, &tn_sends, sends, &self);
        if (second != NULL)
            sends = -1;
    }
    if (end != NULL && kept != NULL && (second != NULL || receives < 0 || sends < 0))
        handle =
            (struct tn_nif *)tame_fd_new(env, &tn_handles, receives >= 0 ? receives : sends, &self);
    if (handle != NULL) {
        /* The owner runs this very call, so it is not dead, and nothing is closed yet. */
        handle->socket = *socket;
        handle->sends = second;
        handle->end = end;
        handle->kept = kept;
        return handle;
    }
    if (kept != NULL)
        enif_release_resource(kept);
    if (second != NULL)
        enif_release_resource(second);
    if (end != NULL) {
        tn_end_socket(&end->end);
        enif_free_env(end->env);
        enif_free(end);
    } else {
        (void)nng_close(socket->nng);
    }
    if (receives >= 0)
        (void)close(receives);
    if (sends >= 0)
        (void)close(sends);
    return NULL;
}

/* (Protocol) -> {ok, Handle} | {error, Reason} */
static ERL_NIF_TERM tn_nif_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const struct tn_protocol *protocol;
    struct tn_socket socket;
    struct tn_nif *handle;
    int receives, sends, error;
    char name[32];

    (void)argc;
    if (enif_get_atom(env, argv[0], name, sizeof name, ERL_NIF_LATIN1) <= 0 ||
        (protocol = tn_protocol_find(name)) == NULL)
        return enif_make_badarg(env);
    error = tn_open(&socket, protocol, &receives, &sends);
    if (error != 0)
        return tn_failed(env, error);
    handle = tn_nif_new(env, &socket, receives, sends);
    return handle == NULL ? tn_error(env, "enomem") : tn_ok(env, tame_fd_term(env, handle));
}

/* (Handle, Ref) -> ok | wait: {tame_nng, Ref, closed} comes when nng has closed its socket. */
static ERL_NIF_TERM tn_nif_close_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    ERL_NIF_TERM answer = tn_atom(env, "ok");
    struct tn_nif_end *end;

    (void)argc;
    if (handle == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    /* While we use the number the close hook does not run, so `end' is ours. */
    if (tame_fd_use(&handle->fd) < 0)
        return answer;
    end = handle->end;
    if (!__atomic_exchange_n(&end->asked, 1, __ATOMIC_ACQ_REL)) {
        (void)enif_self(env, &end->pid);
        end->ref = enif_make_copy(end->env, argv[1]);
        answer = tn_atom(env, "wait");
    }
    if (handle->sends != NULL)
        (void)tame_fd_close(env, handle->sends, NULL, 0);
    (void)tame_fd_close(env, &handle->fd, NULL, 0);
    tame_fd_unuse(env, &handle->fd);
    return answer;
}

/* (Handle, Pid) -> ok | {error, closed | not_owner | badarg} */
static ERL_NIF_TERM tn_nif_give(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    enum tame_fd_answer answer;
    ErlNifPid self, to;

    (void)argc;
    if (handle == NULL || !enif_get_local_pid(env, argv[1], &to))
        return enif_make_badarg(env);
    answer = tame_fd_give(env, &handle->fd, enif_self(env, &self), &to);
    if (answer == TAME_FD_DONE && handle->sends != NULL)
        (void)tame_fd_give(env, handle->sends, &self, &to);
    switch (answer) {
    case TAME_FD_DONE:
        return tn_atom(env, "ok");
    case TAME_FD_CLOSED:
        return tn_error(env, "closed");
    case TAME_FD_NOT_OWNER:
        return tn_error(env, "not_owner");
    default:
        return tn_error(env, "badarg");
    }
}

/* (Handle) -> {ok, Pid} | {error, closed} */
static ERL_NIF_TERM tn_nif_owner(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    ErlNifPid owner;

    (void)argc;
    if (handle == NULL)
        return enif_make_badarg(env);
    return tame_fd_owner(&handle->fd, &owner) ? tn_ok(env, enif_make_pid(env, &owner))
                                              : tn_error(env, "closed");
}

/* (Handle, recv | send) -> done | sent */
static ERL_NIF_TERM tn_nif_cancel(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    enum tame_fd_answer answer;
    ErlNifPid self;

    (void)argc;
    if (handle == NULL)
        return enif_make_badarg(env);
    answer = tame_fd_cancel(env, tn_direction(env, handle, argv[1]), TAME_FD_READ,
                            enif_self(env, &self));
    tn_push_after(env, handle);
    return tn_atom(env, answer == TAME_FD_DONE ? "done" : "sent");
}

/* (Handle, Code, Bytes) -> Reply, as control.h has it. On a dirty scheduler. */
static ERL_NIF_TERM tn_nif_control(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    unsigned char reply[TN_REPLY_MAX];
    ErlNifBinary bytes;
    ERL_NIF_TERM term;
    unsigned code;
    size_t size;
    int used;

    (void)argc;
    if (handle == NULL || !enif_get_uint(env, argv[1], &code) ||
        !enif_inspect_binary(env, argv[2], &bytes))
        return enif_make_badarg(env);
    /* While the number is in use the end is put off. What waits for a peer is ended by it. */
    used = code != TN_DIAL_WAIT && tame_fd_use(&handle->fd) >= 0;
    if (used || code == TN_DIAL_WAIT)
        size = tn_control(&handle->socket, code, bytes.data, bytes.size, reply);
    else
        size = tn_reply_done(reply, NNG_ECLOSED);
    if (used)
        tame_fd_unuse(env, &handle->fd);
    memcpy(enif_make_new_binary(env, size, &term), reply, size);
    return term;
}

#endif
