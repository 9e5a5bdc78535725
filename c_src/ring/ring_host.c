/* ring_host.c - the host's side of a ring: takes requests in order, runs them, writes replies.
 *
 * Which worker sleeps. After a request a worker looks for the next one for a while before it
 * sleeps, one worker at a time (spinning), because to wake a thread costs more than most calls. It
 * does so only when the last request came soon enough after the one before that looking would have
 * found it, and not while other processes want its core: that shows by the clock, which jumps when
 * it was not running. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "ring_host.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "extents.h"
#include "spin.h"

#define SPIN_NS 50000

/* After it lost its core a worker sleeps at once for so many requests, twice as many each time. */
#define BACKOFF_MIN 4
#define BACKOFF_MAX 256

struct ring_host {
    int fd;
    uint8_t *base;
    struct ring_header *header;
    struct ring_geometry geometry;
    struct bell host_bell; /* ours */
    struct bell vm_bell;
    int pipes[4]; /* of the two bells; -1 with futexes */
    int stopping;

    RING_LINE uint64_t head; /* the next request; moved by whoever takes it */

    RING_LINE pthread_mutex_t lock; /* guards what follows */
    struct extents replies;
    struct extent held[RING_SLOTS_MAX]; /* the slot's reply region, until the VM has read it */
    uint32_t held_len;
    uint64_t *owed; /* ids of leases whose own reply could not carry them */
    uint32_t owed_len, owed_max;

    pthread_mutex_t gone_lock;

    RING_LINE struct ring_host_info info; /* counted without a lock, by adding */
};

/* Where a reply is being written: the slot, and when that is full a region. */
struct reply_writer {
    struct ring_host *ring;
    struct ring_slot *slot;
    uint32_t slot_index;
    struct extent region; /* no pages: in the slot */
    uint8_t *data;
    size_t capacity;
    size_t size;
    int failed;
    uint64_t *leases; /* ours, until the reply is finished */
    size_t leases_len, leases_max;
};

static void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* ---- life ----------------------------------------------------------------------------------- */

static int open_pipe(int ends[2])
{
    if (pipe(ends) != 0)
        return 0;
    for (int i = 0; i < 2; i++)
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || fcntl(ends[i], F_SETFL, O_NONBLOCK) != 0)
            return 0;
    return 1;
}

static int open_bells(struct ring_host *ring, enum bell_kind kind)
{
    struct ring_header *header = ring->header;

    if (kind == BELL_PIPE && (!open_pipe(&ring->pipes[0]) || !open_pipe(&ring->pipes[2])))
        return 0;
    header->bell = kind;
    header->host_pipe = ring->pipes[1]; /* what the VM writes to */
    header->host_write = ring->pipes[0];
    header->vm_pipe = ring->pipes[3]; /* what the VM writes to, to wake its own reader */
    header->vm_read = ring->pipes[2];
    ring->host_bell = (struct bell){kind, &header->host_bell, ring->pipes[0], ring->pipes[1]};
    ring->vm_bell = (struct bell){kind, &header->vm_bell, ring->pipes[2], ring->pipes[3]};
    return 1;
}

int ring_host_create(const struct ring_geometry *geometry, enum bell_kind bell,
                     struct ring_host **created)
{
    struct ring_host *ring;
    const struct extent area = {(uint32_t)(ring_replies_at(geometry) / RING_PAGE),
                                (uint32_t)(geometry->reply_bytes / RING_PAGE)};

    if (ring_geometry_wrong(geometry) != NULL) {
        errno = EINVAL;
        return -1;
    }
    ring = aligned_alloc(64, sizeof *ring);
    if (ring == NULL)
        return -1;
    memset(ring, 0, sizeof *ring);
    ring->geometry = *geometry;
    ring->fd = -1;
    memset(ring->pipes, -1, sizeof ring->pipes);
    pthread_mutex_init(&ring->lock, NULL);
    pthread_mutex_init(&ring->gone_lock, NULL);

