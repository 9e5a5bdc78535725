/* nif_leases.c - the table of leases, and the queue of collected ones. */
#include "nif_leases.h"

#include <tame/clock.h>

/* ---- collected proxies, on their way to the host ---- */

/* Room for one more in the circle. The gone_lock is held. */
static int gone_reserve(struct ring *ring)
{
    if (ring->gone_len < ring->gone_max)
        return 1;

    const size_t max = ring->gone_max > 0 ? ring->gone_max * 2 : 1024;
    uint64_t *more = realloc(ring->gone, max * sizeof *more);

    if (more == NULL)
        return 0;
    /* What had wrapped around to the start goes behind the rest. */
    memcpy(more + ring->gone_max, more, ring->gone_first * sizeof *more);
    ring->gone = more;
    ring->gone_max = max;
    return 1;
}

/* Moves what finds room into the shared queue: its size at most. Returns how much. The gone_lock is
 * held. */
static size_t gone_move(struct ring *ring)
{
    const size_t len = ring->gone_len;

    while (ring->gone_len > 0) {
        size_t run = ring->gone_max - ring->gone_first;

        if (run > ring->gone_len)
            run = ring->gone_len;
        const size_t told = ring_vm_gone(&ring->vm, ring->gone + ring->gone_first, run);

        ring->gone_first = (ring->gone_first + told) % ring->gone_max;
        ring->gone_len -= told;
        if (told < run)
            break;
    }
    ring_vm_gone_waits(&ring->vm, ring->gone_len > 0);
    if (ring->gone_len > 0) { /* the host may have taken some before it could see that we wait */
        const size_t told = ring_vm_gone(&ring->vm, ring->gone + ring->gone_first, 1);

        ring->gone_first = (ring->gone_first + told) % ring->gone_max;
        ring->gone_len -= told;
    }
    return len - ring->gone_len;
}

void tell_gone(struct ring *ring, uint64_t id)
{
    enif_mutex_lock(ring->gone_lock);
    if (!is_closed(ring) && (ring->gone_len > 0 || ring_vm_gone(&ring->vm, &id, 1) == 0) &&
        gone_reserve(ring)) { /* without memory the host keeps it to its end */
        ring->gone[(ring->gone_first + ring->gone_len++) % ring->gone_max] = id;
        if (ring->gone_len == 1)
            (void)gone_move(ring);
    }
    enif_mutex_unlock(ring->gone_lock);
}

size_t flush_gone(struct ring *ring)
{
    size_t told = 0;

    enif_mutex_lock(ring->gone_lock);
    if (ring->gone_len > 0 && !is_closed(ring))
        told = gone_move(ring);
    enif_mutex_unlock(ring->gone_lock);
    return told;
}

/* ---- the table ---- */

/* Where to look for an id first. The host chooses which leases stay, so the seed is not for it to
 * know: it would let all of them begin at one place. */
static size_t lease_hash(const struct ring *ring, uint64_t id)
{
    uint64_t hash = id ^ ring->leases_seed;

    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(hash ^ hash >> 31);
}

/* The place of a lease in the table, or the empty one where it would be: there is one. NULL: there
 * is no table. The lock is held. */
static struct lease *lease_place(const struct ring *ring, uint64_t id)
{
    const size_t mask = ring->leases_max - 1;
    size_t place = lease_hash(ring, id) & mask;

    if (ring->leases_max == 0)
        return NULL;
    while (ring->leases[place].id != 0 && ring->leases[place].id != id)
        place = (place + 1) & mask;
    return &ring->leases[place];
}

/* Drops one hold on the proxy of a lease that the host has used, if it is one. Its id is the host's
 * word, so anything. Returns what the caller is to release when the lock, which is held, is not
 * held any more. */
static struct proxy *lease_used_locked(struct ring *ring, uint64_t id)
{
    struct lease *const lease = lease_place(ring, id);

    if (lease == NULL || lease->proxy == NULL) /* an empty place has none */
        return NULL;

    struct proxy *proxy = lease->proxy;

    if (!proxy->used) {
        proxy->used = 1;
        ring->resources++;
    }
    ring->leases_holds--;
    if (--lease->holds == 0) {
        lease->proxy = NULL;
        ring->leases_unused--;
    }
    return proxy;
}

