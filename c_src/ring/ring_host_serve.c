/* ring_host_serve.c - the workers of a host: they take requests in order, and run them.
 *
 * Which worker sleeps. After a request a worker spins for the next one for a while before it
 * sleeps; one worker at a time (host_spinning), because to wake a thread costs more than most
 * calls. It does so only when the last request came soon enough after the one before that spinning
 * would have found it, and not while other processes want its core: that shows by the clock, which
 * jumps when the worker was not running. */
#include "ring_host_private.h"

#include <stdlib.h>

#include "bell.h"
#include "spin.h"

#define SPIN_NS 50000

/* After it lost its core a worker sleeps at once for BACKOFF_MIN requests, and for twice as many
 * each time that it happens again. */
#define BACKOFF_MIN 4
#define BACKOFF_MAX 256

/* ---- the queue ---- */

static int queue_ready(struct ring_host *ring)
{
    const uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_RELAXED);

    return __atomic_load_n(&ring->header->queue[head % RING_SLOTS_MAX], __ATOMIC_SEQ_CST) >> 16 ==
           head + 1;
}

/* The oldest request's slot, or -1. */
static int queue_take(struct ring_host *ring)
{
    uint64_t head = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

    for (;;) {
        const uint64_t entry =
            __atomic_load_n(&ring->header->queue[head % RING_SLOTS_MAX], __ATOMIC_ACQUIRE);

        if (entry >> 16 != head + 1) {
            const uint64_t now = __atomic_load_n(&ring->head, __ATOMIC_ACQUIRE);

            if (now == head)
                return -1;
            head = now; /* somebody took it, and its place was used again */
        } else if (__atomic_compare_exchange_n(&ring->head, &head, head + 1, 0, __ATOMIC_ACQ_REL,
                                               __ATOMIC_ACQUIRE)) {
            return (int)(entry & 0xffff);
        }
    }
}

static int gone_waits(struct ring_host *ring)
{
    struct ring_header *header = ring->header;

    return __atomic_load_n(&header->gone_tail, __ATOMIC_ACQUIRE) !=
           __atomic_load_n(&header->gone_head, __ATOMIC_RELAXED);
}

/* Another worker that comes meanwhile waits until they are told: its call may be the next one. */
static void take_gone(struct ring_host *ring, const struct ring_host_ops *ops, void *context)
{
    struct ring_header *header = ring->header;
    uint64_t ids[RING_GONE_LEN];

    if (!gone_waits(ring))
        return;
    pthread_mutex_lock(&ring->gone_lock);
    uint64_t head = header->gone_head;
    const uint64_t tail = __atomic_load_n(&header->gone_tail, __ATOMIC_ACQUIRE);
    size_t len = 0;

    while (head != tail && len < RING_GONE_LEN)
        ids[len++] = header->gone[head++ % RING_GONE_LEN];
    if (len > 0 && ops->gone != NULL)
        ops->gone(context, ids, len);
    __atomic_store_n(&header->gone_head, head, __ATOMIC_SEQ_CST);
    /* Rung whether it sleeps or not: it may be about to. */
    if (len > 0 && __atomic_load_n(&header->gone_waits, __ATOMIC_SEQ_CST))
        bell_ring(&ring->header->vm_bell);
    pthread_mutex_unlock(&ring->gone_lock);
}

/* ---- one request ---- */

/* Publishes the reply; the slot is the VM's from here on. */
static void publish(struct ring_host *ring, uint32_t index, uint32_t use)
{
    struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, index);
    const uint32_t old = __atomic_exchange_n(&slot->state, use | RING_REPLY, __ATOMIC_ACQ_REL);

    if ((old & RING_WAIT) == 0)
        return;
    __atomic_fetch_or(&ring->header->done[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->header->vm_sleeps, __ATOMIC_SEQ_CST))
        bell_ring(&ring->header->vm_bell);
}

