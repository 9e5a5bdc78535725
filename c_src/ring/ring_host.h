/* ring_host.h - the host's end of a ring, as ring_vm.h is the VM's.
 *
 *     struct ring_host *ring;
 *     int fd = ring_host_create(&RING_GEOMETRY_DEFAULT, &ring);
 *     ... tell the VM getpid() and fd; it opens /proc/<pid>/fd/<fd> ...
 *     ... before each worker thread: ...
 *     void *memory = ring_worker_memory();
 *     ... in the thread: ...
 *     ring_host_serve(ring, memory, &(struct ring_host_ops){.call = call, .gone = gone}, context);
 *
 * The file exists nowhere but behind fd, which must stay open until the VM has opened the ring (it
 * may be closed then). When both processes have ended, whatever way, the memory is gone.
 *
 * Threads: ring_host_serve by any number of threads; a reply_writer belongs to the thread that was
 * called with it; ring_host_stop by any thread. No function takes a lock that `call` runs under. */
#ifndef TAME_RING_HOST_H
#define TAME_RING_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"

struct ring_host;
struct reply_writer;

struct ring_host_ops {
    /* One call: args is a list in external term format (131 first), readable until call returns.
     * Writes the reply's payload (131 first), and returns what it is: RING_VALUE, RING_RAISE,
     * RING_BADARG. */
    enum ring_code (*call)(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t args_size, struct reply_writer *reply);
    /* Proxies that were collected. Before the next call that the VM made after that, where this
     * takes less than a tenth of a second; at any thread that serves, which has no call meanwhile.
     * May be NULL. */
    void (*gone)(void *context, const uint64_t *ids, size_t len);
    /* Whether a function may keep others waiting: one worker is left to those that are not dirty. May
     * be NULL: none is. */
    int (*is_dirty)(void *context, uint32_t function);
};

/* Returns the file and sets *ring, or -1 with errno (EINVAL for a geometry that is not allowed).
 */
int ring_host_create(const struct ring_geometry *geometry, struct ring_host **ring);

/* What a thread that serves needs besides its stack, RING_WORKER_BYTES; NULL where there is no
 * memory. Who makes the thread takes it, so that nobody else has it when the thread begins. */
#define RING_WORKER_BYTES (RING_MOVED_BYTES + RING_PAGE)
void *ring_worker_memory(void);

/* Serves calls until ring_host_stop, and frees the memory, which is there. */
void ring_host_serve(struct ring_host *ring, void *memory, const struct ring_host_ops *ops,
                     void *context);

/* Every ring_host_serve returns when its call is done. */
void ring_host_stop(struct ring_host *ring);

/* Wakes a worker that sleeps, for a call that nobody has taken. Returns 0 when none would take it. */
int ring_host_wake(struct ring_host *ring);

/* No thread may serve any more. Closes fds and memory. */
void ring_host_close(struct ring_host *ring);

/* Appends bytes. Returns 0 when the reply area has no room, and from then on; the reply will be
 * RING_TOO_LARGE whatever `call` returns. */
int ring_reply_put(struct reply_writer *reply, const void *bytes, size_t size);

/* Room for at least size bytes, to be written by the caller and then taken in by
 * ring_reply_advance; NULL as ring_reply_put. Valid until the next call with this writer. */
uint8_t *ring_reply_reserve(struct reply_writer *reply, size_t size);
/* No reply of more bytes has room, however few others there are. */
size_t ring_reply_most(const struct reply_writer *reply);
void ring_reply_advance(struct reply_writer *reply, size_t size);

/* How many bytes have been put, and where they are: to patch a length, say. The pointer is valid
 * until the next call with this writer. */
size_t ring_reply_size(const struct reply_writer *reply);
uint8_t *ring_reply_data(struct reply_writer *reply);

/* Forgets what was put, to raise in the midst of a value. Leases that were named are listed behind
 * this reply or a later one all the same. */
void ring_reply_reset(struct reply_writer *reply);

/* Names a lease whose reference the payload carries for the first time. Returns 0 as
 * ring_reply_put, or beyond RING_LEASES_MAX: the reply will be RING_TOO_LARGE. The VM is told of
 * the lease all the same, behind this reply or a later one, so that it does not hold it for ever.
 */
int ring_reply_lease(struct reply_writer *reply, uint64_t id);

/* Whether the caller of this call is dead or has stopped waiting. By any thread until call returns.
 */
int ring_call_cancelled(const struct reply_writer *reply);

/* What a test or a log may ask. */
struct ring_host_info {
    uint64_t calls;
    uint64_t spins;      /* times that a worker spun for requests before it slept */
    uint64_t spins_paid; /* and found one */
    uint64_t sleeps;
    uint64_t dropped;         /* requests cancelled before they were taken */
    uint64_t reply_bytes;     /* of regions in use */
    uint64_t reply_bytes_max; /* the most there ever were */
};

void ring_host_info(struct ring_host *ring, struct ring_host_info *info);

#endif
