/* The ring's calls, see ring_door.h. Without c_src/ring a host refuses to make one. */
#include <errno.h>
#include <string.h>

#include "atom.h"
#include "call.h"
#include "control.h"
#include "host.h"
#include "map.h"
#include "query.h"
#include "ring_door.h"
#include "worker.h"

static void refuse(ErlNifEnv *env, const char *text)
{
    control_tell(env,
                 query_term(env, "ring_refused", 1,
                            term_binary(env, (const unsigned char *)text, strlen(text), 0, NULL)));
}

#if __has_include("../ring/ring_host.h")
#include "../ring/ring_host.h"
#include "etf.h"
#include "lease.h"

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
    struct ring_writer writer = {.writer = {.room = room, .done = done, .cancelled = cancelled},
                                 .reply = reply};

    (void)context;
    if (host_call((int)function, id, args, size, &writer.writer) < 0)
        host_die("the VM calls function %u with arguments that it does not take", function);
    return writer.code;
}

static void gone(void *context, const uint64_t *ids, size_t len)
{
    (void)context;
    for (size_t i = 0; i < len; i++)
        lease_gone(ids[i]);
}

/* ---- the ring's life ------------------------------------------------------------------ */

static void *serve(void *ring)
{
    host_thread.type = ERL_NIF_THR_NORMAL_SCHEDULER;
    ring_host_serve(ring, &(struct ring_host_ops){.call = call, .gone = gone}, NULL);
    return NULL;
}

/* Returns 0, or an error number. */
static int add_worker(struct ring_host *ring)
{
    int error = worker_thread(serve, ring);

    if (error == 0)
        host.ring_workers++;
    return error;
}

void ring_door_grow(void)
{
    struct ring_host *ring = host.ring;

    if (ring != NULL && host.ring_workers < RING_WORKERS_MAX)
        (void)add_worker(ring);
}

static uint64_t setting(ErlNifEnv *env, term settings, const char *key, uint64_t otherwise)
{
    const term *value =
        map_find(env, settings, atom_make((const unsigned char *)key, strlen(key), 1));
    unsigned long number;

    return value != NULL && enif_get_ulong(env, *value, &number) ? number : otherwise;
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
    uint64_t workers = setting(env, settings, "workers", (uint64_t)host.workers);
    for (uint64_t i = 0; i < workers; i++) {
        int error = add_worker(ring);
        if (error != 0)
            host_die("cannot start a worker of the ring: %s", strerror(error));
    }
    host.ring = ring; /* from now on it may be grown */
    control_tell(env, query_term(env, "ring", 1, make_small(fd)));
}

#else

void ring_door_open(ErlNifEnv *env, term settings)
{
    (void)settings;
    refuse(env, "this host was built without a ring");
}

void ring_door_grow(void)
{
}

#endif
