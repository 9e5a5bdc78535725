/* nif_reader.c - what the reader thread does, until its ring is closed. */
#include "nif_reader.h"
#include "nif_leases.h"
#include "nif_slots.h"

/* All slots are looked at this often, because a host may ring without a mark, or not at all, and a
 * caller may die while it polls. */
#define READER_CHECK_MS 1000

/* After this number of wake-ups in a row without work the reader sleeps for a millisecond. */
#define READER_FALSE_ALARMS 64

/* How long after a ring is closed its callers may take the replies that are there. */
#define READER_LAST_CALLS_MS 5000

static int is_stopped(struct ring *ring)
{
    return (int)__atomic_load_n(&ring->stop, __ATOMIC_SEQ_CST);
}

/* Tells the caller of a slot, which is EXCLUSIVE, to take its reply. */
static void tell(struct ring *ring, uint32_t index, uint64_t id)
{
    struct slot *slot = &ring->slots[index];
    ErlNifEnv *const env = slot->waiter.env;
    const ERL_NIF_TERM message = slot->waiter.message;
    const ErlNifPid pid = slot->waiter.pid;

    slot->waiter.env = NULL; /* ours now: the slot may be the next call's as soon as it is TOLD */
    set_phase(slot, id, TOLD);
    /* A caller that has died: process_down may have passed by while the slot was EXCLUSIVE, or may
     * be here just now. One of the two gets the slot. Its monitor is gone with the process. */
    if (!enif_send(NULL, &pid, env, message) && claim(slot, id, TOLD, EXCLUSIVE)) {
        waiter_unwatch(ring, &slot->waiter);
        abandon_slot(ring, index, id);
    }
    enif_free_env(env);
}

/* Frees a slot, which is EXCLUSIVE, whose reply nobody wants; but the leases behind it are used. */
static void discard(struct ring *ring, uint32_t index, uint64_t id)
{
    struct ring_reply reply;
    const char *wrong = ring_vm_reply(&ring->vm, index, ring->slots[index].region, &reply);

    if (wrong == NULL)
        leases_used_all(ring, reply.data + reply.size, reply.leases);
    finish_slot(ring, index, id, wrong == NULL ? &reply : NULL);
}

/* Delivers the reply of one slot. Returns whether there was something to do. */
static int deliver(struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);
    const enum phase phase = word & 7;
    const uint64_t id = word >> 3;

    if ((phase != WAITING && phase != ABANDONED) || !ring_vm_replied(&ring->vm, index, use_of(id)))
        return 0;
    if (phase == WAITING && claim(slot, id, WAITING, EXCLUSIVE))
        tell(ring, index, id);
    else if (claim(slot, id, ABANDONED, EXCLUSIVE))
        discard(ring, index, id);
    return 1;
}

/* Delivers what is marked, by the host or by a NIF. When it is stopped, what is left is the next
 * reader's, which begins with all slots. */
static int deliver_marked(struct ring *ring)
{
    int delivered = 0;

    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++) {
        uint64_t *const done = &ring->vm.header->done[i];
        uint64_t bits = 0;

        if (__atomic_load_n(done, __ATOMIC_RELAXED) != 0)
            bits |= __atomic_exchange_n(done, 0, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ring->ready[i], __ATOMIC_RELAXED) != 0)
            bits |= __atomic_exchange_n(&ring->ready[i], 0, __ATOMIC_SEQ_CST);
        for (; bits != 0 && !is_stopped(ring); bits &= bits - 1) {
            const uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(bits);

            if (index < ring->vm.geometry.slots)
                delivered |= deliver(ring, index);
        }
    }
    return delivered;
}

static void deliver_all(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->vm.geometry.slots && !is_stopped(ring); i++)
        (void)deliver(ring, i);
}

static int anything_marked(struct ring *ring)
{
    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++)
        if (__atomic_load_n(&ring->vm.header->done[i], __ATOMIC_SEQ_CST) != 0 ||
            __atomic_load_n(&ring->ready[i], __ATOMIC_SEQ_CST) != 0)
            return 1;
    return 0;
}

/* Purges and frees what waits for it. */
static int purge_regions(struct ring *ring)
{
    int purged = 0;

    for (;;) {
        struct extent region = {0, 0};

        enif_mutex_lock(ring->lock);
        if (ring->purges_len > 0)
            region = ring->purges[--ring->purges_len];
        enif_mutex_unlock(ring->lock);
        if (region.pages == 0)
            return purged;
        ring_vm_purge(&ring->vm, region);
        enif_mutex_lock(ring->lock);
        extents_give(&ring->vm.requests, region);
        enif_mutex_unlock(ring->lock);
        purged = 1;
    }
}

