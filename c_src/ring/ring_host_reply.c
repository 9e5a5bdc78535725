/* ring_host_reply.c - replies of a host: regions for the large ones, what a call writes, and the
 * leases that it names. */
#include "ring_host_private.h"

#include <stdlib.h>
#include <string.h>

#include "../os/os.h"

/* ---- regions ---- */

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
        os_shared_give_back(ring->base + start, end - start);
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

void ring_host_release_slot(struct ring_host *ring, uint32_t slot)
{
    if (__atomic_load_n(&ring->held_len, __ATOMIC_RELAXED) > 0)
        give_region(ring, release_held(ring, slot));
}

void ring_host_sweep(struct ring_host *ring)
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

/* ---- leases that their own reply could not carry ---- */

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

/* ---- the writer ---- */

/* Moves the reply to a region with room for `size` in all. */
static int grow(struct reply_writer *reply, size_t size)
{
    struct ring_host *ring = reply->ring;
    size_t wanted = size > reply->capacity * 2 ? size : reply->capacity * 2;
    struct extent region = take_region(ring, wanted);
    uint8_t *data;

    if (region.pages == 0) {
        ring_host_sweep(ring);
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

size_t ring_reply_most(const struct reply_writer *reply)
{
    const uint64_t area = reply->ring->geometry.reply_bytes;

    return reply->home_capacity > area ? reply->home_capacity : area;
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

void ring_host_finish_reply(struct reply_writer *reply)
{
    struct ring_host *ring = reply->ring;
    size_t size = reply->size;

    if (!reply->failed)
        (void)ring_reply_put(reply, reply->leases, reply->leases_len * sizeof *reply->leases);
    if (reply->failed) {
        owe(ring, reply->leases, reply->leases_len);
        give_region(ring, reply->region);
        reply->region = (struct extent){0, 0};
        reply->data = reply->home;
        reply->capacity = reply->home_capacity;
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
