/* socket.h - a socket: a descriptor of tame/fd.h, what arrived before it was wanted, and credit. */
#ifndef TAME_TCP_SOCKET_H
#define TAME_TCP_SOCKET_H

#include <stdint.h>
#include <tame/fd.h>

#include "answer.h"
#include "early.h"

struct tcp_socket {
    struct tame_fd fd;
    int64_t buffer; /* atomic: the most bytes that a receive of any length returns */
    int last_read; /* bytes; how large the next may be. Of who holds TAME_FD_READ, as what follows */
    struct tcp_early early;
    int part;            /* atomic: who waits for an exact length has some of it in `early` */
    int credit;          /* atomic: messages that may still be sent; TCP_PASSIVE, or TCP_ALWAYS */
    int once;            /* atomic: the credit is that of {active, once}: no `passive` at its end */
    int pushing;         /* atomic: calls that read for credit at this moment */
    ERL_NIF_TERM reader; /* atomic: a pid; who waits for the owner, once credit was given */
    int64_t send_timeout_ms; /* atomic; -1: none. For Erlang, as what follows */
    int64_t send_timeout_close;
    int listens;            /* atomic: a listening socket, which has no credit of its own, */
    int64_t accept_active;  /* but what those that it accepts begin with */
    int64_t sent, received; /* atomic; bytes */
};

#define TCP_PASSIVE 0
#define TCP_ALWAYS (-1)
/* As accept_active, beside TCP_PASSIVE, TCP_ALWAYS and a number of messages. */
#define TCP_ACCEPT_ONCE (1 << 16)

static inline int tcp_has_credit(struct tcp_socket *socket)
{
    return __atomic_load_n(&socket->credit, __ATOMIC_SEQ_CST) != TCP_PASSIVE;
}

static inline int tcp_listens(const struct tcp_socket *socket)
{
    return __atomic_load_n(&socket->listens, __ATOMIC_ACQUIRE);
}

#define TCP_BUFFER 65536
#define TCP_BUFFER_MAX (16 * 1024 * 1024)

static inline void tcp_socket_destroy(struct tame_fd *fd)
{
    struct tcp_socket *socket = (struct tcp_socket *)fd;

    tcp_early_end(&socket->early);
}

static void tcp_push_after(ErlNifEnv *env, struct tcp_socket *socket);
static void tcp_socket_lost(ErlNifEnv *env, struct tame_fd *fd, enum tame_fd_direction direction);

TAME_FD(tcp_sockets, struct tcp_socket, .destroy = tcp_socket_destroy, .lost = tcp_socket_lost)

static inline struct tcp_socket *tcp_get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return (struct tcp_socket *)tame_fd_get(env, term, &tcp_sockets);
}

/* {ok, Socket}, or the number is closed. */
static inline ERL_NIF_TERM tcp_socket_new(ErlNifEnv *env, int number, int64_t buffer)
{
    ErlNifPid self;
    struct tcp_socket *socket =
        (struct tcp_socket *)tame_fd_new(env, &tcp_sockets, number, enif_self(env, &self));

    if (socket == NULL) {
        (void)close(number);
        return tcp_error(env, "enomem");
    }
    socket->buffer = buffer;
    socket->send_timeout_ms = -1;
    return tcp_ok(env, tame_fd_term(env, socket));
}

/* The answer of tame_fd_begin or tame_fd_wait that is not TAME_FD_GO. */
static inline ERL_NIF_TERM tcp_answer(ErlNifEnv *env, enum tame_fd_answer answer)
{
    switch (answer) {
    case TAME_FD_WAIT:
        return tcp_words.wait;
    case TAME_FD_CLOSED:
        return tcp_error(env, "closed");
    default:
        return tcp_error(env, "enomem");
    }
}

/* The call tried and would block. */
static inline ERL_NIF_TERM tcp_wait(ErlNifEnv *env, struct tcp_socket *socket,
                                    enum tame_fd_direction direction, ERL_NIF_TERM ref)
{
    ErlNifPid self;

    return tcp_answer(env, tame_fd_wait(env, &socket->fd, direction, enif_self(env, &self), ref));
}

/* The call has done enough for one slice. */
static inline ERL_NIF_TERM tcp_again(ErlNifEnv *env, struct tcp_socket *socket,
                                     enum tame_fd_direction direction, ERL_NIF_TERM ref)
{
    ErlNifPid self;

    return tcp_answer(env, tame_fd_again(env, &socket->fd, direction, enif_self(env, &self), ref));
}

static inline enum tame_fd_answer tcp_begin(ErlNifEnv *env, struct tcp_socket *socket,
                                            enum tame_fd_direction direction, ERL_NIF_TERM ref)
{
    ErlNifPid self;

    return tame_fd_begin(env, &socket->fd, direction, enif_self(env, &self), ref);
}

#endif