/* The host is down: tells everybody who waits to come and hear it. A caller that begins to wait
 * from now on sees that the ring is closed, after it said so. */
static void dismiss_all(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t id = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) >> 3;

        if (claim(slot, id, WAITING, EXCLUSIVE))
            tell(ring, i, id);
    }
    for (;;) {
        struct line_entry *entry;
        struct waiter waiter = {.env = NULL};

        enif_mutex_lock(ring->lock);
        entry = ring->line.first;
        if (entry != NULL) {
            leave_line(ring, entry);
            line_add(&ring->dismissed, entry); /* its caller, or process_down, takes it out */
            waiter = entry->waiter;
            entry->waiter.env = NULL;
        }
        enif_mutex_unlock(ring->lock);
        if (entry == NULL)
            return;
        if (waiter.env != NULL) {
            (void)enif_send(NULL, &waiter.pid, waiter.env, waiter.message);
            enif_free_env(waiter.env);
        }
    }
}

/* Whether a caller may still read what is in a slot. */
static int callers_in_slots(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        const enum phase phase = __atomic_load_n(&ring->slots[i].word, __ATOMIC_SEQ_CST) & 7;

        if (phase != FREE && phase != ABANDONED)
            return 1;
    }
    return 0;
}

/* How often all slots are looked at now. */
static uint64_t check_ns(struct ring *ring)
{
    return __atomic_load_n(&ring->line_len, __ATOMIC_SEQ_CST) > 0
               ? LINE_LOOK_NS
               : READER_CHECK_MS * UINT64_C(1000000);
}

/* Returns 0 when nobody rang. */
static int sleep_until_rung(struct ring *ring, uint32_t bell)
{
    int rung = 1;

    __atomic_store_n(&ring->vm.header->vm_sleeps, 1, __ATOMIC_SEQ_CST);
    if (!anything_marked(ring) && !is_closed(ring) && !is_stopped(ring))
        rung = bell_wait(&ring->vm.header->vm_bell, bell, (int)(check_ns(ring) / 1000000));
    __atomic_store_n(&ring->vm.header->vm_sleeps, 0, __ATOMIC_SEQ_CST);
    return rung;
}

void reader_end(struct ring *ring)
{
    dismiss_all(ring);
    for (int ms = 0; ms < READER_LAST_CALLS_MS && !is_stopped(ring) && callers_in_slots(ring);
         ms++) {
        (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        abandon_left(ring);
    }
    (void)leases_take_over(ring, 1);
    leases_drop(ring);
    /* The host is gone, and nobody reads what it left: the pages go back although somebody may
     * still hold the ring. A NIF that is reading just now reads zeros, and knows it. When the
     * owner has died the host is about to be ended, but may still read: its pages stay. */
    if (ring->reason_env == NULL || ring->reason != ring->library->am_owner_down) {
        __atomic_store_n(&ring->removed, 1, __ATOMIC_SEQ_CST);
        os_shared_give_back(ring->vm.base + RING_HEADER_BYTES, ring->vm.bytes - RING_HEADER_BYTES);
    }
    __atomic_store_n(&ring->reader_done, 1, __ATOMIC_RELEASE);
}

void *reader(void *arg)
{
    struct ring *ring = arg;
    int false_alarms = 0;

    /* Who rang while there was no reader was not heard. */
    __atomic_store_n(&ring->checked_ns, 0, __ATOMIC_RELAXED);
    while (!is_closed(ring) && !is_stopped(ring)) {
        const uint32_t bell = bell_read(&ring->vm.header->vm_bell);
        const uint64_t now_ns = tame_now_ns();
        int busy;

        if (now_ns >= ring->checked_ns + check_ns(ring)) { /* however the waits before ended */
            abandon_left(ring);
            deliver_all(ring);
            (void)flush_gone(ring);
            __atomic_store_n(&ring->checked_ns, now_ns, __ATOMIC_RELAXED);
        }
        busy = deliver_marked(ring);

        busy |= purge_regions(ring);
        busy |= leases_take_over(ring, 0);
        busy |= flush_gone(ring) > 0;
        if (busy) {
            false_alarms = 0;
            continue;
        }
        if (false_alarms > READER_FALSE_ALARMS)
            (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        false_alarms = sleep_until_rung(ring, bell) ? false_alarms + 1 : 0;
    }
    if (is_closed(ring))
        reader_end(ring);
    return NULL;
}
