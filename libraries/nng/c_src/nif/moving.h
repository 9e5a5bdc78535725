/* nif/moving.h - send and receive: try, and wait for the descriptor. */
#ifndef TAME_NNG_NIF_MOVING_H
#define TAME_NNG_NIF_MOVING_H

#include "message.h"

static void tn_push_after(ErlNifEnv *env, struct tn_nif *handle);

/* A message that came early, or the next of nng's. Of who holds the descriptor. */
static inline int tn_next(struct tn_nif *handle, nng_msg **message)
{
    if (handle->early == NULL)
        return tn_receive(&handle->socket, message);
    *message = handle->early;
    handle->early = NULL;
    return 0;
}

/* (Handle, Ref) -> {ok, Bytes} | wait | {wait, Ms} | {error, Reason}. {wait, Ms}: try again after
 * so long, because nng does not tell that a survey has ended. */
static ERL_NIF_TERM tn_nif_recv(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    enum tame_fd_answer answer;
    nng_duration ms;
    nng_msg *message;
    ErlNifPid self;
    int error;

    (void)argc;
    if (handle == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    if (!(handle->socket.protocol->traits & TN_RECEIVES))
        return tn_error(env, "enotsup");
    /* Also credit that came while we waited: our turn goes on to it. */
    if (tn_credit_has(&handle->credit)) {
        (void)tame_fd_cancel(env, &handle->fd, TAME_FD_READ, enif_self(env, &self));
        tn_push_after(env, handle);
        return tn_error(env, tame_fd_owner(&handle->fd, &self) ? "einval" : "closed");
    }
    answer = tame_fd_begin(env, &handle->fd, TAME_FD_READ, enif_self(env, &self), argv[1]);
    if (answer != TAME_FD_GO)
        return tn_answer(env, answer);
    error = tn_next(handle, &message);
    if (error == NNG_EAGAIN)
        error = tn_ask(&handle->socket, TN_RECEIVING, tame_fd_number(&handle->fd));
    if (error != NNG_EAGAIN) {
        tame_fd_done(env, &handle->fd, TAME_FD_READ);
        tn_push_after(env, handle);
        return error == 0 ? tn_ok(env, tn_message_bytes(env, message)) : tn_failed(env, error);
    }
    answer = tame_fd_wait(env, &handle->fd, TAME_FD_READ, &self, argv[1]);
    ms = tn_survey_left_of(&handle->socket);
    if (answer == TAME_FD_WAIT && ms >= 0)
        return enif_make_tuple2(env, tn_atom(env, "wait"), enif_make_int(env, ms + 1));
    return tn_answer(env, answer);
}

/* Sends the message that is held, or waits: {wait, Held}. */
static ERL_NIF_TERM tn_send_held(ErlNifEnv *env, struct tn_nif *handle, struct tn_message *held,
                                 ERL_NIF_TERM term, ERL_NIF_TERM ref)
{
    struct tame_fd *fd = tn_sending(handle);
    enum tame_fd_answer answer;
    ErlNifPid self;
    int error;

    answer = tame_fd_begin(env, fd, TAME_FD_READ, enif_self(env, &self), ref);
    if (answer == TAME_FD_GO) {
        error = held->message == NULL ? NNG_EINVAL
                                      : tn_send(&handle->socket, held->message, tame_fd_number(fd));
        if (error == 0)
            held->message = NULL;
        if (error == NNG_EAGAIN)
            error = tn_ask(&handle->socket, TN_SENDING, tame_fd_number(fd));
        if (error != NNG_EAGAIN) {
            tame_fd_done(env, fd, TAME_FD_READ);
            return error == 0 ? tn_atom(env, "ok") : tn_failed(env, error);
        }
        answer = tame_fd_wait(env, fd, TAME_FD_READ, &self, ref);
    }
    return answer == TAME_FD_WAIT ? enif_make_tuple2(env, tn_atom(env, "wait"), term)
                                  : tn_answer(env, answer);
}

/* (Handle, [Binary] | Held, Ref) -> ok | {wait, Held} | {error, Reason}. What is large is copied
 * on a dirty scheduler, before its turn is asked for. */
static ERL_NIF_TERM tn_nif_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    struct tn_message *held;
    size_t bytes, parts;
    ERL_NIF_TERM term;
    nng_msg *message;

    if (handle == NULL || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);
    if (!(handle->socket.protocol->traits & TN_SENDS))
        return tn_error(env, "enotsup");
    if (enif_get_resource(env, argv[1], tn_messages, (void **)&held))
        return tn_send_held(env, handle, held, argv[1], argv[2]);
    if (!tn_parts_measure(env, argv[1], &bytes, &parts))
        return enif_make_badarg(env);
    if ((bytes > TN_SLICE_BYTES || parts > TN_SLICE_PARTS) && !tn_is_dirty())
        return enif_schedule_nif(env, "send", ERL_NIF_DIRTY_JOB_CPU_BOUND, tn_nif_send, argc, argv);
    message = tn_message_make(env, argv[1], bytes);
    held = message == NULL ? NULL : tn_message_hold(message);
    if (held == NULL) {
        if (message != NULL)
            nng_msg_free(message);
        return tn_error(env, "enomem");
    }
    term = enif_make_resource(env, held);
    enif_release_resource(held);
    return tn_send_held(env, handle, held, term, argv[2]);
}

#endif
