/* sending.h - send: binaries as they are, many in one system call. */
#ifndef TAME_TCP_SENDING_H
#define TAME_TCP_SENDING_H

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "file.h"
#include "receiving.h"
#include "socket.h"

#define TCP_IOVEC 256

/* What a call sends at most: 0.2 to 0.5 ms. Less takes more time in all. */
#define TCP_SEND_BYTES ((size_t)1024 * 1024)

struct tcp_vector {
    struct iovec parts[TCP_IOVEC];
    int length;
    size_t bytes;
    int whole; /* there is no more in the list */
};

/* The leading binaries of a list, as many as there is room for, TCP_SEND_BYTES at most. Returns 0
 * when the list has something else in it. */
static int tcp_vector_get(ErlNifEnv *env, ERL_NIF_TERM list, struct tcp_vector *vector)
{
    ERL_NIF_TERM head, tail = list;
    ErlNifBinary binary;

    vector->length = 0;
    vector->bytes = 0;
    vector->whole = 1;
    while (enif_get_list_cell(env, tail, &head, &tail)) {
        const size_t room = TCP_SEND_BYTES - vector->bytes;

        if (!enif_inspect_binary(env, head, &binary))
            return 0;
        if (binary.size == 0)
            continue;
        vector->whole = vector->length < TCP_IOVEC && binary.size <= room;
        if (vector->length == TCP_IOVEC || room == 0)
            return 1;
        vector->parts[vector->length].iov_base = binary.data;
        vector->parts[vector->length].iov_len = vector->whole ? binary.size : room;
        vector->bytes += vector->parts[vector->length++].iov_len;
        if (!vector->whole)
            return 1;
    }
    return enif_is_empty_list(env, tail);
}

/* {wait, Bytes}: so much is sent, and a message comes. */
static ERL_NIF_TERM tcp_sent_some(ErlNifEnv *env, ERL_NIF_TERM wait, size_t bytes)
{
    return enif_is_atom(env, wait) ? enif_make_tuple2(env, wait, enif_make_uint64(env, bytes))
                                   : wait;
}

static void tcp_sent(ErlNifEnv *env, struct tcp_socket *socket, ssize_t bytes)
{
    if (bytes <= 0)
        return;
    __atomic_fetch_add(&socket->sent, (int64_t)bytes, __ATOMIC_RELAXED);
    tcp_charge(env, (size_t)bytes);
}

/* What a system call that sent `n` of `bytes` means; there is more when not whole. */
static ERL_NIF_TERM tcp_send_answer(ErlNifEnv *env, struct tcp_socket *socket, ssize_t n,
                                    size_t bytes, int whole, ERL_NIF_TERM ref)
{
    const int error = n < 0 ? errno : 0;

    tcp_sent(env, socket, n);
    if (n == (ssize_t)bytes && !whole)
        return tcp_sent_some(env, tcp_again(env, socket, TAME_FD_WRITE, ref), (size_t)n);
    if (tcp_would_block(error) || (n >= 0 && n < (ssize_t)bytes))
        return tcp_sent_some(env, tcp_wait(env, socket, TAME_FD_WRITE, ref), n > 0 ? (size_t)n : 0);
    tame_fd_done(env, &socket->fd, TAME_FD_WRITE);
    return n >= 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* (Socket, [Binary], Ref) -> ok | wait | {wait, Bytes} | {error, Reason} */
static ERL_NIF_TERM tcp_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    struct tcp_vector vector;
    struct msghdr message;
    enum tame_fd_answer answer;
    ssize_t n;

    (void)argc;
    if (socket == NULL || !enif_is_ref(env, argv[2]) || !tcp_vector_get(env, argv[1], &vector))
        return enif_make_badarg(env);
    answer = tcp_begin(env, socket, TAME_FD_WRITE, argv[2]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    memset(&message, 0, sizeof message);
    message.msg_iov = vector.parts;
    message.msg_iovlen = (size_t)vector.length;
    do /* without a vector the system has less to read of us */
        n = vector.length == 1 ? send(tame_fd_number(&socket->fd), vector.parts[0].iov_base,
                                      vector.bytes, MSG_NOSIGNAL)
                               : sendmsg(tame_fd_number(&socket->fd), &message, MSG_NOSIGNAL);
    while (n < 0 && errno == EINTR);
    return tcp_send_answer(env, socket, n, vector.bytes, vector.whole, argv[2]);
}

/* (Socket, File, Offset, Bytes, Ref) -> eof | as send. On a dirty scheduler: a disk may block. */
static ERL_NIF_TERM tcp_sendfile(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    const struct tcp_file *file = tcp_file_get(env, argv[1]);
    ErlNifUInt64 offset, bytes, now;
    enum tame_fd_answer answer;
    off_t at;
    ssize_t n;

    (void)argc;
    if (socket == NULL || file == NULL || !enif_get_uint64(env, argv[2], &offset) ||
        !enif_get_uint64(env, argv[3], &bytes) || offset > INT64_MAX || !enif_is_ref(env, argv[4]))
        return enif_make_badarg(env);
    answer = tcp_begin(env, socket, TAME_FD_WRITE, argv[4]);
    if (answer != TAME_FD_GO)
        return tcp_answer(env, answer);
    now = bytes < TCP_SEND_BYTES ? bytes : TCP_SEND_BYTES;
    at = (off_t)offset;
    do
        n = sendfile(tame_fd_number(&socket->fd), file->number, &at, (size_t)now);
    while (n < 0 && errno == EINTR);
    if (n == 0 && now > 0) {
        tame_fd_done(env, &socket->fd, TAME_FD_WRITE);
        return tcp_atom(env, "eof");
    }
    /* Less than was asked for: a full socket or the file's end; the next call knows. */
    if (n > 0 && (size_t)n < now) {
        tcp_sent(env, socket, n);
        return tcp_sent_some(env, tcp_again(env, socket, TAME_FD_WRITE, argv[4]), (size_t)n);
    }
    return tcp_send_answer(env, socket, n, (size_t)now, now == bytes, argv[4]);
}

#endif
