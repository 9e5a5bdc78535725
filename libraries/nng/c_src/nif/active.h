/* nif/active.h - messages for credit: {nng, Socket, Bytes} to the owner.
 *
 * Who gives credit receives what is there at once. When nothing is, a reader, one of a few
 * processes of the application, waits in the owner's place and receives then. */
#ifndef TAME_NNG_NIF_ACTIVE_H
#define TAME_NNG_NIF_ACTIVE_H

#include "moving.h"

/* {Tag, Socket} or {Tag, Socket, Term}. */
static void tn_tell(ErlNifEnv *env, struct tn_nif *handle, const ErlNifPid *pid, const char *tag,
                    const ERL_NIF_TERM *term)
{
    const ERL_NIF_TERM name = tn_atom(env, tag), self = enif_make_resource(env, handle);

    (void)enif_send(env, pid, NULL,
                    term == NULL ? enif_make_tuple2(env, name, self)
                                 : enif_make_tuple3(env, name, self, *term));
}

static void tn_tell_owner(ErlNifEnv *env, struct tn_nif *handle, const char *tag,
                          const ERL_NIF_TERM *term)
{
    ErlNifPid owner;

    if (tame_fd_owner(&handle->fd, &owner))
        tn_tell(env, handle, &owner, tag, term);
}

/* Closes first: who is told that a socket is closed finds it so. But one that is has no owner. */
static void tn_push_end(ErlNifEnv *env, struct tn_nif *handle, const char *reason)
{
    const ERL_NIF_TERM atom = tn_atom(env, reason);
    ErlNifPid owner;
    const int owned = tame_fd_owner(&handle->fd, &owner);

    (void)tn_credit_end(&handle->credit);
    if (handle->sends != NULL)
        (void)tame_fd_close(env, handle->sends, NULL, 0);
    (void)tame_fd_close(env, &handle->fd, NULL, 0);
    if (!owned)
        return;
    tn_tell(env, handle, &owner, "nng_error", &atom);
    tn_tell(env, handle, &owner, "nng_closed", NULL);
}

/* Messages while there is credit, up to a slice. 0: there may be more. */
static int tn_push_some(ErlNifEnv *env, struct tn_nif *handle)
{
    int last = 0, error = 0;

    for (int n = 0; n < TN_TURN_MESSAGES && !last && tn_credit_has(&handle->credit); n++) {
        ERL_NIF_TERM bytes;
        nng_msg *message;

        error = tn_next(handle, &message);
        if (error == NNG_ESTATE)
            error = NNG_EAGAIN; /* no request or survey is out; one may be, later */
        if (error != 0)
            break;
        /* Credit that was withdrawn meanwhile: the message is for the next receive. */
        if (!tn_credit_take(&handle->credit, &last)) {
            handle->early = message;
            break;
        }
        bytes = tn_message_bytes(env, message);
        tn_tell_owner(env, handle, "nng", &bytes);
    }
    if (last)
        tn_tell_owner(env, handle, "nng_passive", NULL);
    return error;
}

/* Receives for credit, as the process `self'; when nothing is there `reader' waits. When the turn is a
 * receiver's, the end of its receive goes on: see tn_push_after. */
static void tn_push(ErlNifEnv *env, struct tn_nif *handle, const ErlNifPid *self,
                    const ErlNifPid *reader)
{
    enum tame_fd_answer answer = TAME_FD_DONE;
    int error = 0;

    (void)__atomic_add_fetch(&handle->pushing, 1, __ATOMIC_SEQ_CST);
    /* Credit may come between the last look at it and the end of our turn. */
    while (answer == TAME_FD_DONE && tn_credit_has(&handle->credit) &&
           tame_fd_begin(env, &handle->fd, TAME_FD_READ, self, 0) == TAME_FD_GO) {
        error = tn_push_some(env, handle);
        if (!tn_credit_has(&handle->credit) || (error != 0 && error != NNG_EAGAIN))
            tame_fd_done(env, &handle->fd, TAME_FD_READ);
        else
            answer = error == NNG_EAGAIN ? tame_fd_wait(env, &handle->fd, TAME_FD_READ, reader, 0)
                                         : tame_fd_again(env, &handle->fd, TAME_FD_READ, reader, 0);
        /* Withdrawn meanwhile: out of the line here, or in tn_push_withdrawn when that is later. */
        if (answer == TAME_FD_WAIT && !tn_credit_has(&handle->credit)) {
            (void)tame_fd_cancel(env, &handle->fd, TAME_FD_READ, reader);
            answer = TAME_FD_DONE;
        }
        if (answer == TAME_FD_FAILED || (error != 0 && error != NNG_EAGAIN)) {
            tn_push_end(env, handle, answer == TAME_FD_FAILED ? "enomem" : tn_error_name(error));
            break;
        }
    }
    (void)__atomic_sub_fetch(&handle->pushing, 1, __ATOMIC_SEQ_CST);
}

