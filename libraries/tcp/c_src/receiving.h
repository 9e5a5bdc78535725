/* receiving.h - receive: what is there, an exact length, or messages for credit. */
#ifndef TAME_TCP_RECEIVING_H
#define TAME_TCP_RECEIVING_H

#include <string.h>
#include <sys/socket.h>

#include "socket.h"

/* What fits here is read without a binary of the buffer's size. */
#define TCP_SMALL 8192

/* gen_tcp's own limit for a receive of an exact length. */
#define TCP_EXACT_MAX (64 * 1024 * 1024)

/* A receive of an exact length takes memory as it fills it. */
#define TCP_EXACT_STEP (256 * 1024)

/* What a call copies at most: 0.2 ms at 4 GB/s. */
#define TCP_SLICE_BYTES ((size_t)1024 * 1024)

enum tcp_read {
    TCP_READ_SOME,
    TCP_READ_BLOCKS,
    TCP_READ_SLICE,
    TCP_READ_PART,
    TCP_READ_END,
    TCP_READ_FAILS
};

/* Reports the time that copying takes: 0.2 us for each KiB, of a timeslice of 1 ms. */
static inline void tcp_charge(ErlNifEnv *env, size_t bytes)
{
    const size_t percent = bytes / 51200;

    if (percent > 0)
        (void)enif_consume_timeslice(env, percent > 100 ? 100 : (int)percent);
}

static inline ssize_t tcp_recv(int number, void *to, size_t size)
{
    ssize_t n;

    do
        n = recv(number, to, size, 0);
    while (n < 0 && errno == EINTR);
    return n;
}

static inline enum tcp_read tcp_read_result(ssize_t n, int *error)
{
    if (n > 0)
        return TCP_READ_SOME;
    if (n == 0)
        return TCP_READ_END;
    *error = errno;
    return tcp_would_block(errno) ? TCP_READ_BLOCKS : TCP_READ_FAILS;
}

static inline void tcp_received(struct tcp_socket *socket, size_t bytes)
{
    __atomic_fetch_add(&socket->received, (int64_t)bytes, __ATOMIC_RELAXED);
}

/* What is there, up to the buffer's size, as a term of env. Reads into a small buffer of the stack,
 * unless the last one filled it: then into a binary, of which what is not used is given back. */
static enum tcp_read tcp_read_some(ErlNifEnv *env, struct tcp_socket *socket, ERL_NIF_TERM *term,
                                   int *error)
{
    const size_t buffer = (size_t)__atomic_load_n(&socket->buffer, __ATOMIC_RELAXED);
    const int number = tame_fd_number(&socket->fd);
    unsigned char small[TCP_SMALL];
    ErlNifBinary binary;
    enum tcp_read result;
    ssize_t n;

    if (socket->last_read < TCP_SMALL || buffer <= TCP_SMALL) {
        n = tcp_recv(number, small, buffer < TCP_SMALL ? buffer : TCP_SMALL);
        result = tcp_read_result(n, error);
        if (result == TCP_READ_SOME)
            memcpy(enif_make_new_binary(env, (size_t)n, term), small, (size_t)n);
    } else {
        if (!enif_alloc_binary(buffer, &binary)) {
            *error = ENOMEM;
            return TCP_READ_FAILS;
        }
        n = tcp_recv(number, binary.data, buffer);
        result = tcp_read_result(n, error);
        if (result == TCP_READ_SOME && (size_t)n >= TCP_SMALL) {
            if ((size_t)n < buffer - buffer / 4)
                (void)enif_realloc_binary(&binary, (size_t)n);
            *term = enif_make_binary(env, &binary);
            if ((size_t)n < buffer)
                *term = enif_make_sub_binary(env, *term, 0, (size_t)n);
        } else {
            if (result == TCP_READ_SOME)
                memcpy(enif_make_new_binary(env, (size_t)n, term), binary.data, (size_t)n);
            enif_release_binary(&binary);
        }
    }
    if (result == TCP_READ_SOME) {
        socket->last_read = (int)n;
        tcp_received(socket, (size_t)n);
        tcp_charge(env, (size_t)n);
    }
    return result;
}

/* The first `size` bytes of what came early; they are there. */
static ERL_NIF_TERM tcp_early_take(ErlNifEnv *env, struct tcp_socket *socket, size_t size)
{
    ERL_NIF_TERM term;

    if (size == socket->early_size && socket->early_at == 0) {
        socket->has_early = 0;
        socket->early_size = 0;
        if (size < socket->early.size && !enif_realloc_binary(&socket->early, size)) {
            memcpy(enif_make_new_binary(env, size, &term), socket->early.data, size);
            enif_release_binary(&socket->early);
            return term;
        }
        return enif_make_binary(env, &socket->early);
    }
    if (size == socket->early_size && size > TCP_SLICE_BYTES) { /* too much to copy here */
        term = enif_make_sub_binary(env, enif_make_binary(env, &socket->early), socket->early_at,
                                    size);
        socket->has_early = 0;
        socket->early_at = 0;
        socket->early_size = 0;
        return term;
    }
    memcpy(enif_make_new_binary(env, size, &term), socket->early.data + socket->early_at, size);
    socket->early_at += size;
    socket->early_size -= size;
    if (socket->early_size == 0) {
        enif_release_binary(&socket->early);
        socket->has_early = 0;
        socket->early_at = 0;
    }
    tcp_charge(env, size);
    return term;
}