void leases_used(struct ring *ring, const uint8_t *ids, size_t len)
{
    struct proxy *proxies[LEASES_STEP];

    if (len == 0)
        return;
    enif_mutex_lock(ring->lock);
    for (size_t i = 0; i < len; i++) {
        uint64_t id;

        memcpy(&id, ids + i * sizeof id, sizeof id);
        proxies[i] = lease_used_locked(ring, id);
    }
    enif_mutex_unlock(ring->lock);
    for (size_t i = 0; i < len; i++)
        if (proxies[i] != NULL)
            enif_release_resource(proxies[i]);
}

void leases_used_all(struct ring *ring, const uint8_t *ids, size_t len)
{
    for (size_t done = 0; done < len; done += LEASES_STEP)
        leases_used(ring, ids + done * sizeof(uint64_t),
                    len - done < LEASES_STEP ? len - done : LEASES_STEP);
}

void leases_hand_over(struct ring *ring, struct lease_list *list)
{
    int taken;

    enif_mutex_lock(ring->lock);
    taken = !ring->used_closed;
    if (taken) {
        list->next = ring->used;
        ring->used = list;
    }
    enif_mutex_unlock(ring->lock);
    if (taken)
        wake_reader(ring);
    else
        free(list); /* all holds are dropped already */
}

int leases_take_over(struct ring *ring, int last)
{
    struct lease_list *list;
    int any;

    enif_mutex_lock(ring->lock);
    list = ring->used;
    ring->used = NULL;
    ring->used_closed |= last;
    enif_mutex_unlock(ring->lock);
    any = list != NULL;
    while (list != NULL) {
        struct lease_list *next = list->next;

        leases_used_all(ring, (const uint8_t *)list->ids, list->len);
        free(list);
        list = next;
    }
    return any;
}

/* Makes the table anew, without the leases that have no hold; at most half of it is full then.
 * Returns 0 when memory is short. The lock is held. */
static int leases_rebuild(struct ring *ring)
{
    struct lease *const old = ring->leases;
    const size_t old_max = ring->leases_max;
    size_t max = 256;
    struct lease *leases;

    while (max < 2 * (ring->leases_unused + 1))
        max *= 2;
    leases = calloc(max, sizeof *leases); /* the ring's */
    if (leases == NULL)
        return 0;
    if (ring->leases_seed == 0)
        ring->leases_seed = tame_now_ns() ^ (uint64_t)(uintptr_t)ring << 20;
    ring->leases = leases;
    ring->leases_max = max;
    ring->leases_len = ring->leases_unused;
    for (size_t i = 0; i < old_max; i++)
        if (old[i].proxy != NULL)
            *lease_place(ring, old[i].id) = old[i];
    free(old);
    return 1;
}

/* Room for one more: a quarter of the table is empty, so that places are found soon. */
static int leases_reserve(struct ring *ring)
{
    return ring->leases_len < ring->leases_max / 4 * 3 || leases_rebuild(ring);
}

enum lease_kept lease_keep(struct ring *ring, uint64_t id, struct proxy *proxy)
{
    enum lease_kept kept = LEASE_KEPT;

    enif_mutex_lock(ring->lock);
    if (is_closed(ring))
        kept = LEASE_CLOSED;
    else if (ring->leases_holds >= LEASES_UNUSED_MAX)
        kept = LEASE_TOO_MANY;
    else if (!leases_reserve(ring))
        kept = LEASE_NO_MEMORY;
    if (kept == LEASE_KEPT) {
        struct lease *const lease = lease_place(ring, id);

        if (lease->id == 0) {
            lease->id = id;
            ring->leases_len++;
        }
        ring->leases_holds++;
        if (lease->holds++ == 0) {
            lease->proxy = proxy;
            ring->leases_unused++;
        }
    }
    enif_mutex_unlock(ring->lock);
    return kept;
}

void leases_drop(struct ring *ring)
{
    for (size_t i = 0; i < ring->leases_max; i++) {
        uint32_t holds;
        struct proxy *proxy;

        enif_mutex_lock(ring->lock);
        proxy = ring->leases[i].proxy;
        holds = ring->leases[i].holds;
        ring->leases[i].proxy = NULL;
        ring->leases[i].holds = 0;
        enif_mutex_unlock(ring->lock);
        for (; proxy != NULL && holds > 0; holds--)
            enif_release_resource(proxy);
    }
}