    ring->fd = memfd_create("tame_ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (ring->fd < 0 || ftruncate(ring->fd, (off_t)ring_bytes(geometry)) != 0 ||
        fcntl(ring->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
        goto failed;
    ring->base = mmap(NULL, ring_bytes(geometry), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_NORESERVE, ring->fd, 0);
    if (ring->base == MAP_FAILED) {
        ring->base = NULL;
        goto failed;
    }
    /* Not in a core: it holds what the crash is not about, and takes seconds to write. */
    (void)madvise(ring->base, ring_bytes(geometry), MADV_DONTDUMP);
    ring->header = (struct ring_header *)(void *)ring->base;
    if (!extents_open(&ring->replies, area) || !open_bells(ring, bell))
        goto failed;
    ring->header->version = RING_VERSION;
    ring->header->geometry = *geometry;
    __atomic_store_n(&ring->header->magic, RING_MAGIC, __ATOMIC_RELEASE);
    *created = ring;
    return ring->fd;

failed:;
    const int why = errno;

    ring_host_close(ring);
    errno = why;
    return -1;
}

void ring_host_stop(struct ring_host *ring)
{
    __atomic_store_n(&ring->stopping, 1, __ATOMIC_SEQ_CST);
    bell_ring_all(&ring->host_bell,
                  __atomic_load_n(&ring->header->host_sleepers, __ATOMIC_SEQ_CST));
}

void ring_host_close(struct ring_host *ring)
{
    extents_close(&ring->replies);
    if (ring->base != NULL)
        munmap(ring->base, ring_bytes(&ring->geometry));
    if (ring->fd >= 0)
        close(ring->fd);
    for (int i = 0; i < 4; i++)
        if (ring->pipes[i] >= 0)
            close(ring->pipes[i]);
    pthread_mutex_destroy(&ring->lock);
    pthread_mutex_destroy(&ring->gone_lock);
    free(ring->owed);
    free(ring);
}

void ring_host_info(struct ring_host *ring, struct ring_host_info *info)
{
    info->calls = __atomic_load_n(&ring->info.calls, __ATOMIC_RELAXED);
    info->spins = __atomic_load_n(&ring->info.spins, __ATOMIC_RELAXED);
    info->spins_paid = __atomic_load_n(&ring->info.spins_paid, __ATOMIC_RELAXED);
    info->sleeps = __atomic_load_n(&ring->info.sleeps, __ATOMIC_RELAXED);
    info->dropped = __atomic_load_n(&ring->info.dropped, __ATOMIC_RELAXED);
    pthread_mutex_lock(&ring->lock);
    info->reply_bytes = ring->replies.used_pages * RING_PAGE;
    info->reply_bytes_max = ring->replies.used_max * RING_PAGE;
    pthread_mutex_unlock(&ring->lock);
}

/* ---- reply regions ----------------------------------------------------------------------------
 */

/* Gives a region back; what lies behind the area's hot start goes back to the system first, because
 * nobody can use it before it is free. */
static void give_region(struct ring_host *ring, struct extent region)
{
    const uint64_t hot_end = ring_replies_at(&ring->geometry) + RING_HOT_BYTES;
    const uint64_t end = ((uint64_t)region.at + region.pages) * RING_PAGE;
    uint64_t start = (uint64_t)region.at * RING_PAGE;

    if (region.pages == 0)
        return;
    if (start < hot_end)
        start = hot_end;
    if (end > start)
        (void)madvise(ring->base + start, end - start, MADV_REMOVE);
    pthread_mutex_lock(&ring->lock);
    extents_give(&ring->replies, region);
    pthread_mutex_unlock(&ring->lock);
}

static struct extent take_region(struct ring_host *ring, uint64_t bytes)
{
    struct extent region;

    pthread_mutex_lock(&ring->lock);
    region = extents_take(&ring->replies, (bytes + RING_REPLY_SKEW + RING_PAGE - 1) / RING_PAGE);
    pthread_mutex_unlock(&ring->lock);
    return region;
}

/* Takes the region of a slot's last reply out of what is held; the slot's reply has been read. */
static struct extent release_held(struct ring_host *ring, uint32_t slot)
{
    struct extent region;

    pthread_mutex_lock(&ring->lock);
    region = ring->held[slot];
    ring->held[slot] = (struct extent){0, 0};
    if (region.pages > 0)
        __atomic_fetch_sub(&ring->held_len, 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ring->lock);
    return region;
}

/* Gives back what the VM has read. */
static void sweep_held(struct ring_host *ring)
{
    if (__atomic_load_n(&ring->held_len, __ATOMIC_RELAXED) == 0)
        return;
    for (uint32_t i = 0; i < ring->geometry.slots; i++) {
        struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, i);
        struct extent region = {0, 0};

        /* A reply is held before its state says REPLY; so under the lock no REPLY means read. But a
         * slot that is TAKEN belongs to a worker, who has released it, or is about to. */
        pthread_mutex_lock(&ring->lock);
        if (ring->held[i].pages > 0 &&
            (__atomic_load_n(&slot->state, __ATOMIC_ACQUIRE) & (RING_REPLY | RING_TAKEN)) == 0) {
            region = ring->held[i];
            ring->held[i] = (struct extent){0, 0};
            __atomic_fetch_sub(&ring->held_len, 1, __ATOMIC_RELAXED);
        }
        pthread_mutex_unlock(&ring->lock);
        give_region(ring, region);
    }
}

static void owe(struct ring_host *ring, const uint64_t *ids, size_t len);

/* ---- the writer ---------------------------------------------------------------------------------
 */

/* Moves the reply to a region with room for `size` in all. */
static int grow(struct reply_writer *reply, size_t size)
{
    struct ring_host *ring = reply->ring;
    size_t wanted = size > reply->capacity * 2 ? size : reply->capacity * 2;
    struct extent region = take_region(ring, wanted);
    uint8_t *data;

    if (region.pages == 0) {
        sweep_held(ring);
        region = take_region(ring, wanted);
    }
    if (region.pages == 0 && wanted > size)
        region = take_region(ring, size);
    if (region.pages == 0) {
        reply->failed = 1;
        return 0;
    }
    data = ring->base + (uint64_t)region.at * RING_PAGE + RING_REPLY_SKEW;
    ring_copy(data, reply->data, reply->size);
    give_region(ring, reply->region);
    reply->region = region;
    reply->data = data;
    reply->capacity = (size_t)region.pages * RING_PAGE - RING_REPLY_SKEW;
    return 1;
}

uint8_t *ring_reply_reserve(struct reply_writer *reply, size_t size)
{
    if (reply->failed)
        return NULL;
    if (size > reply->capacity - reply->size) {
        /* A sum that does not fit is larger than any area. */
        if (size > RING_AREA_BYTES_MAX) {
            reply->failed = 1;
            return NULL;
        }
        if (!grow(reply, reply->size + size))
            return NULL;
    }
    return reply->data + reply->size;
}

void ring_reply_advance(struct reply_writer *reply, size_t size)
{
    reply->size += size;
}

int ring_reply_put(struct reply_writer *reply, const void *bytes, size_t size)
{
    uint8_t *place = ring_reply_reserve(reply, size);

    if (place == NULL)
        return 0;
    ring_copy(place, bytes, size);
    reply->size += size;
    return 1;
}

size_t ring_reply_size(const struct reply_writer *reply)
{
    return reply->size;
}

uint8_t *ring_reply_data(struct reply_writer *reply)
{
    return reply->data;
}

void ring_reply_reset(struct reply_writer *reply)
{
    reply->size = 0;
    owe(reply->ring, reply->leases, reply->leases_len);
    reply->leases_len = 0;
    reply->failed = 0;
}

int ring_reply_lease(struct reply_writer *reply, uint64_t id)
{
    /* Taken in although the payload may have failed: the VM holds it until it is listed. */
    if (reply->leases_len == reply->leases_max) {
        const size_t max = reply->leases_max > 0 ? reply->leases_max * 2 : 16;
        uint64_t *more = realloc(reply->leases, max * sizeof *reply->leases);

        if (more == NULL) {
            reply->failed = 1;
            return 0; /* this one the VM holds to the ring's end */
        }
        reply->leases = more;
        reply->leases_max = max;
    }
    reply->leases[reply->leases_len++] = id;
    if (reply->leases_len > RING_LEASES_MAX)
        reply->failed = 1;
    return !reply->failed;
}

int ring_call_cancelled(const struct reply_writer *reply)
{
    return (__atomic_load_n(&reply->slot->state, __ATOMIC_RELAXED) & RING_CANCEL) != 0;
}

/* ---- one request
 * --------------------------------------------------------------------------------- */

/* Publishes the reply; the slot is the VM's from here on. */
static void publish(struct ring_host *ring, uint32_t index, uint32_t use)
{
    struct ring_slot *slot = ring_slot_at(ring->base, &ring->geometry, index);
    const uint32_t old = __atomic_exchange_n(&slot->state, use | RING_REPLY, __ATOMIC_ACQ_REL);

    if ((old & RING_WAIT) == 0)
        return;
    __atomic_fetch_or(&ring->header->done[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->header->vm_sleeps, __ATOMIC_SEQ_CST))
        bell_ring(&ring->vm_bell);
}

/* Leases of a reply that could not carry them are listed behind the next ones. */
static void owe(struct ring_host *ring, const uint64_t *ids, size_t len)
{
    if (len == 0)
        return;
    pthread_mutex_lock(&ring->lock);
    if (len > ring->owed_max - ring->owed_len) {
        const size_t max = ring->owed_len + len;
        uint64_t *more = max > UINT32_MAX ? NULL : realloc(ring->owed, max * sizeof *more);

        if (more != NULL) {
            ring->owed = more;
            ring->owed_max = (uint32_t)max;
        }
    }
    if (len > ring->owed_max - ring->owed_len) /* no memory: the VM holds these to the ring's end */
        len = ring->owed_max - ring->owed_len;
    if (len > 0)
        memcpy(ring->owed + ring->owed_len, ids, len * sizeof *ids);
    __atomic_store_n(&ring->owed_len, ring->owed_len + (uint32_t)len, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ring->lock);
}

/* Lists what is owed behind a reply, as far as the place that it has suffices. */
static void pay(struct reply_writer *reply)
{
    struct ring_host *ring = reply->ring;
    size_t len = (reply->capacity - reply->size) / sizeof(uint64_t);

    if (__atomic_load_n(&ring->owed_len, __ATOMIC_RELAXED) == 0)
        return;
    if (len > RING_LEASES_MAX - reply->leases_len)
        len = RING_LEASES_MAX - reply->leases_len;
    pthread_mutex_lock(&ring->lock);
    if (len > ring->owed_len)
        len = ring->owed_len;
    ring_copy(reply->data + reply->size, ring->owed + ring->owed_len - len, len * sizeof(uint64_t));
    __atomic_store_n(&ring->owed_len, ring->owed_len - (uint32_t)len, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&ring->lock);
    reply->size += len * sizeof(uint64_t);
    reply->leases_len += len;
}

/* Puts the lease ids behind the payload and the region into what is held. */
static void finish_writer(struct reply_writer *reply)
{
    struct ring_host *ring = reply->ring;
    size_t size = reply->size;

    if (!reply->failed)
        (void)ring_reply_put(reply, reply->leases, reply->leases_len * sizeof *reply->leases);
    if (reply->failed) {
        owe(ring, reply->leases, reply->leases_len);
        give_region(ring, reply->region);
        reply->region = (struct extent){0, 0};
        reply->data = reply->slot->payload;
        reply->capacity = ring_payload_max(&ring->geometry);
        reply->size = size = 0;
        reply->leases_len = 0;
    }
    pay(reply);
    if (reply->region.pages > 0) {
        pthread_mutex_lock(&ring->lock);
        extents_trim(&ring->replies, &reply->region,
                     (uint32_t)((reply->size + RING_REPLY_SKEW + RING_PAGE - 1) / RING_PAGE));
        ring->held[reply->slot_index] = reply->region;
        __atomic_fetch_add(&ring->held_len, 1, __ATOMIC_RELAXED);
        pthread_mutex_unlock(&ring->lock);
    }
    reply->size = size;
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

    if (__atomic_load_n(&ring->held_len, __ATOMIC_RELAXED) > 0)
        give_region(ring, release_held(ring, index));
    if (old & RING_CANCEL) {
        count(&ring->info.dropped);
        slot->code = RING_DROPPED;
        slot->size = 0;
        slot->region = 0;
        slot->leases = 0;
        publish(ring, index, use);
        return;
    }

    /* The reply goes where the arguments are; so those move away first. Arguments in a region stay.
     */
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
    finish_writer(&reply);
    slot->code = reply.failed ? RING_TOO_LARGE : code;
    slot->size = reply.size;
    slot->region = reply.region.at;
    slot->leases = (uint32_t)reply.leases_len;
    free(reply.leases);
    publish(ring, index, use);
}

/* ---- the queue
 * ------------------------------------------------------------------------------------ */

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
    __atomic_store_n(&header->gone_head, head, __ATOMIC_SEQ_CST);
    /* Rung whether it sleeps or not: it may be about to. */
    if (len > 0 && __atomic_load_n(&header->gone_waits, __ATOMIC_SEQ_CST))
        bell_ring(&ring->vm_bell);
    if (len > 0 && ops->gone != NULL)
        ops->gone(context, ids, len);
    pthread_mutex_unlock(&ring->gone_lock);
}

