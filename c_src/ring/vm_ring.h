/* vm_ring.h - a ring in the VM: its slots, the line before them, its regions, its proxies.
 *
 * Private to tame_ring_nif.c. What is free, who waits and for what is kept here, in memory that the
 * host cannot reach.
 *
 * A slot's word is id << 3 | phase, so that a step for a call that is over cannot hit the next one:
 *
 *     FREE -> BUSY      a NIF owns it
 *     BUSY -> WAITING   its caller waits in receive; from here on by compare-and-swap only:
 *     WAITING -> BUSY       the NIF took it back: the reply came just then
 *     WAITING -> READING    the reader answers
 *     WAITING -> ABANDONED  the caller died or stopped waiting; the reader frees it when the reply
 * comes
 *
 * Lives of a struct ring: counted in refs by the resource, the reader thread's entry in the
 * library, each proxy and each copy under way. The resource is kept by every call that waits. */
#ifndef TAME_RING_VM_RING_H
#define TAME_RING_VM_RING_H

#include <erl_nif.h>

#include "ring_vm.h"

enum phase { FREE, BUSY, WAITING, READING, ABANDONED };

#define PREDICTIONS 64 /* functions share them by number */

/* One caller that waits in receive. */
struct waiter {
    ErlNifPid pid;
    ErlNifEnv *env; /* holds ref */
    ERL_NIF_TERM ref;
    ErlNifMonitor monitor;
    int monitored;
};

struct slot {
    _Alignas(64) uint64_t word;
    struct extent region;  /* of the request */
    struct waiter waiter;  /* from WAITING on */
    uint64_t abandoned_ns; /* since when, in phase ABANDONED */
};

/* A call that waits for a slot. */
struct line_entry {
    struct line_entry *next;
    uint64_t id;
    uint32_t function;
    struct extent region;
    struct waiter waiter;
    size_t size;
    uint8_t data[]; /* without a region */
};

struct lease {
    uint64_t id;
    void *proxy; /* a resource of ours that we keep, once for each hold; NULL: there is no hold */
    uint32_t holds;
};

struct library {
    ErlNifResourceType *ring_type, *proxy_type, *copy_type;
    ErlNifMutex *lock;
    struct ring *rings; /* whose readers are to be joined; guarded by lock */
    ERL_NIF_TERM am_value, am_raise, am_badarg, am_error, am_busy, am_host_down, am_bad_reply,
        am_wait, am_encode, am_too_large, am_ok, am_closed;
};

struct ring {
    struct library *library;
    struct ring *next; /* in library->rings */
    void *resource;
    struct ring_vm vm;
    uint32_t refs;
    uint32_t spin_ns;
    uint32_t line_max;
    struct slot *slots;

    RING_LINE uint64_t free[RING_SLOTS_MAX / 64]; /* bits: slots in phase FREE */
    RING_LINE uint64_t next_id;
    RING_LINE uint32_t line_len; /* written under lock */
    uint32_t closed;
    uint32_t predicted_ns[PREDICTIONS]; /* from submit to reply */
    uint8_t look_failures[PREDICTIONS]; /* calls in a row that took longer than looks last */
    uint32_t probes;

    RING_LINE ErlNifMutex *lock; /* guards what follows */
    struct line_entry *line, **line_end;
    struct extent *purges; /* regions to be purged and freed, by the reader */
    uint32_t purges_len, purges_max;
    ErlNifEnv *reason_env; /* why it was closed */
    ERL_NIF_TERM reason;
    struct lease *leases; /* by rising id */
    size_t leases_len, leases_max, leases_unused;
    uint64_t *gone; /* ids that found no room on their way to the host */
    size_t gone_len, gone_max;

    uint64_t ready[RING_SLOTS_MAX / 64]; /* large replies that NIFs leave to the reader */
    uint64_t next_lease;
    ErlNifTid reader;
    uint32_t reader_done;

    RING_LINE uint64_t calls, spins, spins_paid, waits, lined, busy, bad_replies, looks_paid;
};