static void serve_slot(struct ring_host *ring, uint32_t index, const struct ring_host_ops *ops,
                       void *context)
{
    struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, index);
    const uint32_t old = __atomic_fetch_or(&slot->state, RING_TAKEN, __ATOMIC_ACQUIRE);
    const uint32_t use = old & ~(uint32_t)(RING_USE - 1);
    const size_t size = slot->size;
    const uint8_t *args = slot->region == 0
                              ? slot->payload
                              : ring->base + (uint64_t)slot->region * RING_PAGE + RING_REQUEST_SKEW;
    struct reply_writer reply = {.ring = ring, .slot = slot, .slot_index = index};
    enum ring_code code;
    uint8_t *copy = NULL;

    ring_host_release_slot(ring, index);
    if (old & RING_CANCEL) {
        count(&ring->info.dropped);
        slot->code = RING_DROPPED;
        slot->size = 0;
        slot->region = 0;
        slot->leases = 0;
        publish(ring, index, use);
        return;
    }

    /* The reply goes where the arguments are, so those move away first. Arguments in a region
     * stay. */
    uint8_t near[1024];

    if (slot->region == 0) {
        copy = size <= sizeof near ? near : malloc(size);
        if (copy != NULL)
            ring_copy(copy, args, size);
        args = copy;
    }
    reply.data = slot->payload;
    reply.capacity = ring_payload_max(&ring->geometry);
    count(&ring->info.calls);
    code =
        args == NULL ? RING_BADARG : ops->call(context, slot->code, slot->id, args, size, &reply);
    if (copy != near)
        free(copy);
    ring_host_finish_reply(&reply);
    slot->code = reply.failed ? RING_TOO_LARGE : code;
    slot->size = reply.size;
    slot->region = reply.region.at;
    slot->leases = (uint32_t)reply.leases_len;
    free(reply.leases);
    publish(ring, index, use);
}

/* ---- workers ---- */

/* What a worker knows of whether spinning pays. */
struct patience {
    uint64_t idle_since_ns; /* when the last reply was out */
    int soon;               /* the last request came within SPIN_NS */
    uint32_t skip;          /* requests for which it sleeps at once */
    uint32_t backoff;
};

static int spin(struct ring_host *ring, struct patience *patience)
{
    const uint64_t start_ns = patience->idle_since_ns;
    uint64_t last_ns = start_ns;

    if (patience->skip > 0) {
        patience->skip--;
        return 0;
    }
    if (!patience->soon || __atomic_exchange_n(&ring->header->host_spinning, 1, __ATOMIC_SEQ_CST))
        return 0;
    count(&ring->info.spins);
    for (;;) {
        for (int i = 0; i < RING_SPIN_ROUNDS; i++) {
            if (queue_ready(ring) || __atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
                if (patience->backoff > 0)
                    patience->backoff--;
                count(&ring->info.spins_paid);
                return 1;
            }
            tame_impl_pause();
        }
        const uint64_t now_ns = tame_now_ns();

        if (now_ns - last_ns > RING_DESCHEDULED_NS && last_ns != start_ns) {
            patience->backoff = patience->backoff * 2 + BACKOFF_MIN;
            if (patience->backoff > BACKOFF_MAX)
                patience->backoff = BACKOFF_MAX;
            patience->skip = patience->backoff;
            break;
        }
        if (now_ns - start_ns > SPIN_NS)
            break;
        last_ns = now_ns;
    }
    __atomic_store_n(&ring->header->host_spinning, 0, __ATOMIC_SEQ_CST);
    return 0;
}

static void sleep_until_rung(struct ring_host *ring)
{
    struct ring_header *header = ring->header;
    const uint32_t rung = bell_read(&ring->header->host_bell);

    __atomic_fetch_add(&header->host_sleepers, 1, __ATOMIC_SEQ_CST);
    if (!queue_ready(ring) && !gone_waits(ring) &&
        !__atomic_load_n(&ring->stopping, __ATOMIC_SEQ_CST)) {
        count(&ring->info.sleeps);
        (void)bell_wait(&ring->header->host_bell, rung, -1);
    }
    __atomic_fetch_sub(&header->host_sleepers, 1, __ATOMIC_SEQ_CST);
}

/* A worker that stops spinning because it has found something leaves others asleep that the VM did
 * not ring for, as it saw that one was spinning. */
static void pass_on(struct ring_host *ring)
{
    struct ring_header *header = ring->header;

    if (__atomic_load_n(&header->host_sleepers, __ATOMIC_SEQ_CST) > 0 && queue_ready(ring))
        bell_ring(&ring->header->host_bell);
}

void ring_host_serve(struct ring_host *ring, const struct ring_host_ops *ops, void *context)
{
    struct patience patience = {.idle_since_ns = tame_now_ns(), .soon = 1};
    int spun = 0, asked = 0;

    while (!__atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
        const int slot = queue_take(ring);

        if (spun) {
            __atomic_store_n(&ring->header->host_spinning, 0, __ATOMIC_SEQ_CST);
            spun = 0;
        }
        if (slot >= 0) {
            if (asked) /* it slept: would spinning have paid? */
                patience.soon = tame_now_ns() - patience.idle_since_ns < SPIN_NS;
            asked = 0;
            pass_on(ring);
            take_gone(ring, ops, context);
            serve_slot(ring, (uint32_t)slot, ops, context);
            patience.idle_since_ns = tame_now_ns();
            continue;
        }
        spun = !asked && spin(ring, &patience);
        if (spun)
            continue;
        take_gone(ring, ops, context);
        ring_host_sweep(ring);
        asked = 1;
        sleep_until_rung(ring);
    }
}
