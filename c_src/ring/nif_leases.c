/* nif_leases.c - the table of leases, and the queue of collected ones. */
#include "nif_leases.h"

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

/* Where a lease is in the table, or would be. The lock is held. */
static size_t lease_place(const struct ring *ring, uint64_t id)
{
    size_t low = 0, high = ring->leases_len;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;

        if (ring->leases[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Drops one hold on the proxy of a lease that the host has used, if it is one. Its id is the host's
 * word, so anything. Returns what the caller is to release when the lock, which is held, is not
 * held any more. */
static struct proxy *lease_used_locked(struct ring *ring, uint64_t id)
{
    const size_t place = lease_place(ring, id);
    struct lease *lease = &ring->leases[place];

    if (place == ring->leases_len || lease->id != id || lease->proxy == NULL)
        return NULL;

    struct proxy *proxy = lease->proxy;

    if (!proxy->used) {
        proxy->used = 1;
        ring->resources++;
    }
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

/* Forgets leases without a hold, to make room. The lock is held. */
static void leases_compact(struct ring *ring)
{
    size_t len = 0;

    for (size_t i = 0; i < ring->leases_len; i++)
        if (ring->leases[i].proxy != NULL)
            ring->leases[len++] = ring->leases[i];
    ring->leases_len = len;
}

/* Room for one more. Returns 0 when memory is short. The lock is held. */
static int leases_reserve(struct ring *ring)
{
    if (ring->leases_len < ring->leases_max)
        return 1;
    leases_compact(ring);
    if (ring->leases_len * 2 > ring->leases_max || ring->leases_max == 0) {
        const size_t max = ring->leases_max > 0 ? ring->leases_max * 2 : 256;
        struct lease *more = realloc(ring->leases, max * sizeof *more);

        if (more != NULL) {
            ring->leases = more;
            ring->leases_max = max;
        }
    }
    return ring->leases_len < ring->leases_max;
}

int lease_keep(struct ring *ring, uint64_t id, struct proxy *proxy)
{
    int ok;

    enif_mutex_lock(ring->lock);
    ok = !is_closed(ring) && leases_reserve(ring);
    if (ok) {
        const size_t place = lease_place(ring, id);
        struct lease *lease = &ring->leases[place];

        if (place == ring->leases_len || lease->id != id) {
            memmove(lease + 1, lease, (ring->leases_len - place) * sizeof *lease);
            *lease = (struct lease){id, NULL, 0};
            ring->leases_len++;
        }
        if (lease->holds++ == 0) {
            lease->proxy = proxy;
            ring->leases_unused++;
        }
    }
    enif_mutex_unlock(ring->lock);
    return ok;
}

void leases_drop(struct ring *ring)
{
    for (size_t i = 0; i < ring->leases_len; i++) {
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
