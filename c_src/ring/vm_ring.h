/* vm_ring.h - a ring in the VM: its slots, the line before them, its regions.
 *
 * Private to tame_ring_nif.c. What is free, who waits and for what is kept here, in memory that the
 * host cannot reach.
 *
 * A slot's word is id << 3 | phase, so that a step for a call that is over cannot hit the next one:
 *
 *     FREE -> BUSY          a NIF owns it; from PARKED on by compare-and-swap only
 *     BUSY -> PARKED        its caller lives and comes again by itself: the next look, or wait/3
 *     PARKED -> BUSY        it did
 *     BUSY -> WAITING       it waits in receive, the message to it is made
 *     WAITING -> BUSY       the NIF took it back: the reply came just then
 *     WAITING -> EXCLUSIVE  the reader, cancel/2 or caller_down owns it
 *     EXCLUSIVE -> TOLD     the message is being sent: the caller takes the reply
 *     TOLD -> BUSY          it does
 *     ... -> ABANDONED      the caller died or stopped waiting; the reader frees it when the reply
 *                           comes
 *
 * Lives of a struct ring: counted in refs by the resource, the reader thread's entry in the
 * library, each proxy, each copy and each reading under way. A caller holds the resource itself: it
 * has the ring's term. */
#ifndef TAME_RING_VM_RING_H
#define TAME_RING_VM_RING_H

#include <erl_nif.h>

#include "ring_vm.h"

enum phase { FREE, BUSY, PARKED, WAITING, EXCLUSIVE, TOLD, ABANDONED };

#define PREDICTIONS 64 /* functions share them by number */

/* One caller that does not spin any more. */
struct waiter {
    ErlNifPid pid;
    ErlNifMonitor monitor;
    int monitored;
    ErlNifEnv *env;       /* holds message; NULL: not armed, or sent */
    ERL_NIF_TERM message; /* {Ref, ready} */
};

struct slot {
    _Alignas(64) uint64_t word;
    struct extent region;  /* of the request */
    struct waiter waiter;  /* from PARKED on */
    uint64_t abandoned_ns; /* since when, in phase ABANDONED */
    uint64_t submitted_ns; /* 0: not submitted */
    uint64_t answered;     /* replies, ever; written by who owns the slot */
};

/* A call that waits for a slot. */
struct line_entry {
    struct line_entry *next, *before;
    uint64_t id;
    uint32_t function;
    struct extent region;
    struct waiter waiter;
    size_t size;
    uint8_t data[]; /* without a region */
};

/* Calls in the order in which they came. */
struct line {
    struct line_entry *first, *last;
};

/* Ids of leases that were used, on their way to the reader, who drops the VM's holds. */
struct lease_list {
    struct lease_list *next;
    size_t len;
    uint64_t ids[];
};

struct lease {
    uint64_t id;
    struct proxy *proxy; /* a resource of ours that we keep, once for each hold; NULL: no hold */
    uint32_t holds;
};

struct ring;

/* What the loaded instances of this library share. One of another layout is not touched but for the
 * first word. */
struct library {
    uint64_t abi;
    uint32_t instances;               /* guarded by lock, as rings and reader are */
    ErlNifMutex *lock;                /* taken before a ring's lock */
    struct ring *rings;               /* whose readers are to be joined */
    void *(*reader)(void *);          /* of the newest instance: the others' code may go */
    void (*retire)(struct library *); /* closes all rings, and ends their readers */
    ErlNifResourceType *ring_type, *proxy_type, *copy_type, *reading_type;
    ERL_NIF_TERM am_value, am_raise, am_badarg, am_error, am_busy, am_host_down, am_bad_reply,
        am_wait, am_encode, am_too_large, am_ok, am_closed, am_ready, am_decode, am_upgraded,
        am_owner_down, am_reply_too_large, am_gone, am_none;
};

/* The first words of struct library, for an instance that has another layout behind them. */
struct library_head {
    uint64_t abi;
    uint32_t instances;
    ErlNifMutex *lock;
    struct ring *rings;
    void *(*reader)(void *);
    void (*retire)(struct library *);
};

struct ring {
    struct library *library;
    struct ring *next; /* in library->rings */
    void *resource;
    struct ring_vm vm;
    uint32_t refs;
    uint32_t spin_ns;
    uint32_t line_max;
    uint64_t reply_bytes_max; /* memory that a reply may take */
    ErlNifMonitor owner;
    struct slot *slots;