/* ---- workers
 * ---------------------------------------------------------------------------------------- */

/* What a worker knows of whether looking pays. */
struct patience {
    uint64_t idle_since_ns; /* when the last reply was out */
    int soon;               /* the last request came within SPIN_NS */
    uint32_t skip;          /* so many times it sleeps at once */
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
        for (int i = 0; i < RING_SPIN_LOOKS; i++) {
            if (queue_ready(ring) || __atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
                if (patience->backoff > 0)
                    patience->backoff--;
                count(&ring->info.spins_paid);
                return 1;
            }
            ring_pause();
        }
        const uint64_t now_ns = ring_now_ns();

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
    const uint32_t look = bell_look(&ring->host_bell);

    __atomic_fetch_add(&header->host_sleepers, 1, __ATOMIC_SEQ_CST);
    if (!queue_ready(ring) && !gone_waits(ring) &&
        !__atomic_load_n(&ring->stopping, __ATOMIC_SEQ_CST)) {
        count(&ring->info.sleeps);
        (void)bell_wait(&ring->host_bell, look, -1);
    }
    __atomic_fetch_sub(&header->host_sleepers, 1, __ATOMIC_SEQ_CST);
}

/* A worker that stops looking because it has found something leaves others asleep that the VM did
 * not ring for, as it saw that one was looking. */
