/* The host's standard error on its way through the guard: passed on at once, and its end kept for
 * the report of a crash.
 *
 * Nothing here waits. What the guard's own standard error does not take is kept up to a bound, and
 * what comes then is dropped: a host that says much must neither stand still nor hold up the guard.
 */
#ifndef TAME_HOST_RELAY_H
#define TAME_HOST_RELAY_H

#include <poll.h>
#include <stddef.h>

#define RELAY_TAIL_BYTES 4096
#define RELAY_PENDING_BYTES (64u * 1024)

struct relay {
    int from; /* -1: its end was read */
    int to;   /* -1: it cannot be written to any more */
    enum { RELAY_FILE, RELAY_NON_BLOCKING, RELAY_SOCKET, RELAY_POLLED } kind;
    size_t tail_len, pending_len;
    char tail[RELAY_TAIL_BYTES];
    char pending[RELAY_PENDING_BYTES];
};

/* from is the relay's now. */
void relay_init(struct relay *relay, int from);

/* What to poll for: two descriptors, either of them -1. */
void relay_poll(const struct relay *relay, struct pollfd fds[2]);

/* Does what can be done at once. */
void relay_work(struct relay *relay);

/* Everybody who wrote is dead: takes what is left. Waits a moment at most. */
void relay_finish(struct relay *relay);

#endif