struct ring_handle {
    struct ring *ring;
};

struct proxy {
    struct ring *ring;
    uint64_t id;
};

static inline void counted(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline int is_closed(struct ring *ring)
{
    return (int)__atomic_load_n(&ring->closed, __ATOMIC_SEQ_CST);
}

static inline uint32_t use_of(uint64_t id)
{
    return (uint32_t)id << 8; /* RING_USE times the lower 24 bits */
}

static inline uint64_t word_of(uint64_t id, enum phase phase)
{
    return id << 3 | phase;
}

static inline int turn(struct slot *slot, uint64_t id, enum phase from, enum phase to)
{
    uint64_t word = word_of(id, from);

    return __atomic_compare_exchange_n(&slot->word, &word, word_of(id, to), 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static inline void ring_free(struct ring *ring)
{
    for (uint32_t i = 0; ring->slots != NULL && i < ring->vm.geometry.slots; i++)
        if (ring->slots[i].waiter.env != NULL)
            enif_free_env(ring->slots[i].waiter.env);
    ring_vm_close(&ring->vm);
    if (ring->lock != NULL)
        enif_mutex_destroy(ring->lock);
    if (ring->reason_env != NULL)
        enif_free_env(ring->reason_env);
    free(ring->slots);
    free(ring->purges);
    free(ring->leases);
    free(ring->gone);
    free(ring);
}

static inline void ring_keep(struct ring *ring)
{
    __atomic_fetch_add(&ring->refs, 1, __ATOMIC_RELAXED);
}

static inline void ring_drop(struct ring *ring)
{
    if (__atomic_fetch_sub(&ring->refs, 1, __ATOMIC_ACQ_REL) == 1)
        ring_free(ring);
}

static inline void wake_reader(struct ring *ring)
{
    bell_ring(&ring->vm.vm_bell);
}

/* ---- waiters
 * -------------------------------------------------------------------------------------- */

/* Makes the calling process a waiter and returns its reference, in its own environment. */
static inline ERL_NIF_TERM waiter_open(ErlNifEnv *env, struct ring *ring, struct waiter *waiter)
{
    const ERL_NIF_TERM ref = enif_make_ref(env);

    if (waiter->env == NULL)
        waiter->env = enif_alloc_env();
    enif_self(env, &waiter->pid);
    waiter->ref = enif_make_copy(waiter->env, ref);
    enif_keep_resource(ring->resource);
    waiter->monitored =
        enif_monitor_process(env, ring->resource, &waiter->pid, &waiter->monitor) == 0;
    return ref;
}

/* The waiter was answered, or never will be. The last hold on the resource may be dropped here. */
static inline void waiter_close(ErlNifEnv *env, struct ring *ring, struct waiter *waiter)
{
    if (waiter->monitored)
        (void)enif_demonitor_process(env, ring->resource, &waiter->monitor);
    waiter->monitored = 0;
    enif_clear_env(waiter->env);
    enif_release_resource(ring->resource);
}

/* Sends {Ref, Reply}, the reply made in the waiter's environment. */
static inline void waiter_send(ErlNifEnv *env, struct waiter *waiter, ERL_NIF_TERM reply)
{
    const ERL_NIF_TERM message = enif_make_tuple2(waiter->env, waiter->ref, reply);

    /* A caller that has died meanwhile is no error. */
    (void)enif_send(env, &waiter->pid, waiter->env, message);
}

/* ---- regions of requests
 * ---------------------------------------------------------------------------- */

static inline struct extent take_request_region(struct ring *ring, size_t bytes)
{
    struct extent region;

    enif_mutex_lock(ring->lock);
    region =
        extents_take(&ring->vm.requests, (bytes + RING_REQUEST_SKEW + RING_PAGE - 1) / RING_PAGE);
    enif_mutex_unlock(ring->lock);
    return region;
}

/* Gives a region back; what has to be purged first goes to the reader. The lock is held. */
static inline int give_request_region_locked(struct ring *ring, struct extent region)
{
    if (region.pages == 0)
        return 0;
    if (!ring_vm_cold(&ring->vm, region)) {
        extents_give(&ring->vm.requests, region);
        return 0;
    }
    if (ring->purges_len == ring->purges_max) {
        const uint32_t max = ring->purges_max > 0 ? ring->purges_max * 2 : 16;
        struct extent *more = realloc(ring->purges, max * sizeof *more);

        if (more == NULL) { /* its pages stay for the next user */
            extents_give(&ring->vm.requests, region);
            return 0;
        }
        ring->purges = more;
        ring->purges_max = max;
    }
    ring->purges[ring->purges_len++] = region;
    return 1;
}

static inline void give_request_region(struct ring *ring, struct extent region)
{
    int purge;

    if (region.pages == 0)
        return;
    enif_mutex_lock(ring->lock);
    purge = give_request_region_locked(ring, region);
    enif_mutex_unlock(ring->lock);
    if (purge)
        wake_reader(ring);
}

/* ---- slots and the line
 * ------------------------------------------------------------------------------- */

static inline uint64_t new_id(struct ring *ring)
{
    return __atomic_add_fetch(&ring->next_id, 1, __ATOMIC_RELAXED);
}

/* A free slot, now BUSY with this call, or -1. */
static inline int take_slot(struct ring *ring, uint64_t id)
{
    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++) {
        uint64_t bits = __atomic_load_n(&ring->free[i], __ATOMIC_SEQ_CST);

        while (bits != 0)
            if (__atomic_compare_exchange_n(&ring->free[i], &bits, bits & (bits - 1), 1,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
                const int index = (int)(i * 64) + __builtin_ctzll(bits);

                __atomic_store_n(&ring->slots[index].word, word_of(id, BUSY), __ATOMIC_SEQ_CST);
                return index;
            }
    }
    return -1;
}

/* As take_slot, for who has to stand in line. */
static inline int claim_slot(struct ring *ring, uint64_t id)
{
    return __atomic_load_n(&ring->line_len, __ATOMIC_SEQ_CST) > 0 ? -1 : take_slot(ring, id);
}

/* Moves calls from the line into free slots. */
static inline void pump(struct ring *ring)
{
    enif_mutex_lock(ring->lock);
    while (ring->line != NULL && !is_closed(ring)) {
        struct line_entry *entry = ring->line;
        const int index = take_slot(ring, entry->id);
        struct slot *slot;

        if (index < 0)
            break;
        ring->line = entry->next;
        if (ring->line == NULL)
            ring->line_end = &ring->line;
        __atomic_fetch_sub(&ring->line_len, 1, __ATOMIC_SEQ_CST);

        slot = &ring->slots[index];
        if (slot->waiter.env != NULL)
            enif_free_env(slot->waiter.env);
        slot->waiter = entry->waiter;
        slot->region = entry->region;
        if (entry->region.pages == 0)
            memcpy(ring_vm_slot(&ring->vm, (uint32_t)index)->payload, entry->data, entry->size);
        __atomic_store_n(&slot->word, word_of(entry->id, WAITING), __ATOMIC_SEQ_CST);
        ring_vm_submit(&ring->vm, (uint32_t)index, use_of(entry->id), RING_WAIT, entry->function,
                       entry->id, entry->size, entry->region);
        free(entry);
    }
    enif_mutex_unlock(ring->lock);
}

/* The slot and its request's region are free again. */
static inline void free_slot(struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    const struct extent region = slot->region;

    slot->region = (struct extent){0, 0};
    give_request_region(ring, region);
    __atomic_store_n(&slot->word, FREE, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&ring->free[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->line_len, __ATOMIC_SEQ_CST) > 0)
        pump(ring);
}

/* Takes one call out of the line: by id, or, with id 0, of a dead process. NULL when it is not
 * there. */
static inline struct line_entry *leave_line(struct ring *ring, uint64_t id, const ErlNifPid *pid)
{
    struct line_entry *entry;

    enif_mutex_lock(ring->lock);
    for (struct line_entry **place = &ring->line; (entry = *place) != NULL; place = &entry->next)
        if (pid == NULL ? entry->id == id : enif_compare_pids(&entry->waiter.pid, pid) == 0) {
            *place = entry->next;
            if (entry->next == NULL)
                ring->line_end = place;
            __atomic_fetch_sub(&ring->line_len, 1, __ATOMIC_SEQ_CST);
            break;
        }
    enif_mutex_unlock(ring->lock);
    return entry;
}

static inline void free_line_entry(ErlNifEnv *env, struct ring *ring, struct line_entry *entry)
{
    ErlNifEnv *waiter_env = entry->waiter.env;

    give_request_region(ring, entry->region);
    waiter_close(env, ring, &entry->waiter);
    enif_free_env(waiter_env);
    free(entry);
}

/* ---- proxies
 * --------------------------------------------------------------------------------------------- */

/* An id on its way to the host; into memory only, whatever the host does. */
static inline void tell_gone(struct ring *ring, uint64_t id)
{
    enif_mutex_lock(ring->lock);
    if (!is_closed(ring) && (ring->gone_len > 0 || ring_vm_gone(&ring->vm, &id, 1) == 0)) {
        if (ring->gone_len == ring->gone_max) {
            const size_t max = ring->gone_max > 0 ? ring->gone_max * 2 : 256;
            uint64_t *more = realloc(ring->gone, max * sizeof *more);

            if (more != NULL) {
                ring->gone = more;
                ring->gone_max = max;
            }
        }
        if (ring->gone_len < ring->gone_max) /* else the host keeps it to its end */
            ring->gone[ring->gone_len++] = id;
    }
    enif_mutex_unlock(ring->lock);
}

/* Tries again with what found no room. */
static inline void flush_gone(struct ring *ring)
{
    enif_mutex_lock(ring->lock);
    if (ring->gone_len > 0 && !is_closed(ring)) {
        const size_t told = ring_vm_gone(&ring->vm, ring->gone, ring->gone_len);

        ring->gone_len -= told;
        memmove(ring->gone, ring->gone + told, ring->gone_len * sizeof *ring->gone);
    }
    enif_mutex_unlock(ring->lock);
}

/* Where a lease is in the table, or would be. The lock is held. */
static inline size_t lease_place(const struct ring *ring, uint64_t id)
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
 * word, so anything. */
static inline void lease_used(struct ring *ring, uint64_t id)
{
    void *proxy = NULL;

    enif_mutex_lock(ring->lock);
    struct lease *lease = &ring->leases[lease_place(ring, id)];
    if (lease < ring->leases + ring->leases_len && lease->id == id && lease->proxy != NULL) {
        proxy = lease->proxy;
        if (--lease->holds == 0) {
            lease->proxy = NULL;
            ring->leases_unused--;
        }
    }
    enif_mutex_unlock(ring->lock);
    if (proxy != NULL)
        enif_release_resource(proxy);
}

/* Forgets leases without a hold, to make room. The lock is held. */
static inline void leases_compact(struct ring *ring)
{
    size_t len = 0;

    for (size_t i = 0; i < ring->leases_len; i++)
        if (ring->leases[i].proxy != NULL)
            ring->leases[len++] = ring->leases[i];
    ring->leases_len = len;
}

/* Room for one more. Returns 0 when memory is short. The lock is held. */
static inline int leases_reserve(struct ring *ring)
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

/* Takes over a hold of the caller's on a proxy. Returns 0 when memory is short or the ring closed.
 */
static inline int lease_keep(struct ring *ring, uint64_t id, void *proxy)
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

/* Drops all holds. The ring is closed, so none is added. */
static inline void leases_drop(struct ring *ring)
{
    for (size_t i = 0; i < ring->leases_len; i++) {
        uint32_t holds;
        void *proxy;

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

#endif
