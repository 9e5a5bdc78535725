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

/* ---- the table ----
 *
 * Linear hashing: as many chains as leases, the newest split off one of the others. The chains are
 * in segments that are never moved, so that growing takes no longer than one chain. */

/* The host chooses which leases stay, so the seed is not for it to know: it would let all of them
 * be in one chain. */
static size_t lease_hash(const struct ring *ring, uint64_t id)
{
    uint64_t hash = id ^ ring->leases_seed;

    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return (size_t)(hash ^ hash >> 31);
}

static struct proxy **lease_chain(struct ring *ring, size_t chain)
{
    return &ring->leases[chain / LEASE_SEGMENT][chain % LEASE_SEGMENT];
}

/* The largest power of two that is not above a number, which is not 0. */
static size_t power_within(size_t number)
{
    return (size_t)1 << (63 - __builtin_clzll(number));
}

/* The chain that a lease of this id belongs to; there is one. The lock is held. */
static struct proxy **lease_chain_of(struct ring *ring, uint64_t id)
{
    const size_t level = power_within(ring->leases_chains);
    const size_t chain = lease_hash(ring, id) & (2 * level - 1);

    return lease_chain(ring, chain < ring->leases_chains ? chain : chain - level);
}

/* Drops one hold on the proxy of a lease that the host has used, if it is one. Its id is the host's
 * word, so anything. Returns what the caller is to release when the lock, which is held, is not
 * held any more. */
static struct proxy *lease_used_locked(struct ring *ring, uint64_t id)
{
    struct proxy **place;
    struct proxy *proxy;

    if (ring->leases_chains == 0)
        return NULL;
    place = lease_chain_of(ring, id);
    while (*place != NULL && (*place)->id != id)
        place = &(*place)->next;
    if (*place == NULL)
        return NULL;
    proxy = *place;
    if (!proxy->used) {
        proxy->used = 1;
        ring->resources++;
    }
    ring->leases_holds--;
    if (--proxy->holds == 0) {
        *place = proxy->next;
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

/* One chain more, which takes its part of the chain that it is split off. Returns 0 when memory is
 * short. The lock is held. */
static int leases_grow(struct ring *ring)
{
    const size_t chain = ring->leases_chains, segment = chain / LEASE_SEGMENT;
    struct proxy **place;
    size_t level;

    if (ring->leases[segment] == NULL)
        ring->leases[segment] = calloc(LEASE_SEGMENT, sizeof(struct proxy *));
    if (ring->leases[segment] == NULL)
        return 0;
    if (ring->leases_seed == 0)
        ring->leases_seed = tame_now_ns() ^ (uint64_t)(uintptr_t)ring << 20;
    ring->leases_chains++;
    if (chain == 0)
        return 1;
    level = power_within(chain);
    place = lease_chain(ring, chain - level);
    while (*place != NULL) {
        struct proxy *const proxy = *place;

        if ((lease_hash(ring, proxy->id) & (2 * level - 1)) == chain) {
            *place = proxy->next;
            proxy->next = *lease_chain(ring, chain);
            *lease_chain(ring, chain) = proxy;
        } else {
            place = &proxy->next;
        }
    }
    return 1;
}

/* Room for one more. */
static int leases_reserve(struct ring *ring)
{
    return ring->leases_unused < ring->leases_chains ||
           ring->leases_chains == (size_t)LEASE_SEGMENT * LEASE_SEGMENTS_MAX || leases_grow(ring);
}

enum lease_kept lease_keep(struct ring *ring, struct proxy *proxy)
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
        ring->leases_holds++;
        if (proxy->holds++ == 0) {
            struct proxy **const chain = lease_chain_of(ring, proxy->id);

            proxy->next = *chain;
            *chain = proxy;
            ring->leases_unused++;
        }
    }
    enif_mutex_unlock(ring->lock);
    return kept;
}

void leases_drop(struct ring *ring)
{
    for (size_t i = 0; i < ring->leases_chains; i++) {
        struct proxy *proxy;

        enif_mutex_lock(ring->lock);
        proxy = *lease_chain(ring, i);
        *lease_chain(ring, i) = NULL;
        enif_mutex_unlock(ring->lock);
        while (proxy != NULL) { /* nobody else finds it any more */
            struct proxy *const next = proxy->next;

            for (uint32_t holds = proxy->holds; holds > 0; holds--)
                enif_release_resource(proxy);
            proxy = next;
        }
    }
}
