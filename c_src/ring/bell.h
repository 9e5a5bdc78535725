/* bell.h - the doorbell: how one side of the ring wakes the other.
 *
 * On Linux a futex on a word in the shared memory. Elsewhere, and where a test forces it, a pipe. A
 * sleeper takes the word with bell_look, sees that there is nothing to do, and calls bell_wait with
 * it; a bell_ring after the look ends the wait.
 *
 * A word in shared memory may be changed by the other side as it likes: it can wake us for nothing
 * or make us miss a ring. So each wait is bounded (timeout_ms), and who waits must not count on a
 * wake-up having a reason. */
#ifndef TAME_RING_BELL_H
#define TAME_RING_BELL_H

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#endif

enum bell_kind { BELL_FUTEX = 1, BELL_PIPE = 2 };

#ifdef __linux__
#define BELL_DEFAULT BELL_FUTEX
#else
#define BELL_DEFAULT BELL_PIPE
#endif

struct bell {
    enum bell_kind kind;
    uint32_t *word;        /* in shared memory */
    int read_fd, write_fd; /* of a pipe, both not blocking; -1 where this side has no use for it */
};

static inline uint32_t bell_look(const struct bell *bell)
{
    return __atomic_load_n(bell->word, __ATOMIC_SEQ_CST);
}

/* Wakes one sleeper, or the next that calls bell_wait with an older look. */
static inline void bell_ring(const struct bell *bell)
{
    __atomic_fetch_add(bell->word, 1, __ATOMIC_SEQ_CST);
#ifdef __linux__
    if (bell->kind == BELL_FUTEX) {
        (void)syscall(SYS_futex, bell->word, FUTEX_WAKE, 1, NULL, NULL, 0);
        return;
    }
#endif
    /* A full pipe is loud enough. */
    ssize_t written = write(bell->write_fd, "", 1);
    (void)written;
}

/* Wakes all sleepers. */
static inline void bell_ring_all(const struct bell *bell, unsigned sleepers)
{
    __atomic_fetch_add(bell->word, 1, __ATOMIC_SEQ_CST);
#ifdef __linux__
    if (bell->kind == BELL_FUTEX) {
        (void)syscall(SYS_futex, bell->word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
        return;
    }
#endif
    while (sleepers-- > 0) {
        ssize_t written = write(bell->write_fd, "", 1);
        (void)written;
    }
}

/* Sleeps until the bell rings, if it has not since the look; at most timeout_ms, or without end
 * when that is negative. May return early for no reason. Returns 0 when the time is over. */
static inline int bell_wait(const struct bell *bell, uint32_t look, int timeout_ms)
{
#ifdef __linux__
    if (bell->kind == BELL_FUTEX) {
        struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

        return syscall(SYS_futex, bell->word, FUTEX_WAIT, look, timeout_ms < 0 ? NULL : &timeout,
                       NULL, 0) == 0 ||
               errno != ETIMEDOUT;
    }
#endif
    struct pollfd ready = {.fd = bell->read_fd, .events = POLLIN};
    char byte;

    if (bell_look(bell) != look)
        timeout_ms = 0; /* its byte may have been taken by another sleeper */
    if (poll(&ready, 1, timeout_ms) == 0)
        return timeout_ms == 0;
    ssize_t taken = read(bell->read_fd, &byte, 1); /* one byte a sleeper */
    (void)taken;
    return 1;
}

#endif