/* A receive has ended, or a wait: goes on for credit that came meanwhile, as the reader. */
static void tn_push_after(ErlNifEnv *env, struct tn_nif *handle)
{
    ErlNifPid reader;

    if (!tn_credit_has(&handle->credit))
        return;
    reader.pid = __atomic_load_n(&handle->reader, __ATOMIC_ACQUIRE);
    tn_push(env, handle, &reader, &reader);
}

/* Credit was withdrawn: the reader waits no more, unless new credit has come since. */
static void tn_push_withdrawn(ErlNifEnv *env, struct tn_nif *handle, const ErlNifPid *reader)
{
    if (tn_credit_has(&handle->credit))
        return;
    (void)tame_fd_cancel(env, &handle->fd, TAME_FD_READ, reader);
    tn_push_after(env, handle);
}

/* (Handle) -> ok: by a reader that was told. */
static ERL_NIF_TERM tn_nif_push(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (handle == NULL)
        return enif_make_badarg(env);
    (void)enif_self(env, &self);
    tn_push(env, handle, &self, &self);
    tn_push_withdrawn(env, handle, &self);
    return tn_atom(env, "ok");
}

/* (Handle, true | once | Messages, Reader) -> ok | {error, Reason} */
static ERL_NIF_TERM tn_nif_credit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    enum tn_credit_kind kind = TN_CREDIT_MORE;
    ErlNifPid self, reader;
    int more = 0, passive, number, error;

    (void)argc;
    if (enif_is_identical(argv[1], tn_atom(env, "true")))
        kind = TN_CREDIT_TRUE;
    else if (enif_is_identical(argv[1], tn_atom(env, "once")))
        kind = TN_CREDIT_ONCE;
    else if (!enif_get_int(env, argv[1], &more))
        return enif_make_badarg(env);
    if (handle == NULL || !enif_get_local_pid(env, argv[2], &reader))
        return enif_make_badarg(env);
    if (!(handle->socket.protocol->traits & TN_RECEIVES))
        return tn_error(env, "enotsup");
    number = tame_fd_use(&handle->fd);
    if (number < 0)
        return tn_error(env, "closed");
    error = tn_ask(&handle->socket, TN_RECEIVING, number);
    if (error != NNG_EAGAIN) {
        tame_fd_unuse(env, &handle->fd);
        return tn_failed(env, error);
    }
    __atomic_store_n(&handle->reader, reader.pid, __ATOMIC_RELEASE);
    if (!tn_credit_give(&handle->credit, kind, more, &passive)) {
        tame_fd_unuse(env, &handle->fd);
        return tn_error(env, "einval");
    }
    if (passive)
        tn_tell_owner(env, handle, "nng_passive", NULL);
    (void)enif_self(env, &self);
    tn_push(env, handle, &self, &reader);
    if (passive)
        tn_push_withdrawn(env, handle, &reader);
    tame_fd_unuse(env, &handle->fd);
    return tn_atom(env, "ok");
}

/* (Handle, Reader) -> ok | again: no message comes after ok. Again: a push is at work, which ends
 * soon. A receive that waits is left alone. */
static ERL_NIF_TERM tn_nif_passive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    ErlNifPid reader;

    (void)argc;
    if (handle == NULL || !enif_get_local_pid(env, argv[1], &reader))
        return enif_make_badarg(env);
    (void)tn_credit_end(&handle->credit);
    tn_push_withdrawn(env, handle, &reader);
    return tn_atom(env, __atomic_load_n(&handle->pushing, __ATOMIC_SEQ_CST) == 0 ? "ok" : "again");
}

/* (Handle) -> true | false | once | Messages | {error, closed} */
static ERL_NIF_TERM tn_nif_active(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    ErlNifPid owner;
    int left;

    (void)argc;
    if (handle == NULL)
        return enif_make_badarg(env);
    if (!tame_fd_owner(&handle->fd, &owner))
        return tn_error(env, "closed");
    left = __atomic_load_n(&handle->credit.left, __ATOMIC_ACQUIRE);
    if (left == TN_PASSIVE || left == TN_ALWAYS)
        return tn_atom(env, left == TN_ALWAYS ? "true" : "false");
    return __atomic_load_n(&handle->credit.once, __ATOMIC_ACQUIRE) ? tn_atom(env, "once")
                                                                   : enif_make_int(env, left);
}

/* Who waited has died. A receiver frees the turn, and the reader is told to look; without its reader
 * nobody would receive. Not here: this is no process, whose time receiving would take. */
static void tn_nif_lost(ErlNifEnv *env, struct tame_fd *fd, enum tame_fd_direction direction)
{
    struct tn_nif *handle = (struct tn_nif *)fd;
    ErlNifPid reader;

    (void)direction;
    if (!tn_credit_has(&handle->credit))
        return;
    reader.pid = __atomic_load_n(&handle->reader, __ATOMIC_ACQUIRE);
    if (!enif_is_process_alive(env, &reader))
        tn_push_end(env, handle, "reader_down");
    else if (tame_fd_begin(env, &handle->fd, TAME_FD_READ, &reader, 0) == TAME_FD_GO &&
             tame_fd_again(env, &handle->fd, TAME_FD_READ, &reader, 0) == TAME_FD_FAILED)
        tn_push_end(env, handle, "enomem");
}

#endif
