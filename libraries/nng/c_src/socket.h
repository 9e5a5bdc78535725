/* socket.h - a socket of nng's, whichever way it is reached: opened with descriptors of ours, and
 * one message in or out of it without waiting.
 *
 * nng says by two descriptors whether a socket may receive and send; each is readable when it
 * may. They are nng's, which closes them with the socket. We have duplicates, so that neither the
 * VM's waiting nor nng's closing has to come first. They are asked for when somebody has to wait: nng
 * 1.5 does not close those of a pair0 socket, once it was asked. Until then a number of ours, which
 * says nothing, keeps their place. */
#ifndef TAME_NNG_SOCKET_H
#define TAME_NNG_SOCKET_H

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "error.h"
#include "protocol.h"
#include "survey.h"

enum { TN_RECEIVING, TN_SENDING };

struct tn_socket {
    nng_socket nng;
    const struct tn_protocol *protocol;
    int owes;                /* atomic: of who replies: a message was received and not replied to */
    struct tn_survey survey; /* of who surveys */
    int asked[2];            /* atomic: the number of that direction is a duplicate of nng's */
    int readable;            /* nng's own descriptor, as long as the socket is open */
    /* Atomic, but not of contexts. nng 1.5 counts only the messages of pair1 for a socket. */
    uint64_t sent, received, sent_bytes, received_bytes;
};

/* What a call copies on a scheduler: 0.05 to 0.1 ms. More is copied outside. */
#define TN_SLICE_BYTES ((size_t)256 * 1024)

#define TN_REPLY_MS 1

/* Messages of one call or event, before others have their turn. */
#define TN_TURN_MESSAGES 16

/* nng calls us on threads of its own, which live until the process ends; so our code stays mapped
 * when the VM unloads it, and with it libnng. nng_fini is not called: another library of the same
 * VM may use nng too, and has the same threads. The first open starts them, here and not in
 * somebody's call. Returns 0, or the library must not be loaded. */
static inline int tn_library_open(void)
{
    nng_socket first;
    Dl_info ours;

    if (dladdr((void *)&tn_protocols, &ours) == 0 ||
        dlopen(ours.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE) == NULL)
        return 1;
    return nng_pair0_open(&first) != 0 || nng_close(first) != 0;
}

/* A number for the descriptor of a direction, which nng is not asked for yet; or -1, and an error. */
static inline int tn_keep_number(int *error)
{
    const int number = eventfd(0, EFD_CLOEXEC);

    if (number < 0)
        *error = errno == EMFILE ? NNG_ENOFILES : NNG_ENOMEM;
    return number;
}

/* Of all sockets: each asks once in a direction. */
static pthread_mutex_t tn_asking = PTHREAD_MUTEX_INITIALIZER;

/* Before a call waits for `number': that is a duplicate of nng's descriptor from now on. NNG_EAGAIN:
 * it may be waited for; else nng's error. Of who has the turn in that direction, or uses the number. */
static inline int tn_ask(struct tn_socket *socket, int direction, int number)
{
    int error = 0, theirs;

    if (__atomic_load_n(&socket->asked[direction], __ATOMIC_ACQUIRE))
        return NNG_EAGAIN;
    (void)pthread_mutex_lock(&tn_asking);
    if (!socket->asked[direction]) {
        error = nng_socket_get_int(
            socket->nng, direction == TN_RECEIVING ? NNG_OPT_RECVFD : NNG_OPT_SENDFD, &theirs);
        /* Nobody has waited for it yet, so no poll set has the number. */
        if (error == 0 && dup3(theirs, number, O_CLOEXEC) < 0)
            error = NNG_ENOMEM;
        if (error == 0)
            __atomic_store_n(&socket->asked[direction], 1, __ATOMIC_RELEASE);
    }
    (void)pthread_mutex_unlock(&tn_asking);
    return error == 0 ? NNG_EAGAIN : error;
}

/* Opens, with descriptors for the directions that the protocol has, else -1. Returns nng's error;
 * the socket and the descriptors are the caller's when that is 0. */
