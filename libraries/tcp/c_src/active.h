/* active.h - messages for credit: {tcp, Socket, Data} to the owner.
 *
 * Who gives credit reads what is there at once. When nothing is, a reader, one of a few processes
 * of the application, waits in the owner's place and reads then; so the VM's own select is all that
 * wakes anybody, and no thread is needed. */
#ifndef TAME_TCP_ACTIVE_H
#define TAME_TCP_ACTIVE_H

#include "receiving.h"

/* Messages of one call, before others have their turn. */
#define TCP_PUSH_MESSAGES 16

/* {Tag, Socket} or {Tag, Socket, Term}. */
static void tcp_tell(ErlNifEnv *env, struct tcp_socket *socket, const ErlNifPid *pid,
                     ERL_NIF_TERM name, const ERL_NIF_TERM *term)
{
    const ERL_NIF_TERM self = enif_make_resource(env, socket);

    (void)enif_send(env, pid, NULL,
                    term == NULL ? enif_make_tuple2(env, name, self)
                                 : enif_make_tuple3(env, name, self, *term));
}

static void tcp_tell_owner(ErlNifEnv *env, struct tcp_socket *socket, ERL_NIF_TERM name,
                           const ERL_NIF_TERM *term)
{
    ErlNifPid owner;

    if (tame_fd_owner(&socket->fd, &owner))
        tcp_tell(env, socket, &owner, name, term);
}

/* Closes first: who is told that a socket is closed finds it so. But one that is has no owner. */
static void tcp_push_end(ErlNifEnv *env, struct tcp_socket *socket, const char *reason)
{
    ErlNifPid owner;
    const int owned = tame_fd_owner(&socket->fd, &owner);

    __atomic_store_n(&socket->credit, TCP_PASSIVE, __ATOMIC_RELEASE);
    (void)tame_fd_close(env, &socket->fd, NULL, 0);
    if (!owned)
        return;
    if (reason != NULL) {
        const ERL_NIF_TERM atom = tcp_atom(env, reason);

        tcp_tell(env, socket, &owner, tcp_atom(env, "tcp_error"), &atom);
    }
    tcp_tell(env, socket, &owner, tcp_atom(env, "tcp_closed"), NULL);
}

/* Takes one of the credit. Whether there was any; and whether it was the last of a number that was
 * given, which the owner is told. */
static int tcp_credit_take(struct tcp_socket *socket, int *last)
{
    const int once = __atomic_load_n(&socket->once, __ATOMIC_ACQUIRE);
    int credit = __atomic_load_n(&socket->credit, __ATOMIC_SEQ_CST);

    while (credit > 0)
        if (__atomic_compare_exchange_n(&socket->credit, &credit, credit - 1, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE)) {
            *last = credit == 1 && !once;
            return 1;
        }
    return credit == TCP_ALWAYS;
}

/* Gives `more`, or takes as much. Returns 0 when the sum is too large; *passive is whether the owner is
 * told that it has none. */
static int tcp_credit_add(struct tcp_socket *socket, int more, int *passive)
{
    int before = __atomic_load_n(&socket->credit, __ATOMIC_ACQUIRE), sum;

    if (more > INT16_MAX || more < INT16_MIN)
        return 0;
    do {
        sum = (before == TCP_ALWAYS ? 0 : before) + more;
        if (sum > INT16_MAX)
            return 0;
    } while (!__atomic_compare_exchange_n(&socket->credit, &before, sum < 0 ? 0 : sum, 0,
                                          __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE));
    __atomic_store_n(&socket->once, 0, __ATOMIC_RELEASE);
    *passive = sum <= 0;
    return 1;
}

/* The next message, or why there is none. */
static enum tcp_read tcp_push_one(ErlNifEnv *env, struct tcp_socket *socket, int *last, int *error)
{
    const int early = socket->early.size > 0;
    struct tcp_chunk chunk;
    ERL_NIF_TERM data;