    RING_LINE uint64_t free[RING_SLOTS_MAX / 64]; /* bits: slots in phase FREE */
    RING_LINE uint64_t next_id;
    RING_LINE uint32_t line_len; /* written under lock */
    uint32_t closed;
    uint32_t removed; /* the pages went back to the system: what is read there is zeros */
    uint32_t stop;    /* the reader is to end, the ring goes on */
    uint32_t predicted_ns[PREDICTIONS]; /* from submit to reply */
    uint8_t look_failures[PREDICTIONS]; /* calls in a row that took longer than looks last */
    uint32_t probes;

    RING_LINE ErlNifMutex *lock; /* guards what follows */
    struct line line;
    struct line dismissed; /* were in line when the ring was closed; each caller takes its own */
    struct extent *purges; /* regions to be purged and freed, by the reader */
    uint32_t purges_len, purges_max;
    ErlNifEnv *reason_env; /* why it was closed */
    ERL_NIF_TERM reason;
    struct lease *leases; /* by rising id */
    size_t leases_len, leases_max, leases_unused;
    uint64_t next_lease;
    uint64_t resources; /* proxies that the host has used and that are alive */
    struct lease_list *used;
    int used_closed; /* the reader has taken the last of them */

    RING_LINE ErlNifMutex *gone_lock; /* guards what follows, and vm.gone_tail */
    uint64_t *gone; /* a circle of ids that found no room on their way to the host */
    size_t gone_first, gone_len, gone_max;

    RING_LINE uint64_t ready[RING_SLOTS_MAX / 64]; /* slots that NIFs leave to the reader */
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
    int used; /* the host has named it behind a reply, or used/2 did; guarded by ring->lock */
};

