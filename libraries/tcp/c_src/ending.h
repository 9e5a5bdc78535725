/* ending.h - the end of a wait, of a direction, of a socket; and a new owner. */
#ifndef TAME_TCP_ENDING_H
#define TAME_TCP_ENDING_H

#include <sys/socket.h>

#include "socket.h"

/* (Socket, read | write) -> done | sent */
static ERL_NIF_TERM tcp_cancel(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    const enum tame_fd_direction direction =
        enif_is_identical(argv[1], tcp_atom(env, "read")) ? TAME_FD_READ : TAME_FD_WRITE;
    enum tame_fd_answer answer;
    ErlNifPid self;

    (void)argc;
    if (socket == NULL)
        return enif_make_badarg(env);
    answer = tame_fd_cancel(env, &socket->fd, direction, enif_self(env, &self));
    if (direction == TAME_FD_READ)
        tcp_push_after(env, socket);
    return tcp_atom(env, answer == TAME_FD_DONE ? "done" : "sent");
}

/* (Socket, read | write | read_write) -> ok | {error, Reason} */
static ERL_NIF_TERM tcp_shutdown(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    const int how = enif_is_identical(argv[1], tcp_atom(env, "read"))         ? SHUT_RD
                    : enif_is_identical(argv[1], tcp_atom(env, "write"))      ? SHUT_WR
                    : enif_is_identical(argv[1], tcp_atom(env, "read_write")) ? SHUT_RDWR
                                                                              : -1;
    int number, error;

    (void)argc;
    if (socket == NULL || how == -1)
        return enif_make_badarg(env);
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    error = shutdown(number, how) == 0 ? 0 : errno;
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* (Socket, Ref) -> ok | wait: {tame_fd, Ref, closed} comes. */
static ERL_NIF_TERM tcp_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (socket == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    return tcp_atom(env,
                    tame_fd_close(env, &socket->fd, enif_self(env, &self), argv[1]) == TAME_FD_WAIT
                        ? "wait"
                        : "ok");
}

/* (Socket, Pid) -> ok | {error, closed | not_owner | badarg} */
static ERL_NIF_TERM tcp_give(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid self, to;

    (void)argc;
    if (socket == NULL || !enif_get_local_pid(env, argv[1], &to))
        return enif_make_badarg(env);
    switch (tame_fd_give(env, &socket->fd, enif_self(env, &self), &to)) {
    case TAME_FD_DONE:
        return tcp_words.ok;
    case TAME_FD_CLOSED:
        return tcp_error(env, "closed");
    case TAME_FD_NOT_OWNER:
        return tcp_error(env, "not_owner");
    default:
        return tcp_error(env, "badarg");
    }
}

/* (Socket) -> {ok, Pid} | {error, closed} */
static ERL_NIF_TERM tcp_owner(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid owner;

    (void)argc;
    if (socket == NULL)
        return enif_make_badarg(env);
    return tame_fd_owner(&socket->fd, &owner) ? tcp_ok(env, enif_make_pid(env, &owner))
                                              : tcp_error(env, "closed");
}

#endif