    if (!early) {
        const enum tcp_read result = tcp_chunk_read(env, socket, &chunk, error);

        if (result != TCP_READ_SOME)
            return result;
    }
    /* Credit that was withdrawn meanwhile: the data is for the next receive. */
    if (!tcp_credit_take(socket, last)) {
        *error = ENOMEM;
        return early || tcp_chunk_keep(socket, &chunk) ? TCP_READ_BLOCKS : TCP_READ_FAILS;
    }
    data = early ? tcp_early_take(env, &socket->early) : tcp_chunk_term(env, &chunk);
    tcp_tell_owner(env, socket, tcp_words.tcp, &data);
    return TCP_READ_SOME;
}

/* Messages while there is credit, up to a slice. */
static enum tcp_read tcp_push_some(ErlNifEnv *env, struct tcp_socket *socket, int *error)
{
    const int64_t before = __atomic_load_n(&socket->received, __ATOMIC_RELAXED);
    enum tcp_read result = TCP_READ_SOME;
    int last = 0;

    for (int messages = 0;
         messages < TCP_PUSH_MESSAGES && result == TCP_READ_SOME && !last && tcp_has_credit(socket);
         messages++) {
        result = tcp_push_one(env, socket, &last, error);
        if (__atomic_load_n(&socket->received, __ATOMIC_RELAXED) - before >=
            (int64_t)TCP_SLICE_BYTES)
            break;
    }
    if (last)
        tcp_tell_owner(env, socket, tcp_atom(env, "tcp_passive"), NULL);
    return result;
}

/* The reader waits, if there is credit. Credit that is withdrawn meanwhile takes it out of the line:
 * here, or in tcp_passive when that comes later. */
static enum tame_fd_answer tcp_push_wait(ErlNifEnv *env, struct tcp_socket *socket,
                                         enum tcp_read result, const ErlNifPid *reader)
{
    enum tame_fd_answer answer = TAME_FD_DONE;

    if (tcp_has_credit(socket) && result == TCP_READ_BLOCKS)
        answer = tame_fd_wait(env, &socket->fd, TAME_FD_READ, reader, 0);
    else if (tcp_has_credit(socket) && result == TCP_READ_SOME)
        answer = tame_fd_again(env, &socket->fd, TAME_FD_READ, reader, 0);
    else
        tame_fd_done(env, &socket->fd, TAME_FD_READ);
    if (answer == TAME_FD_WAIT && !tcp_has_credit(socket)) {
        (void)tame_fd_cancel(env, &socket->fd, TAME_FD_READ, reader);
        answer = TAME_FD_DONE;
    }
    return answer;
}

/* Reads for credit, as the process `self`; when nothing is there `reader` waits. When the turn is a
 * receiver's, the end of its receive reads for the credit: see tcp_push_after. */
static void tcp_push(ErlNifEnv *env, struct tcp_socket *socket, const ErlNifPid *self,
                     const ErlNifPid *reader)
{
    enum tame_fd_answer answer = TAME_FD_DONE;

    (void)__atomic_add_fetch(&socket->pushing, 1, __ATOMIC_SEQ_CST);
    /* Credit may come between the last look at it and the end of our turn. */
    while (answer == TAME_FD_DONE && tcp_has_credit(socket) &&
           tame_fd_begin(env, &socket->fd, TAME_FD_READ, self, 0) == TAME_FD_GO) {
        int error = 0;
        const enum tcp_read result = tcp_push_some(env, socket, &error);

        answer = tcp_push_wait(env, socket, result, reader);
        if (result == TCP_READ_END)
            tcp_push_end(env, socket, NULL);
        else if (result == TCP_READ_FAILS)
            tcp_push_end(env, socket,
                         error == ECONNRESET || error == EPIPE ? NULL : tcp_errno_name(error));
        else if (answer == TAME_FD_FAILED)
            tcp_push_end(env, socket, "enomem");
    }
    (void)__atomic_sub_fetch(&socket->pushing, 1, __ATOMIC_SEQ_CST);
}

/* A receive has ended, or a wait: reads for credit that came meanwhile, as the reader. */
static void tcp_push_after(ErlNifEnv *env, struct tcp_socket *socket)
{
    ErlNifPid reader;

    if (!tcp_has_credit(socket))
        return;
    reader.pid = __atomic_load_n(&socket->reader, __ATOMIC_ACQUIRE);
    tcp_push(env, socket, &reader, &reader);
}