static inline void counted(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

static inline int is_closed(struct ring *ring)
{
    return (int)__atomic_load_n(&ring->closed, __ATOMIC_SEQ_CST);
}

/* Whether what was just read in the shared memory may be zeros instead of the host's words. */
static inline int is_removed(struct ring *ring)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return (int)__atomic_load_n(&ring->removed, __ATOMIC_SEQ_CST);
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

static inline void set_phase(struct slot *slot, uint64_t id, enum phase phase)
{
    __atomic_store_n(&slot->word, word_of(id, phase), __ATOMIC_SEQ_CST);
}

static inline void line_free(struct line *line)
{
    while (line->first != NULL) {
        struct line_entry *entry = line->first;

        line->first = entry->next;
        if (entry->waiter.env != NULL)
            enif_free_env(entry->waiter.env);
        free(entry);
    }
}

static inline void ring_free(struct ring *ring)
{
    for (uint32_t i = 0; ring->slots != NULL && i < ring->vm.geometry.slots; i++)
        if (ring->slots[i].waiter.env != NULL)
            enif_free_env(ring->slots[i].waiter.env);
    line_free(&ring->line);
    line_free(&ring->dismissed);
    while (ring->used != NULL) {
        struct lease_list *next = ring->used->next;

        free(ring->used);
        ring->used = next;
    }
    ring_vm_close(&ring->vm);
    if (ring->lock != NULL)
        enif_mutex_destroy(ring->lock);
    if (ring->gone_lock != NULL)
        enif_mutex_destroy(ring->gone_lock);
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

/* The calling process is not lost if it dies from here on: caller_down finds its call. */
static inline void waiter_park(ErlNifEnv *env, struct ring *ring, struct waiter *waiter)
{
    enif_self(env, &waiter->pid);
    waiter->monitored =
        enif_monitor_process(env, ring->resource, &waiter->pid, &waiter->monitor) == 0;
}

/* Makes the message, so that who sends it has nothing to make. The environment is a new one: the
 * waiter's, until it is sent or closed. */
static inline ErlNifEnv *waiter_message(struct ring *ring, ERL_NIF_TERM ref, ERL_NIF_TERM *message)
{
    ErlNifEnv *env = enif_alloc_env();

    *message = enif_make_tuple2(env, enif_make_copy(env, ref), ring->library->am_ready);
    return env;
}

/* The waiter is back, or dead. env is the calling process's, or NULL where there is none. */
static inline void waiter_close(ErlNifEnv *env, struct ring *ring, struct waiter *waiter)
{
    if (waiter->monitored)
        (void)enif_demonitor_process(env, ring->resource, &waiter->monitor);
    waiter->monitored = 0;
    if (waiter->env != NULL)
        enif_free_env(waiter->env);
    waiter->env = NULL;
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

/* Puts an entry behind the others. The lock is held. */
static inline void line_add(struct line *line, struct line_entry *entry)
{
    entry->next = NULL;
    entry->before = line->last;
    if (line->last != NULL)
        line->last->next = entry;
    else
        line->first = entry;
    line->last = entry;
}

/* The lock is held. */
static inline void line_remove(struct line *line, struct line_entry *entry)
{
    if (entry->before != NULL)
        entry->before->next = entry->next;
    else
        line->first = entry->next;
    if (entry->next != NULL)
        entry->next->before = entry->before;
    else
        line->last = entry->before;
}

/* By id, or, with a pid, of that process; NULL when it is not there. Youngest first, as who looks
 * for its own has mostly just come. The lock is held. */
static inline struct line_entry *line_find(struct line *line, uint64_t id, const ErlNifPid *pid)
{
    struct line_entry *entry = line->last;

    while (entry != NULL &&
           !(pid == NULL ? entry->id == id : enif_compare_pids(&entry->waiter.pid, pid) == 0))
        entry = entry->before;
    return entry;
}

/* Takes a call out of the line of those that wait for a slot. The lock is held. */
static inline void leave_line(struct ring *ring, struct line_entry *entry)
{
    line_remove(&ring->line, entry);
    __atomic_fetch_sub(&ring->line_len, 1, __ATOMIC_SEQ_CST);
}

/* The entry is in no line any more. */
static inline void free_line_entry(ErlNifEnv *env, struct ring *ring, struct line_entry *entry)
{
    give_request_region(ring, entry->region);
    waiter_close(env, ring, &entry->waiter);
    free(entry);
}

/* Moves calls from the line into free slots. */
static inline void pump(struct ring *ring)
{
    enif_mutex_lock(ring->lock);
    while (ring->line.first != NULL && !is_closed(ring)) {
        struct line_entry *entry = ring->line.first;
        const int index = take_slot(ring, entry->id);
        const int armed = entry->waiter.env != NULL;
        struct slot *slot;

        if (index < 0)
            break;
        leave_line(ring, entry);
        slot = &ring->slots[index];
        slot->waiter = entry->waiter; /* its environment too */
        slot->region = entry->region;
        __atomic_store_n(&slot->submitted_ns, ring_now_ns(), __ATOMIC_RELAXED);
        if (entry->region.pages == 0)
            memcpy(ring_vm_slot(&ring->vm, (uint32_t)index)->payload, entry->data, entry->size);
        set_phase(slot, entry->id, armed ? WAITING : PARKED);
        ring_vm_submit(&ring->vm, (uint32_t)index, use_of(entry->id), armed ? RING_WAIT : 0,
                       entry->function, entry->id, entry->size, entry->region);
        free(entry);
    }
    enif_mutex_unlock(ring->lock);
}

/* The slot, which is ours, and its request's region are free again. */
static inline void free_slot(struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    const struct extent region = slot->region;

    slot->region = (struct extent){0, 0};
    __atomic_store_n(&slot->submitted_ns, 0, __ATOMIC_RELAXED);
    give_request_region(ring, region);
    __atomic_store_n(&slot->word, FREE, __ATOMIC_SEQ_CST);
    __atomic_fetch_or(&ring->free[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&ring->line_len, __ATOMIC_SEQ_CST) > 0)
        pump(ring);
}

/* The reply in a slot of ours has been read, and what it is known by is not needed any more. */
static inline void finish_slot(struct ring *ring, uint32_t index, uint64_t id,
                               const struct ring_reply *reply)
{
    struct slot *slot = &ring->slots[index];

    ring_vm_release(&ring->vm, index, use_of(id), reply);
    __atomic_store_n(&slot->answered, slot->answered + 1, __ATOMIC_RELAXED);
    free_slot(ring, index);
}

/* The reader is to look at a slot. */
static inline void mark_ready(struct ring *ring, uint32_t index)
{
    __atomic_fetch_or(&ring->ready[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    wake_reader(ring);
}

/* Nobody wants the reply of a slot of ours: the reader frees it when it is there. */
static inline void abandon_slot(struct ring *ring, uint32_t index, uint64_t id)
{
    struct slot *slot = &ring->slots[index];

    if (is_closed(ring)) {
        free_slot(ring, index);
        return;
    }
    __atomic_store_n(&slot->abandoned_ns, ring_now_ns(), __ATOMIC_RELAXED);
    ring_vm_cancel(&ring->vm, index); /* while the slot cannot pass to another call */
    const int replied = ring_vm_wait(&ring->vm, index, use_of(id));
    set_phase(slot, id, ABANDONED);
    if (replied)
        mark_ready(ring, index);
}

/* How many calls are in slots, and in line. */
static inline uint64_t calls_under_way(struct ring *ring)
{
    uint64_t used = ring->vm.geometry.slots;

    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++)
        used -= (uint64_t)__builtin_popcountll(__atomic_load_n(&ring->free[i], __ATOMIC_RELAXED));
    return used + __atomic_load_n(&ring->line_len, __ATOMIC_RELAXED);
}

#endif
