/* dialing.h - a dial that waits, and the close of its socket.
 *
 * A socket that is closed after nng has made the dialer and before that has begun to connect makes nng
 * forget who waits for it: neither nng_dial nor nng_close ever return. nng tells nobody that it has
 * begun. But its caller sleeps from then on, and before that only as long as others hold nng's locks. So a
 * socket is closed when each dial that waits has been seen asleep some times in a row. */
#ifndef TAME_NNG_DIALING_H
#define TAME_NNG_DIALING_H

#include <nng/nng.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TN_DIAL_LOOK_MS 2
#define TN_DIAL_LOOKS 5       /* in a row: it is asleep */
#define TN_DIAL_LOOKS_MAX 500 /* and then the socket is closed all the same */

/* A dial that waits, or a socket that is being closed; on its thread's stack. */
struct tn_dialing {
    struct tn_dialing *next;
    int socket, closes;
    long thread;
    int asleep; /* looks in a row */
};

static struct {
    pthread_mutex_t lock;
    struct tn_dialing *first;
} tn_dialings = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Under the lock. */
static inline void tn_dialing_add(struct tn_dialing *dialing, nng_socket socket, int closes)
{
    *dialing = (struct tn_dialing){.next = tn_dialings.first,
                                   .socket = nng_socket_id(socket),
                                   .closes = closes,
                                   .thread = syscall(SYS_gettid)};
    tn_dialings.first = dialing;
}

/* Returns 0, or NNG_ECLOSED. */
static inline int tn_dialing_begin(struct tn_dialing *dialing, nng_socket socket)
{
    const struct tn_dialing *other;

    (void)pthread_mutex_lock(&tn_dialings.lock);
    other = tn_dialings.first;
    while (other != NULL && !(other->closes && other->socket == nng_socket_id(socket)))
        other = other->next;
    if (other == NULL)
        tn_dialing_add(dialing, socket, 0);
    (void)pthread_mutex_unlock(&tn_dialings.lock);
    return other == NULL ? 0 : NNG_ECLOSED;
}

static inline void tn_dialing_end(const struct tn_dialing *dialing)
{
    struct tn_dialing **at = &tn_dialings.first;

    (void)pthread_mutex_lock(&tn_dialings.lock);
    while (*at != dialing)
        at = &(*at)->next;
    *at = dialing->next;
    (void)pthread_mutex_unlock(&tn_dialings.lock);
}

/* As the kernel has it; where it says nothing, it sleeps. */
static inline int tn_dialing_sleeps(const struct tn_dialing *dialing)
{
    char path[64], text[128] = "", *name;
    FILE *stat;

    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/stat", dialing->thread);
    stat = fopen(path, "re");
    if (stat == NULL)
        return 1;
    name = fgets(text, sizeof text, stat) == NULL ? NULL : strrchr(text, ')');
    (void)fclose(stat);
    return name == NULL || strncmp(name, ") S", 3) == 0; /* what follows the name is its state */
}

/* Under the lock. Whether all that wait for this socket have been seen asleep often enough. */
static inline int tn_dialing_all_sleep(int socket)
{
    int all = 1;

    for (struct tn_dialing *other = tn_dialings.first; other != NULL; other = other->next) {
        if (other->closes || other->socket != socket)
            continue;
        other->asleep = tn_dialing_sleeps(other) ? other->asleep + 1 : 0;
        all = all && other->asleep >= TN_DIAL_LOOKS;
    }
    return all;
}

/* nng_close, once it may be called; a dial that comes later finds the socket closed. */
static inline void tn_dialing_close(nng_socket socket)
{
    const struct timespec look = {.tv_nsec = TN_DIAL_LOOK_MS * 1000000};
    struct tn_dialing closing;
    int looks = 0;

    (void)pthread_mutex_lock(&tn_dialings.lock);
    tn_dialing_add(&closing, socket, 1);
    while (!tn_dialing_all_sleep(closing.socket) && looks++ < TN_DIAL_LOOKS_MAX) {
        (void)pthread_mutex_unlock(&tn_dialings.lock);
        (void)nanosleep(&look, NULL);
        (void)pthread_mutex_lock(&tn_dialings.lock);
    }
    (void)pthread_mutex_unlock(&tn_dialings.lock);
    (void)nng_close(socket);
    tn_dialing_end(&closing);
}

#endif
