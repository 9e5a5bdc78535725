/* Calls by the ring, see ring_calls.h. */
#include <errno.h>
#include <string.h>

#include "../ring/ring_host.h"
#include "call.h"
#include "etf.h"
#include "host.h"
#include "lease.h"
#include "ring_calls.h"
#include "worker.h"

struct ring_call_writer {
    struct call_writer writer;
    struct reply_writer *reply;
    enum ring_code code;
};

static unsigned char *room(struct call_writer *call_writer, const struct reply *reply)
{
    struct ring_call_writer *writer = (struct ring_call_writer *)call_writer;
    uint8_t *bytes = ring_reply_reserve(writer->reply, reply->size + 1);

    if (bytes == NULL) {
        ring_reply_reset(writer->reply);
        return NULL;
    }
    bytes[0] = ETF_VERSION;
    return bytes + 1;
}

static void done(struct call_writer *call_writer, const struct reply *reply)
{
    struct ring_call_writer *writer = (struct ring_call_writer *)call_writer;

    if (reply->kind == REPLY_BADARG) {
        writer->code = RING_BADARG;
        return;
    }
    writer->code = reply->kind == REPLY_VALUE ? RING_VALUE : RING_RAISE;
    ring_reply_advance(writer->reply, reply->size + 1);
    for (size_t i = 0; i < reply->leases_len; i++)
        (void)ring_reply_lease(writer->reply, reply->leases[i]); /* beyond the bound: too large */
}

static int cancelled(struct call_writer *call_writer)
{
    return ring_call_cancelled(((struct ring_call_writer *)call_writer)->reply);
}

static enum ring_code call(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t args_size, struct reply_writer *reply)
{
    struct ring_call_writer writer = {
        .writer = {.room = room, .done = done, .cancelled = cancelled}, .reply = reply};

    (void)context;
    if (host_call((int)function, id, args, args_size, &writer.writer) < 0)
        host_die("the VM calls function %u with arguments that it does not take", function);
    return writer.code;
}

static void gone(void *context, const uint64_t *ids, size_t len)
{
    (void)context;
    for (size_t i = 0; i < len; i++)
        lease_gone(ids[i]);
}

static void *serve(void *ring)
{
    host_thread.type = ERL_NIF_THR_NORMAL_SCHEDULER;
    ring_host_serve(ring, &(struct ring_host_ops){.call = call, .gone = gone}, NULL);
    return NULL;
}

int ring_calls_start(const struct ring_geometry *geometry)
{
    struct ring_host *ring;
    int fd = ring_host_create(geometry, BELL_DEFAULT, &ring);

    if (fd < 0)
        host_die("there is no shared memory for a ring: %s", strerror(errno));
    worker_threads(serve, ring);
    return fd;
}
