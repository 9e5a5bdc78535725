/* connecting.h - making sockets: open, bind, listen, accept, connect. */
#ifndef TAME_TCP_CONNECTING_H
#define TAME_TCP_CONNECTING_H

#include <fcntl.h>
#include <sys/socket.h>

#include "address.h"
#include "socket.h"

/* (inet | inet6 | local) -> {ok, Socket} | {error, Reason} */
static ERL_NIF_TERM tcp_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const int family = enif_is_identical(argv[0], tcp_atom(env, "inet"))    ? AF_INET
                       : enif_is_identical(argv[0], tcp_atom(env, "inet6")) ? AF_INET6
                       : enif_is_identical(argv[0], tcp_atom(env, "local")) ? AF_UNIX
                                                                            : -1;
    int number;

    (void)argc;
    if (family == -1)
        return enif_make_badarg(env);
    number = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return number < 0 ? tcp_errno(env, errno) : tcp_socket_new(env, number, TCP_BUFFER);
}

/* (Socket, Address) -> ok | {error, Reason}; einval: a path that is too long, or empty. */
static ERL_NIF_TERM tcp_bind(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    struct tcp_address address;
    int number, error;

    (void)argc;
    if (socket == NULL)
        return enif_make_badarg(env);
    if (!tcp_address_get(env, argv[1], &address))
        return tcp_error(env, "einval");
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    error = bind(number, &address.to.any, address.size) == 0 ? 0 : errno;
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* (Socket, Backlog) -> ok | {error, Reason} */
static ERL_NIF_TERM tcp_listen(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    int backlog, number, error;

    (void)argc;
    if (socket == NULL || !enif_get_int(env, argv[1], &backlog) || backlog < 0)
        return enif_make_badarg(env);
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    error = listen(number, backlog) == 0 ? 0 : errno;
    if (error == 0)
        __atomic_store_n(&socket->listens, 1, __ATOMIC_RELEASE);
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* Of a connection that ended before it was taken. */
static int tcp_accept_again(int error)
{
    return error == ECONNABORTED || error == EINTR || error == EPROTO;
}

/* {ok, Socket, Active} */
static ERL_NIF_TERM tcp_accepted(ErlNifEnv *env, const struct tcp_socket *listening, int number)
{
    const ERL_NIF_TERM made =
        tcp_socket_new(env, number, __atomic_load_n(&listening->buffer, __ATOMIC_RELAXED));
    const ERL_NIF_TERM *terms;
    int arity;

    if (!enif_get_tuple(env, made, &arity, &terms) || !enif_is_ref(env, terms[1]))
        return made;
    return enif_make_tuple3(
        env, terms[0], terms[1],
        enif_make_int64(env, __atomic_load_n(&listening->accept_active, __ATOMIC_RELAXED)));
}

/* (Socket, Ref) -> {ok, Socket, Active} | wait | {error, Reason} */
static ERL_NIF_TERM tcp_accept(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    enum tame_fd_answer answer;
    int number, error;

    (void)argc;
    if (socket == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    answer = tcp_begin(env, socket, TAME_FD_READ, argv[1]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    do {
        number = accept4(tame_fd_number(&socket->fd), NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        error = number < 0 ? errno : 0;
    } while (tcp_accept_again(error));
    if (tcp_would_block(error))
        return tcp_wait(env, socket, TAME_FD_READ, argv[1]);
    tame_fd_done(env, &socket->fd, TAME_FD_READ);
    return error != 0 ? tcp_errno(env, error) : tcp_accepted(env, socket, number);
}

/* (Socket, Address, Ref) -> ok | wait | again | {error, Reason}. Again: the backlog of a Unix socket is
 * full; then nothing is on its way, and nothing tells when there is room. */
static ERL_NIF_TERM tcp_connect(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    struct tcp_address address;
    enum tame_fd_answer answer;
    int error;

    (void)argc;
    if (socket == NULL || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);
    if (!tcp_address_get(env, argv[1], &address))
        return tcp_error(env, "einval");
    answer = tcp_begin(env, socket, TAME_FD_WRITE, argv[2]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    error = connect(tame_fd_number(&socket->fd), &address.to.any, address.size) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR)
        return tcp_wait(env, socket, TAME_FD_WRITE, argv[2]);
    tame_fd_done(env, &socket->fd, TAME_FD_WRITE);
    if (error == EAGAIN && address.to.any.sa_family == AF_UNIX)
        return tcp_atom(env, "again");
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* (Socket, Ref) -> ok | wait | {error, Reason}: after connect's wait. */
static ERL_NIF_TERM tcp_connected(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    enum tame_fd_answer answer;
    struct tcp_address peer;
    int error = 0, number;
    socklen_t size = sizeof error;

    (void)argc;
    if (socket == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    answer = tcp_begin(env, socket, TAME_FD_WRITE, argv[1]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    number = tame_fd_number(&socket->fd);
    if (getsockopt(number, SOL_SOCKET, SO_ERROR, &error, &size) != 0)
        error = errno;
    peer.size = sizeof peer.to;
    /* `ready` means try: without a peer and without an error it still goes on. */
    if (error == 0 && getpeername(number, &peer.to.any, &peer.size) != 0 && errno == ENOTCONN)
        return tcp_wait(env, socket, TAME_FD_WRITE, argv[1]);
    tame_fd_done(env, &socket->fd, TAME_FD_WRITE);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

#endif
