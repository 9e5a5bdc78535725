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

/* What one system call has read. */
struct tcp_chunk {
    size_t size;
    int is_large; /* in a binary of the buffer's size, which is the chunk's until it is a term or kept */
    ErlNifBinary large; /* then */
    unsigned char small[TCP_SMALL];
};

/* What is there, up to the buffer's size. Reads into a small buffer of the stack, unless the last one
 * filled it. */
static enum tcp_read tcp_chunk_read(ErlNifEnv *env, struct tcp_socket *socket,
                                    struct tcp_chunk *chunk, int *error)
{
    const int number = tame_fd_number(&socket->fd);
    size_t buffer = (size_t)__atomic_load_n(&socket->buffer, __ATOMIC_RELAXED);
    enum tcp_read result;
    ssize_t n;

    if (buffer > TCP_SLICE_BYTES)
        buffer = TCP_SLICE_BYTES;
    chunk->is_large = socket->last_read >= TCP_SMALL && buffer > TCP_SMALL;
    if (chunk->is_large && !enif_alloc_binary(buffer, &chunk->large)) {
        *error = ENOMEM;
        return TCP_READ_FAILS;
    }
    n = chunk->is_large ? tcp_recv(number, chunk->large.data, buffer)
                        : tcp_recv(number, chunk->small, buffer < TCP_SMALL ? buffer : TCP_SMALL);
    result = tcp_read_result(n, error);
    if (result != TCP_READ_SOME) {
        if (chunk->is_large)
            enif_release_binary(&chunk->large);
        return result;
    }
    chunk->size = (size_t)n;
    socket->last_read = (int)n;
    tcp_received(socket, (size_t)n);
    tcp_charge(env, (size_t)n);
    return TCP_READ_SOME;
}

/* Of a binary what is not used is given back. */
static ERL_NIF_TERM tcp_chunk_term(ErlNifEnv *env, struct tcp_chunk *chunk)
{
    const size_t size = chunk->size;
    ERL_NIF_TERM term;

    if (!chunk->is_large || size < TCP_SMALL) {
        memcpy(enif_make_new_binary(env, size, &term),
               chunk->is_large ? chunk->large.data : chunk->small, size);
        if (chunk->is_large)
            enif_release_binary(&chunk->large);
        return term;
    }
    if (size < chunk->large.size - chunk->large.size / 4)
        (void)enif_realloc_binary(&chunk->large, size);
    if (size == chunk->large.size)
        return enif_make_binary(env, &chunk->large);
    return enif_make_sub_binary(env, enif_make_binary(env, &chunk->large), 0, size);
}

/* For the next receive; nothing else is there. Returns 0 without memory. */
static int tcp_chunk_keep(struct tcp_socket *socket, struct tcp_chunk *chunk)
{
    if (!chunk->is_large) {
        if (!enif_alloc_binary(chunk->size, &chunk->large))
            return 0;
        memcpy(chunk->large.data, chunk->small, chunk->size);
    }
    tcp_early_keep(&socket->early, &chunk->large, chunk->size);
    return 1;
}

static enum tcp_read tcp_read_some(ErlNifEnv *env, struct tcp_socket *socket, ERL_NIF_TERM *term,
                                   int *error)
{
    struct tcp_chunk chunk;
    const enum tcp_read result = tcp_chunk_read(env, socket, &chunk, error);

    if (result == TCP_READ_SOME)
        *term = tcp_chunk_term(env, &chunk);
    return result;
}

/* `size` bytes, TCP_SMALL at most, when they are there: nothing is allocated before anything has come,
 * and a small binary lives in the caller's heap. TCP_READ_PART: a part came, and is kept. */
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
    if (tcp_early_room(env, &socket->early, size) !=
        TCP_READ_SOME) { /* what has come is lost: nobody may read on behind it */
        (void)tame_fd_close(env, &socket->fd, NULL, 0);
        *error = ENOMEM;
        return TCP_READ_FAILS;
    }
    memcpy(socket->early.block.data, small, (size_t)n);
    socket->early.size = (size_t)n;
    return TCP_READ_PART;
}

/* Exactly `size` bytes. What has come of them is kept in the socket when it has to wait, also for a
 * later call of another length. */
static enum tcp_read tcp_read_exact(ErlNifEnv *env, struct tcp_socket *socket, size_t size,
                                    ERL_NIF_TERM *term, int *error)
{
    struct tcp_early *early = &socket->early;
    size_t bytes = 0;
    enum tcp_read result;

    if (early->size == 0 && size <= TCP_SMALL) {
        result = tcp_read_small(env, socket, size, term, error);
        if (result != TCP_READ_PART)
            return result;
    }
    *error = ENOMEM; /* when no room can be made */
    while (early->size < size) {
        size_t room;
        ssize_t n;

        result = tcp_early_room(env, early, size);
        if (result != TCP_READ_SOME)
            return result;
        room = early->block.size - early->at < size ? early->block.size - early->at : size;
        room -= early->size;
        n = tcp_recv(tame_fd_number(&socket->fd), early->block.data + early->at + early->size,
                     room < TCP_SLICE_BYTES - bytes ? room : TCP_SLICE_BYTES - bytes);
        result = tcp_read_result(n, error);
        if (result != TCP_READ_SOME)
            return result;
        early->size += (size_t)n;
        bytes += (size_t)n;
        tcp_received(socket, (size_t)n);
        tcp_charge(env, (size_t)n);
        if (bytes >= TCP_SLICE_BYTES && early->size < size)
            return TCP_READ_SLICE;
    }
    return tcp_early_part(env, early, size, term);
}

/* A part that waits here is there for credit, which may come in this moment, or later: tcp_credit. */
static ERL_NIF_TERM tcp_receive_wait(ErlNifEnv *env, struct tcp_socket *socket, ERL_NIF_TERM ref)
{
    const int part = socket->early.size > 0;
    ERL_NIF_TERM answer;

    __atomic_store_n(&socket->part, part, __ATOMIC_SEQ_CST);
    answer = tcp_wait(env, socket, TAME_FD_READ, ref);
    if (part && tcp_has_credit(socket))
        tame_fd_wake(env, &socket->fd, TAME_FD_READ);
    return answer;
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
    if (size == 0 && socket->early.size > 0) {
        term = tcp_early_take(env, &socket->early);
        result = TCP_READ_SOME;
    } else {
        result = size == 0 ? tcp_read_some(env, socket, &term, &error)
                           : tcp_read_exact(env, socket, size, &term, &error);
    }
    if (result == TCP_READ_BLOCKS)
        return tcp_receive_wait(env, socket, argv[2]);
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
