/* ring_host_serve.c - the workers of a host: they take requests in order, and run them; dirty
 * ones in an order of their own (ring_host_dirty.c).
 *
 * Which worker spins, which one sleeps, and who is woken: waiting.h. That a worker is not running
 * while it spins shows by the clock, which jumps. */
#include "ring_host_private.h"

#include <stdlib.h>

#include "../../c_include/tame/cycles.h"
#include "../../c_include/tame/os.h"
#include "bell.h"
#include "spin.h"

/* For how long a worker waits until another has told what is gone. */
#define GONE_WAIT_NS 100000000

/* ---- the time ---- */

static __thread struct tame_impl_thread_clock own_clock;

void ring_host_start_clock(void)
{
    char source[64];

    tame_impl_os_clock_source("", source, (int)sizeof source);
    if (tame_impl_ticks_are_steady(source))
        tame_impl_cycles_start(&tame_impl_cycles);
}

/* In ns, by the calling thread's own clock: a third of what tame_now_ns costs, and behind that by a
 * microsecond at most. */
static uint64_t own_now_ns(void)
{
    return tame_impl_thread_clock_ns(&own_clock);
}

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

/* ---- one request ---- */

/* Publishes the reply; the slot is the VM's from here on. Returns whether its caller waits to be
 * woken. */
static int publish(struct ring_host *ring, uint32_t index, uint32_t use)
{
    struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, index);
    const uint32_t old = __atomic_exchange_n(&slot->state, use | RING_REPLY, __ATOMIC_ACQ_REL);

    if ((old & RING_WAIT) == 0)
        return 0;
    __atomic_fetch_or(&ring->header->done[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->header->vm_sleeps, __ATOMIC_SEQ_CST))
        bell_ring(&ring->header->vm_bell);
    return 1;
}

/* What a worker remembers between two requests. */
struct worker {
    struct ring_host *ring;
    uint32_t number; /* from 1 */
    int slept;       /* since its last call */
    int rang;        /* the caller of its last call waited to be woken */
    uint32_t beside; /* that many calls in a row, it was on the caller's CPU */
    uint64_t idle_since_ns;
    uint8_t *moved; /* room for RING_MOVED_BYTES of arguments */
};

static uint32_t attending(struct worker *worker)
{
    return __atomic_load_n(&worker->ring->header->host_attending, __ATOMIC_SEQ_CST);
}

static int attends(struct worker *worker)
{
    return attending(worker) == worker->number;
}

/* Whether nobody else attends to the queue: the worker does from here on. One that does already, as after
 * most calls, leaves the line to the VM, which reads it. */