static void pass_on(struct ring_host *ring)
{
    struct ring_header *header = ring->header;

    if (__atomic_load_n(&header->host_sleepers, __ATOMIC_SEQ_CST) > 0 && queue_ready(ring))
        bell_ring(&ring->host_bell);
}

void ring_host_serve(struct ring_host *ring, const struct ring_host_ops *ops, void *context)
{
    struct patience patience = {.idle_since_ns = ring_now_ns(), .soon = 1};
    int spun = 0, asked = 0;

    while (!__atomic_load_n(&ring->stopping, __ATOMIC_RELAXED)) {
        const int slot = queue_take(ring);

        if (spun) {
            __atomic_store_n(&ring->header->host_spinning, 0, __ATOMIC_SEQ_CST);
            spun = 0;
        }
        if (slot >= 0) {
            if (asked) /* it slept: would it have paid to look instead? */
                patience.soon = ring_now_ns() - patience.idle_since_ns < SPIN_NS;
            asked = 0;
            pass_on(ring);
            take_gone(ring, ops, context);
            serve_slot(ring, (uint32_t)slot, ops, context);
            patience.idle_since_ns = ring_now_ns();
            continue;
        }
        spun = !asked && spin(ring, &patience);
        if (spun)
            continue;
        take_gone(ring, ops, context);
        sweep_held(ring);
        asked = 1;
        sleep_until_rung(ring);
    }
}