static inline int tn_open(struct tn_socket *socket, const struct tn_protocol *protocol,
                          int *receives, int *sends)
{
    int error;

    memset(socket, 0, sizeof *socket);
    error = protocol->open(&socket->nng);
    *receives = *sends = -1;
    if (error != 0)
        return error;
    socket->protocol = protocol;
    if (protocol->traits & TN_RECEIVES)
        *receives = tn_keep_number(&error);
    if (error == 0 && protocol->traits & TN_SENDS)
        *sends = tn_keep_number(&error);
    /* tn_send looks at it before each reply. */
    if (error == 0 && protocol->traits & TN_REPLIES) {
        error = tn_ask(socket, TN_SENDING, *sends);
        error = error == NNG_EAGAIN ? 0 : error;
    }
    if (error == 0 && protocol->traits & TN_REPLIES)
        error = nng_socket_set_ms(socket->nng, NNG_OPT_SENDTIMEO, TN_REPLY_MS);
    socket->survey.time = TN_SURVEY_MS;
    if (error == 0 && protocol->traits & TN_SURVEYS)
        error = nng_socket_get_int(socket->nng, NNG_OPT_RECVFD, &socket->readable);
    if (error == 0 && protocol->traits & TN_SURVEYS)
        error = nng_socket_set_ms(socket->nng, NNG_OPT_SURVEYOR_SURVEYTIME, TN_SURVEY_NNG);
    if (error == 0)
        return 0;
    if (*sends >= 0)
        (void)close(*sends);
    if (*receives >= 0)
        (void)close(*receives);
    (void)nng_close(socket->nng);
    return error;
}

static inline void tn_count(uint64_t *counter, uint64_t more)
{
    (void)__atomic_fetch_add(counter, more, __ATOMIC_RELAXED);
}

static inline int tn_is_readable(int number)
{
    struct pollfd at = {.fd = number, .events = POLLIN};

    return poll(&at, 1, 0) > 0;
}

/* As tn_survey_left; who does not survey has no end. */
static inline nng_duration tn_survey_left_of(const struct tn_socket *socket)
{
    return socket->protocol->traits & TN_SURVEYS ? tn_survey_left(&socket->survey)
                                                 : NNG_DURATION_INFINITE;
}

/* What came too late for its survey, 128 messages at most (nng), unless more come. */
static inline int tn_drop_late(const struct tn_socket *socket)
{
    nng_msg *message;

    while (tn_is_readable(socket->readable) &&
           nng_recvmsg(socket->nng, &message, NNG_FLAG_NONBLOCK) == 0)
        nng_msg_free(message);
    return NNG_ESTATE;
}

/* 0 and a message, which is the caller's; NNG_EAGAIN: wait for the descriptor. */
static inline int tn_receive(struct tn_socket *socket, nng_msg **message)
{
    int error;

    if (!(socket->protocol->traits & TN_RECEIVES))
        return NNG_ENOTSUP;
    if (tn_survey_left_of(socket) == 0)
        return tn_drop_late(socket);
    /* nng from 1.7 on waits for a surveyor, for as long as the survey goes on. */
    if (socket->protocol->traits & TN_SURVEYS && !tn_is_readable(socket->readable))
        return NNG_EAGAIN;
    error = nng_recvmsg(socket->nng, message, NNG_FLAG_NONBLOCK);
    if (error != 0)
        return error;
    if (socket->protocol->traits & TN_REPLIES)
        __atomic_store_n(&socket->owes, 1, __ATOMIC_RELEASE);
    tn_count(&socket->received, 1);
    tn_count(&socket->received_bytes, nng_msg_len(*message));
    return 0;
}

/* 0: the message is nng's. NNG_EAGAIN: wait for the descriptor `sends`.
 *
 * A reply that nng does not take at once is lost, and with it the right to reply; and a
 * respondent's is never taken without waiting, although there is nothing to wait for. So a reply
 * is tried when the descriptor says that it will be taken, and then by a call that may wait, for
 * TN_REPLY_MS at most: only a context that replies to the same connection in this moment makes
 * it. As the descriptor is not readable either when there is nothing to reply to, we have to know
 * that ourselves. */
static inline int tn_send(struct tn_socket *socket, nng_msg *message, int sends)
{
    const int replies = socket->protocol->traits & TN_REPLIES;
    const size_t size = nng_msg_len(message);
    int error;

    if (!(socket->protocol->traits & TN_SENDS))
        return NNG_ENOTSUP;
    if (replies && !__atomic_load_n(&socket->owes, __ATOMIC_ACQUIRE))
        return NNG_ESTATE;
    if (replies && !tn_is_readable(sends))
        return NNG_EAGAIN;
    if (replies)
        __atomic_store_n(&socket->owes, 0, __ATOMIC_RELEASE);
    if (socket->protocol->traits & TN_SURVEYS)
        tn_survey_begin(&socket->survey);
    error = nng_sendmsg(socket->nng, message, replies ? 0 : NNG_FLAG_NONBLOCK);
    if (error == 0) {
        tn_count(&socket->sent, 1);
        tn_count(&socket->sent_bytes, size);
    }
    return replies && error == NNG_ETIMEDOUT ? NNG_ESTATE : error;
}

#endif