/* Credit was withdrawn: the reader waits no more, unless new credit has come since. */
static void tcp_push_withdrawn(ErlNifEnv *env, struct tcp_socket *socket, const ErlNifPid *reader)
{
    if (tcp_has_credit(socket))
        return;
    (void)tame_fd_cancel(env, &socket->fd, TAME_FD_READ, reader);
    tcp_push_after(env, socket);
}

/* (Socket) -> ok: by a reader that was told. */
static ERL_NIF_TERM tcp_push_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (socket == NULL)
        return enif_make_badarg(env);
    (void)enif_self(env, &self);
    tcp_push(env, socket, &self, &self);
    tcp_push_withdrawn(env, socket, &self);
    return tcp_words.ok;
}

/* (Socket, true | once | Messages, Reader) -> ok | listens | {error, Reason} */
static ERL_NIF_TERM tcp_credit(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid self, reader;
    int more = 0, passive = 0;
    const int once = enif_is_identical(argv[1], tcp_words.once);
    const int always = enif_is_identical(argv[1], tcp_words.always);

    (void)argc;
    if (socket == NULL || (!once && !always && !enif_get_int(env, argv[1], &more)) ||
        !enif_get_local_pid(env, argv[2], &reader))
        return enif_make_badarg(env);
    if (tcp_listens(socket))
        return tcp_atom(env, "listens");
    if (tame_fd_use(&socket->fd) < 0)
        return tcp_error(env, "closed");
    __atomic_store_n(&socket->reader, reader.pid, __ATOMIC_RELEASE);
    if (once || always) {
        __atomic_store_n(&socket->once, once, __ATOMIC_RELEASE);
        __atomic_store_n(&socket->credit, once ? 1 : TCP_ALWAYS, __ATOMIC_RELEASE);
    } else if (!tcp_credit_add(socket, more, &passive)) {
        tame_fd_unuse(env, &socket->fd);
        return tcp_error(env, "einval");
    }
    if (passive)
        tcp_tell_owner(env, socket, tcp_atom(env, "tcp_passive"), NULL);
    (void)enif_self(env, &self);
    tcp_push(env, socket, &self, &reader);
    if (passive)
        tcp_push_withdrawn(env, socket, &reader);
    /* A receive that waits with a part gives way at once: tcp_receive_wait. */
    if (__atomic_load_n(&socket->part, __ATOMIC_SEQ_CST) && tcp_has_credit(socket))
        tame_fd_wake(env, &socket->fd, TAME_FD_READ);
    tame_fd_unuse(env, &socket->fd);
    return tcp_words.ok;
}

/* (Socket, Reader) -> ok | listens | again: no message comes after ok. Again: a push is at work, which ends
 * soon. A receive that waits is left alone. */
static ERL_NIF_TERM tcp_passive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    ErlNifPid reader;

    (void)argc;
    if (socket == NULL || !enif_get_local_pid(env, argv[1], &reader))
        return enif_make_badarg(env);
    if (tcp_listens(socket))
        return tcp_atom(env, "listens");
    __atomic_store_n(&socket->credit, TCP_PASSIVE, __ATOMIC_SEQ_CST);
    tcp_push_withdrawn(env, socket, &reader);
    return __atomic_load_n(&socket->pushing, __ATOMIC_SEQ_CST) == 0 ? tcp_words.ok
                                                                    : tcp_atom(env, "again");
}

/* Who waited has died. A receiver frees the turn, and the reader is told to look; without its reader
 * nobody would read. Not here: this is no process, whose time reading would take. */
static void tcp_socket_lost(ErlNifEnv *env, struct tame_fd *fd, enum tame_fd_direction direction)
{
    struct tcp_socket *socket = (struct tcp_socket *)fd;
    ErlNifPid reader;

    if (direction != TAME_FD_READ || !tcp_has_credit(socket))
        return;
    reader.pid = __atomic_load_n(&socket->reader, __ATOMIC_ACQUIRE);
    if (!enif_is_process_alive(env, &reader))
        tcp_push_end(env, socket, "reader_down");
    else if (tame_fd_begin(env, &socket->fd, TAME_FD_READ, &reader, 0) == TAME_FD_GO &&
             tame_fd_again(env, &socket->fd, TAME_FD_READ, &reader, 0) == TAME_FD_FAILED)
        tcp_push_end(env, socket, "enomem");
}

#endif