/* Room for more, up to `size` bytes in all. What is there moves to the front only here, where it is
 * less than what is asked for: not with each taking. */
static int tcp_early_room(struct tcp_socket *socket, size_t size)
{
    size_t room = socket->early_size * 2;

    if (socket->has_early && socket->early_at > 0) {
        memmove(socket->early.data, socket->early.data + socket->early_at, socket->early_size);
        socket->early_at = 0;
    }
    if (room < TCP_EXACT_STEP)
        room = TCP_EXACT_STEP;
    if (room > size)
        room = size;
    if (!socket->has_early)
        return socket->has_early = enif_alloc_binary(room, &socket->early);
    return socket->early.size > socket->early_size || enif_realloc_binary(&socket->early, room);
}

/* `size` bytes, TCP_SMALL at most, when they are there: nothing is allocated before anything has come,
 * and a small binary lives in the caller's heap. TCP_READ_PART: so many came early. */
static enum tcp_read tcp_read_small(ErlNifEnv *env, struct tcp_socket *socket, size_t size,
                                    ERL_NIF_TERM *term, int *error)
{
    unsigned char small[TCP_SMALL];
    const ssize_t n = tcp_recv(tame_fd_number(&socket->fd), small, size);
    const enum tcp_read result = tcp_read_result(n, error);

    if (result != TCP_READ_SOME)
        return result;
    tcp_received(socket, (size_t)n);
    if ((size_t)n == size) {
        memcpy(enif_make_new_binary(env, size, term), small, size);
        return TCP_READ_SOME;
    }
    if (!tcp_early_room(socket, size)) { /* what has come is lost: nobody may read on behind it */
        (void)tame_fd_close(env, &socket->fd, NULL, 0);
        *error = ENOMEM;
        return TCP_READ_FAILS;
    }
    memcpy(socket->early.data, small, (size_t)n);
    socket->early_size = (size_t)n;
    return TCP_READ_PART;
}

/* Exactly `size` bytes. What has come of them is kept in the socket when it has to wait, also for a
 * later call of another length. */
static enum tcp_read tcp_read_exact(ErlNifEnv *env, struct tcp_socket *socket, size_t size,
                                    ERL_NIF_TERM *term, int *error)
{
    size_t bytes = 0;

    if (socket->early_size == 0 && size <= TCP_SMALL) {
        const enum tcp_read result = tcp_read_small(env, socket, size, term, error);

        if (result != TCP_READ_PART)
            return result;
    }
    while (socket->early_size < size) {
        enum tcp_read result;
        size_t room;
        ssize_t n;

        if (!tcp_early_room(socket, size)) {
            *error = ENOMEM;
            return TCP_READ_FAILS;
        }
        room = socket->early.size < size ? socket->early.size : size;
        n = tcp_recv(tame_fd_number(&socket->fd), socket->early.data + socket->early_size,
                     room - socket->early_size);
        result = tcp_read_result(n, error);
        if (result != TCP_READ_SOME)
            return result;
        socket->early_size += (size_t)n;
        bytes += (size_t)n;
        tcp_received(socket, (size_t)n);
        tcp_charge(env, (size_t)n);
        if (bytes >= TCP_SLICE_BYTES && socket->early_size < size)
            return TCP_READ_SLICE;
    }
    *term = tcp_early_take(env, socket, size);
    return TCP_READ_SOME;
}

/* (Socket, Length, Ref) -> {ok, Binary} | wait | {error, Reason}; Length 0: what is there. */
static ERL_NIF_TERM tcp_receive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    enum tame_fd_answer answer;
    enum tcp_read result;
    ErlNifUInt64 size;
    ERL_NIF_TERM term;
    ErlNifPid self;
    int error = 0;

    (void)argc;
    if (socket == NULL || !enif_get_uint64(env, argv[1], &size) || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);
    if (size > TCP_EXACT_MAX)
        return tcp_error(env, "enomem");
    /* Also credit that came while we waited: our turn goes on to it. */
    if (tcp_has_credit(socket)) {
        (void)tame_fd_cancel(env, &socket->fd, TAME_FD_READ, enif_self(env, &self));
        tcp_push_after(env, socket);
        return tcp_error(env, "einval");
    }
    answer = tcp_begin(env, socket, TAME_FD_READ, argv[2]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    if (size == 0 && socket->early_size > 0) {
        term = tcp_early_take(env, socket, socket->early_size);
        result = TCP_READ_SOME;
    } else {
        result = size == 0 ? tcp_read_some(env, socket, &term, &error)
                           : tcp_read_exact(env, socket, size, &term, &error);
    }
    if (result == TCP_READ_BLOCKS)
        return tcp_wait(env, socket, TAME_FD_READ, argv[2]);
    if (result == TCP_READ_SLICE)
        return tcp_again(env, socket, TAME_FD_READ, argv[2]);
    tame_fd_done(env, &socket->fd, TAME_FD_READ);
    tcp_push_after(env, socket);
    switch (result) {
    case TCP_READ_SOME:
        return tcp_ok(env, term);
    case TCP_READ_END:
        return tcp_error(env, "closed");
    default:
        return tcp_errno(env, error);
    }
}

#endif