static int attend(struct worker *worker)
{
    uint32_t who = 0;

    return attends(worker) ||
           __atomic_compare_exchange_n(&worker->ring->header->host_attending, &who, worker->number,
                                       0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
           who == worker->number;
}

/* Where somebody else attends, and yet this one had to be woken, that one is at a call that takes
 * longer than it seemed. */
static void attend_instead(struct worker *worker)
{
    __atomic_store_n(&worker->ring->header->host_attending, worker->number, __ATOMIC_SEQ_CST);
}

/* A thread that submits from here on wakes a worker; what was submitted before is to be looked for. */
static void attend_no_more(struct worker *worker)
{
    uint32_t who = worker->number;

    (void)__atomic_compare_exchange_n(&worker->ring->header->host_attending, &who, 0, 0,
                                      __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

/* A worker that does not attend any more has found something, or goes: others sleep whom the VM did
 * not wake because of it. */
static void pass_on(struct ring_host *ring)
{
    struct ring_header *header = ring->header;

    if (__atomic_load_n(&header->host_sleepers, __ATOMIC_SEQ_CST) > 0 && queue_ready(ring))
        bell_ring(&ring->header->host_bell);
}

/* ---- proxies that are gone ---- */

/* Whether there are ids to be told, or they are being told. */
static int gone_matters(struct ring_host *ring)
{
    return gone_waits(ring) || __atomic_load_n(&ring->gone_telling, __ATOMIC_RELAXED) != 0;
}

/* Until they are told, or a worker is at it for longer than that: it may be in a destructor that
 * waits for a call, which has to be taken then. With the lock. */
static void wait_for_teller(struct ring_host *ring)
{
    const uint64_t until_ns = ring->gone_until_ns;
    uint64_t now_ns;

    while (ring->gone_telling != 0 && (now_ns = tame_now_ns()) < until_ns) {
        const uint32_t told = bell_read(&ring->gone_told);

        pthread_mutex_unlock(&ring->gone_lock);
        (void)bell_wait(&ring->gone_told, told, (int)((until_ns - now_ns) / 1000000) + 1);
        pthread_mutex_lock(&ring->gone_lock);
    }
}

/* Another worker that comes meanwhile waits until they are told: its call may be the next one. The
 * worker that tells has no call, and does not attend: it may not come back for long. */
static void take_gone(struct worker *worker, const struct ring_host_ops *ops, void *context)
{
    struct ring_host *ring = worker->ring;
    struct ring_header *header = ring->header;
    uint64_t ids[RING_GONE_LEN];

    if (!gone_matters(ring))
        return;
    attend_no_more(worker);
    pthread_mutex_lock(&ring->gone_lock);
    wait_for_teller(ring);
    uint64_t head = header->gone_head;
    const uint64_t tail = __atomic_load_n(&header->gone_tail, __ATOMIC_ACQUIRE);
    size_t len = 0;

    while (head != tail && len < RING_GONE_LEN)
        ids[len++] = header->gone[head++ % RING_GONE_LEN];
    __atomic_store_n(&header->gone_head, head, __ATOMIC_SEQ_CST);
    /* Rung whether it sleeps or not: it may be about to. */
    if (len > 0 && __atomic_load_n(&header->gone_waits, __ATOMIC_SEQ_CST))
        bell_ring(&ring->header->vm_bell);
    if (len > 0 && ops->gone != NULL) {
        __atomic_store_n(&ring->gone_telling, worker->number, __ATOMIC_RELAXED);
        ring->gone_until_ns = tame_now_ns() + GONE_WAIT_NS;
        pthread_mutex_unlock(&ring->gone_lock);
        ops->gone(context, ids, len);
        pthread_mutex_lock(&ring->gone_lock);
        /* Else another worker did not wait for this one any longer, and tells others. */
        if (ring->gone_telling == worker->number) {
            __atomic_store_n(&ring->gone_telling, 0, __ATOMIC_RELAXED);
            bell_ring_all(&ring->gone_told);
        }
    }
    pthread_mutex_unlock(&ring->gone_lock);
}

/* ---- times ---- */

/* The clocks of two threads differ by less than this. */
#define CLOCKS_NS 10000

/* The time since a request was submitted, whose clock's lower 32 bits it has. That clock may be ahead of
 * ours. */
static uint64_t since_request_ns(uint32_t submitted_ns, uint64_t now_ns)
{
    const uint32_t since_ns = (uint32_t)now_ns - submitted_ns;

    return since_ns > UINT32_MAX - CLOCKS_NS ? 0 : since_ns;
}

_Static_assert(RING_SLOT_BYTES_MAX <= RING_MOVED_BYTES, "arguments in a slot are always moved");

/* The arguments of a request: moved out of the place that becomes the reply's home. Those that are
 * too large stay, and the reply's home is the slot. */
static const uint8_t *move_args(struct worker *worker, struct reply_writer *reply)
{
    struct ring_host *ring = worker->ring;
    struct ring_slot *slot = reply->slot;
    const size_t size = ring_request_size(slot->size);
    const uint8_t *args = slot->payload;

    reply->home = slot->payload;
    reply->home_capacity = ring_payload_max(&ring->geometry);
    if (slot->region != 0) {
        uint8_t *place = ring->base + (uint64_t)slot->region * RING_PAGE + RING_REQUEST_SKEW;

        args = place;
        if (size <= RING_MOVED_BYTES) {
            reply->home = place;
            reply->home_capacity = ring_request_room(ring_request_pages(size));
            reply->home_region = slot->region;
        }
    }
    reply->data = reply->home;
    reply->capacity = reply->home_capacity;
    if (args != reply->home)
        return args;
    ring_copy(worker->moved, args, size);
    return worker->moved;
}

/* A worker that is on its caller's CPU again goes to another. */
static void look_beside(struct worker *worker, unsigned cpu)
{
    if (cpu == OS_CPU_UNKNOWN || cpu != os_cpu())
        worker->beside = 0;
    else if (waiting_leaves(&worker->ring->waiting, ++worker->beside) && os_leave_cpu(cpu) == 0)
        worker->beside = 0;
}

static void serve_slot(struct worker *worker, uint32_t index, const struct ring_host_ops *ops,
                       void *context)
{
    struct ring_host *ring = worker->ring;
    struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, index);
    const uint32_t old = __atomic_fetch_or(&slot->state, RING_TAKEN, __ATOMIC_ACQUIRE);
    const uint32_t use = old & ~(uint32_t)(RING_USE - 1);
    const uint32_t request = slot->code, submitted_ns = slot->leases;
    const uint32_t function = ring_request_function(request);
    const uint64_t taken_ns = worker->slept ? own_now_ns() : 0;
    const uint64_t size_word = slot->size;
    const size_t size = ring_request_size(size_word);
    struct reply_writer reply = {.ring = ring, .slot = slot, .slot_index = index};
    enum ring_code code;

    if (!waiting_taken(&ring->waiting, function, ring_request_pause_ns(request)))
        attend_no_more(worker);
    else if (worker->slept)
        attend_instead(worker);
    if (!attends(worker))
        pass_on(ring);
    ring_host_release_slot(ring, index);
    if (old & RING_CANCEL) {
        count(&ring->info.dropped);
        slot->code = RING_DROPPED;
        slot->size = 0;
        slot->region = 0;
        slot->leases = 0;
        worker->rang = publish(ring, index, use);
        return;
    }

    count(&ring->info.calls);
    code = ops->call(context, function, slot->id, move_args(worker, &reply), size, &reply);
    ring_host_finish_reply(&reply);

    /* Time in the queue is the function's too, as far as callers are concerned; not the time until
     * this worker was awake. */
    const uint64_t now_ns = own_now_ns();
    const uint64_t work_ns =
        worker->slept ? now_ns - taken_ns : since_request_ns(submitted_ns, now_ns);

    waiting_worked(&ring->waiting, function, work_ns);
    worker->idle_since_ns = now_ns;
    slot->code = ring_reply_code(reply.failed ? RING_TOO_LARGE : code, work_ns);
    slot->size = reply.size;
    slot->region = reply.region.pages > 0 ? reply.region.at : reply.home_region;
    slot->leases = (uint32_t)reply.leases_len;
    free(reply.leases);
    worker->rang = publish(ring, index, use);
    look_beside(worker, ring_request_cpu(size_word));
}

/* ---- workers ---- */

/* The slot of the request that this worker runs now, or -1. A worker that takes a dirty request from
 * the queue puts it in line. */
static int next(struct worker *worker, const struct ring_host_ops *ops, void *context,
                int *is_dirty)
{
    struct ring_host *ring = worker->ring;

    for (;;) {
        int slot = ring_host_dirty_next(ring);

        *is_dirty = slot >= 0;
        if (slot >= 0)
            return slot;
        /* Before the call is taken: what was let go of before it was made is gone when it runs. */
        if (queue_ready(ring))
            take_gone(worker, ops, context);
        slot = queue_take(ring);
        if (slot < 0 || ops->is_dirty == NULL)
            return slot;
        const uint32_t code = ring_slot_at(ring->base, &ring->geometry, (uint32_t)slot)->code;
        if (!ops->is_dirty(context, ring_request_function(code)))
            return slot;
        ring_host_dirty_line(ring, (uint32_t)slot);
    }
}

/* One that sleeps takes none of those that stand in line: there is one more for them. */
int ring_host_wake(struct ring_host *ring)
{
    if (!queue_ready(ring) || __atomic_load_n(&ring->header->host_sleepers, __ATOMIC_SEQ_CST) == 0)
        return 0;
    bell_ring(&ring->header->host_bell);
    return 1;
}

/* Whether there is something to do, after a while of spinning. */
static int spin(struct worker *worker)
{
    struct ring_host *ring = worker->ring;
    const uint64_t start_ns = worker->idle_since_ns;
    const uint64_t limit_ns =
        waiting_attend_ns(&ring->waiting, worker->rang, worker->beside > 0, start_ns);
    uint64_t last_ns = start_ns;

    if (limit_ns == 0 || !attend(worker))
        return 0;
    count(&ring->info.spins);
    for (;;) {
        for (int i = 0; i < RING_SPIN_ROUNDS; i++) {
            if (queue_ready(ring) || __atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
                waiting_uncrowded(&ring->waiting.crowd);
                count(&ring->info.spins_paid);
                return 1;
            }
            tame_impl_pause();
        }
        const uint64_t now_ns = own_now_ns();

        if (now_ns - last_ns > RING_DESCHEDULED_NS && last_ns != start_ns) {
            waiting_lost_core(&ring->waiting.crowd, start_ns, now_ns);
            return 0;
        }
        if (now_ns - start_ns > limit_ns || !attends(worker))
            return 0;
        last_ns = now_ns;
    }
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

void *ring_worker_memory(void)
{
    return aligned_alloc(RING_PAGE, RING_WORKER_BYTES); /* the caller's */
}

void ring_host_serve(struct ring_host *ring, void *memory, const struct ring_host_ops *ops,
                     void *context)
{
    struct worker worker = {
        .ring = ring,
        .number = __atomic_add_fetch(&ring->workers, 1, __ATOMIC_RELAXED),
        .slept = 1,
        .idle_since_ns = own_now_ns(),
        .moved = (uint8_t *)memory + RING_MOVED_SKEW,
    };

    while (!__atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
        int is_dirty;
        const int slot = next(&worker, ops, context, &is_dirty);

        if (slot >= 0) {
            serve_slot(&worker, (uint32_t)slot, ops, context);
            if (is_dirty)
                ring_host_dirty_end(ring);
            worker.slept = 0;
            continue;
        }
        if (!worker.slept && spin(&worker))
            continue;
        attend_no_more(&worker);
        take_gone(&worker, ops, context);
        ring_host_sweep(ring);
        worker.slept = 1;
        sleep_until_rung(ring);
    }
    attend_no_more(&worker);
    free(memory);
}
