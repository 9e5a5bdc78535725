/* The ring's calls, see ring_door.h. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "life/call.h"
#include "life/library.h"
#include "life/limits.h"
#include "life/ring_door.h"
#include "life/thread.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/die.h"
#include "ring/ring_host.h"
#include "term/atom.h"
#include "term/lease.h"
#include "term/map.h"
#include "wire/etf.h"
#include "wire/query.h"
#include "wire/tell.h"

_Static_assert(LIBRARIES_MAX *LIBRARY_FUNCTIONS_MAX <= RING_FUNCTIONS_MAX,
               "each function of each library has a number on the ring");

static _Atomic(struct ring_host *) opened; /* NULL: there is none yet; then for ever */
/* Workers more than at the start, as many as the VM has dirty I/O threads. */
#define GROWTH_MAX 10

static _Atomic int workers_len;
static int workers_start;
static _Atomic int has_dirty; /* calls: there is a worker for the others as well */

static void refuse(ErlNifEnv *env, const char *text)
{
    tell(query_term(env, "ring_refused", 1, term_text(env, text)));
}

/* ---- one call ------------------------------------------------------------------------- */

struct ring_writer {
    struct call_writer writer;
    struct reply_writer *reply;
    enum ring_code code;
};

static unsigned char *room(struct call_writer *call_writer, const struct reply *reply)
{
    struct reply_writer *to = ((struct ring_writer *)call_writer)->reply;
    uint8_t *place;

    ring_reply_reset(to);
    place = ring_reply_reserve(to, reply->size + 1);
    if (place == NULL) { /* what is put in its place must find room again */
        ring_reply_reset(to);
        return NULL;
    }
    *place = ETF_VERSION;
    return place + 1;
}

static void done(struct call_writer *call_writer, const struct reply *reply)
{
    struct ring_writer *writer = (struct ring_writer *)call_writer;

    writer->code = reply->kind == REPLY_VALUE   ? RING_VALUE
                   : reply->kind == REPLY_RAISE ? RING_RAISE
                                                : RING_BADARG;
    if (reply->kind == REPLY_BADARG)
        return;
    ring_reply_advance(writer->reply, reply->size + 1);
    for (size_t i = 0; i < reply->leases_len; i++)
        ring_reply_lease(writer->reply, reply->leases[i]);
}

static int cancelled(struct call_writer *call_writer)
{
    return ring_call_cancelled(((struct ring_writer *)call_writer)->reply);
}

static enum ring_code call(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t size, struct reply_writer *reply)
{
    struct ring_writer writer = {.writer = {.most = ring_reply_most(reply),
                                            .room = room,
                                            .done = done,
                                            .cancelled = cancelled},
                                 .reply = reply};

    (void)context;
    if (host_call((int)function, id, args, size, &writer.writer) < 0)
        host_die("the VM calls function %u with arguments that it does not take", function);
    return writer.code;
}

static int add_worker(struct ring_host *ring);

/* With the first such call comes one worker more, so that as many as were asked for run them. */
static int is_dirty(void *context, uint32_t function)
{
    (void)context;
    if (!host_call_is_dirty(function))
        return 0;
    if (!has_dirty && !atomic_exchange(&has_dirty, 1))
        (void)add_worker(opened); /* without it, one less runs them */
    return 1;
}

static void gone(void *context, const uint64_t *ids, size_t len)
{
    (void)context;
    worker_begin_call(); /* what they let go of is destroyed before the next call */
    for (size_t i = 0; i < len; i++)
        lease_gone(ids[i]);
    worker_end_call();
}

/* ---- the ring's life ------------------------------------------------------------------ */

struct service {
    struct ring_host *ring;
    void *memory;
};

static void *serve(void *arg)
{
    const struct service service = *(struct service *)arg;

    free(arg);
    host_thread.type = ERL_NIF_THR_NORMAL_SCHEDULER;
    ring_host_serve(service.ring, service.memory,
                    &(struct ring_host_ops){.call = call, .gone = gone, .is_dirty = is_dirty},
                    NULL);
    return NULL;
}

/* Returns 0, or an error number. */
static int add_worker(struct ring_host *ring)
{
    limits_make_room(RING_WORKER_BYTES);
    struct service *service = host_malloc(sizeof *service); /* the thread's, once there is one */
    *service = (struct service){ring, ring_worker_memory()};
    int error = service->memory == NULL ? ENOMEM : worker_thread(serve, service);
    if (error != 0) {
        free(service->memory);
        free(service);
        return error;
    }
    workers_len++;
    return 0;
}

void ring_door_grow(void)
{
    struct ring_host *ring = opened;

    if (ring == NULL || ring_host_wake(ring))
        return;
    if (workers_len < RING_WORKERS_MAX && workers_len < workers_start + GROWTH_MAX + has_dirty)
        (void)add_worker(ring);
}

static uint64_t setting(ErlNifEnv *env, term settings, const char *key, uint64_t otherwise)
{
    const term *value = map_find(env, settings, atom_named(key));
    int negative;
    uint64_t number;

    return value != NULL && term_magnitude(*value, &negative, &number) && !negative ? number
                                                                                    : otherwise;
}

void ring_door_open(ErlNifEnv *env, term settings)
{
    struct ring_geometry geometry = RING_GEOMETRY_DEFAULT;
    struct ring_host *ring;

    geometry.slots = (uint32_t)setting(env, settings, "slots", geometry.slots);
    geometry.slot_bytes = (uint32_t)setting(env, settings, "slot_bytes", geometry.slot_bytes);
    geometry.request_bytes = setting(env, settings, "request_bytes", geometry.request_bytes);
    geometry.reply_bytes = setting(env, settings, "reply_bytes", geometry.reply_bytes);
    const char *wrong = ring_geometry_wrong(&geometry);
    if (wrong != NULL) {
        refuse(env, wrong);
        return;
    }
    int fd = ring_host_create(&geometry, &ring);
    if (fd < 0) {
        refuse(env, strerror(errno));
        return;
    }
    uint64_t workers = setting(env, settings, "workers", (uint64_t)worker_count());
    for (uint64_t i = 0; i < workers; i++) {
        int error = add_worker(ring);
        if (error != 0)
            host_die("cannot start a worker of the ring: %s", strerror(error));
    }
    workers_start = workers_len;
    opened = ring; /* from now on it may be grown */
    tell(query_term(env, "ring", 1, make_small(fd)));
}
