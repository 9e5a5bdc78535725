/* vm_reader.h - replies to terms, and the thread that sends the late ones.
 *
 * Private to tame_ring_nif.c. One reader per ring. It sleeps on the VM's doorbell, sends {Ref,
 * Reply} to the callers that wait in receive, decodes large replies off the schedulers, and gives
 * purged regions back. It looks at everything once a second, whatever the host does with the bell.
 */
#ifndef TAME_RING_VM_READER_H
#define TAME_RING_VM_READER_H

#include "vm_ring.h"

#define READER_LOOK_MS 1000

/* So many wake-ups in a row without a reply and the reader takes a millisecond off. */
#define READER_FALSE_ALARMS 64

static inline ERL_NIF_TERM make_error(ErlNifEnv *env, struct library *library, ERL_NIF_TERM reason)
{
    return enif_make_tuple2(env, library->am_error, reason);
}

static inline ERL_NIF_TERM make_host_down(ErlNifEnv *env, struct ring *ring)
{
    struct library *library = ring->library;
    ERL_NIF_TERM reason;

    enif_mutex_lock(ring->lock);
    reason = ring->reason_env == NULL ? library->am_closed : enif_make_copy(env, ring->reason);
    enif_mutex_unlock(ring->lock);
    return make_error(env, library, enif_make_tuple2(env, library->am_host_down, reason));
}

static inline ERL_NIF_TERM make_bad_reply(ErlNifEnv *env, struct ring *ring, const char *what)
{
    counted(&ring->bad_replies);
    return make_error(
        env, ring->library,
        enif_make_tuple2(env, ring->library->am_bad_reply, enif_make_atom(env, what)));
}

/* A reply that is one binary is copied once, into the binary. Returns 0 when it is something else.
 */
static inline int decode_binary(ErlNifEnv *env, const uint8_t *data, size_t size,
                                ERL_NIF_TERM *term)
{
    uint8_t head[6];
    ErlNifBinary binary;

    if (size < sizeof head)
        return 0;
    memcpy(head, data, sizeof head);
    const size_t bytes =
        (size_t)head[2] << 24 | (size_t)head[3] << 16 | (size_t)head[4] << 8 | head[5];

    if (head[0] != 131 || head[1] != 109 || bytes != size - sizeof head)
        return 0;
    if (bytes <= 64) {
        memcpy(enif_make_new_binary(env, bytes, term), data + sizeof head, bytes);
        return 1;
    }
    if (!enif_alloc_binary(bytes, &binary))
        return 0;
    ring_copy(binary.data, data + sizeof head, bytes);
    *term = enif_make_binary(env, &binary);
    return 1;
}

/* Copies, then decodes the copy: the host cannot change that. Returns what is wrong, or NULL. */
static inline const char *decode(ErlNifEnv *env, const uint8_t *data, size_t size,
                                 ERL_NIF_TERM *term)
{
    uint8_t near[2048];
    uint8_t *copy = near;
    const char *wrong = NULL;

    if (decode_binary(env, data, size, term))
        return NULL;
    if (size < 2)
        return "payload";
    if (size > sizeof near)
        copy = enif_alloc(size);
    if (copy == NULL)
        return "enomem";
    ring_copy(copy, data, size);
    /* 80: compressed. A host has no reason to; its few bytes could become gigabytes. */
    if (copy[0] != 131 || copy[1] == 80 ||
        enif_binary_to_term(env, copy, size, term, ERL_NIF_BIN2TERM_SAFE) != size)
        wrong = "payload";
    if (copy != near)
        enif_free(copy);
    return wrong;
}

/* The ids behind the payload, after it was decoded. */
static inline void use_leases(struct ring *ring, const struct ring_reply *reply)
{
    for (uint32_t i = 0; i < reply->leases; i++) {
        uint64_t id;

        memcpy(&id, reply->data + reply->size + i * sizeof id, sizeof id);
        lease_used(ring, id);
    }
}

/* The reply in a slot as a term of env. With limits (bytes_max is
 * not SIZE_MAX), returns 0 where the work is too much for a
 * scheduler, and nothing has happened. The slot is the host's again, but not free. */
static inline int read_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                             size_t bytes_max, size_t binary_max, ERL_NIF_TERM *result)
{
    struct library *library = ring->library;
    struct ring_reply reply;
    ERL_NIF_TERM term;
    const char *wrong = ring_vm_reply(&ring->vm, index, &reply);

    if (wrong != NULL) {
        *result = make_bad_reply(env, ring, wrong);
        ring_vm_release(&ring->vm, index, use_of(id), NULL);
        return 1;
    }
    if (bytes_max != SIZE_MAX && (reply.size > bytes_max || reply.leases > 64)) {
        uint8_t head[2];

        memcpy(head, reply.data, sizeof head);
        if (reply.size > binary_max || reply.leases > 64 || head[1] != 109)
            return 0;
    }
    switch (reply.code) {
    case RING_VALUE:
    case RING_RAISE:
        wrong = decode(env, reply.data, reply.size, &term);
        if (wrong == NULL) {
            use_leases(ring, &reply);
            *result = enif_make_tuple2(
                env, reply.code == RING_VALUE ? library->am_value : library->am_raise, term);
        }
        break;
    case RING_BADARG:
        *result = library->am_badarg;
        break;
    case RING_TOO_LARGE:
        *result = make_error(env, library, library->am_too_large);
        break;
    case RING_DROPPED: /* of a call that has a caller: a lie */
        wrong = "dropped";
        break;
    }
    if (wrong != NULL)
        *result = make_bad_reply(env, ring, wrong);
    ring_vm_release(&ring->vm, index, use_of(id), &reply);
    return 1;
}

/* ---- the reader thread
 * ----------------------------------------------------------------------------- */

/* Looks at one slot. Returns whether there was something to do. Called by the reader, and by
 * callers that look for their own reply (env is theirs; NULL on the reader). */
static inline int deliver(ErlNifEnv *env, struct ring *ring, uint32_t index)
{
    struct slot *slot = &ring->slots[index];
    const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);
    const enum phase phase = word & 7;
    const uint64_t id = word >> 3;

    if ((phase != WAITING && phase != ABANDONED) || !ring_vm_replied(&ring->vm, index, use_of(id)))
        return 0;
    if (phase == WAITING && turn(slot, id, WAITING, READING)) {
        ERL_NIF_TERM reply;
        struct waiter waiter = slot->waiter;

        (void)read_reply(waiter.env, ring, index, id, SIZE_MAX, SIZE_MAX, &reply);
        waiter_send(env, &waiter, reply);
        /* The environment stays with the slot, for the next that waits. Free before the waiter's
         * hold on the resource is dropped. */
        enif_clear_env(waiter.env);
        free_slot(ring, index);
        if (waiter.monitored)
            (void)enif_demonitor_process(env, ring->resource, &waiter.monitor);
        enif_release_resource(ring->resource);
        return 1;
    }
    if (!turn(slot, id, ABANDONED, READING))
        return 1; /* it was abandoned just now: the next look */
    ring_vm_release(&ring->vm, index, use_of(id), NULL);
    free_slot(ring, index);
    return 1;
}

/* Delivers what is marked, by the host or by a NIF. */
static inline int deliver_marked(ErlNifEnv *env, struct ring *ring)
{
    int delivered = 0;

    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++) {
        uint64_t *const done = &ring->vm.header->done[i];
        uint64_t bits = 0;

        if (__atomic_load_n(done, __ATOMIC_RELAXED) != 0)
            bits |= __atomic_exchange_n(done, 0, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&ring->ready[i], __ATOMIC_RELAXED) != 0)
            bits |= __atomic_exchange_n(&ring->ready[i], 0, __ATOMIC_SEQ_CST);
        for (; bits != 0; bits &= bits - 1) {
            const uint32_t index = i * 64 + (uint32_t)__builtin_ctzll(bits);

            if (index < ring->vm.geometry.slots)
                delivered |= deliver(env, ring, index);
        }
    }
    return delivered;
}

static inline int anything_marked(struct ring *ring)
{
    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++)
        if (__atomic_load_n(&ring->vm.header->done[i], __ATOMIC_SEQ_CST) != 0 ||
            __atomic_load_n(&ring->ready[i], __ATOMIC_SEQ_CST) != 0)
            return 1;
    return 0;
}

/* Purges and frees what waits for it. */
static inline int purge_regions(struct ring *ring)
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

/* The host is down: tells everybody who waits. A caller that begins to wait from now on sees that
 * the ring is closed, after it said so. */
static inline void dismiss_all(struct ring *ring)
{
    struct line_entry *entry, *next;

    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t id = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) >> 3;

        if (turn(slot, id, WAITING, READING)) {
            waiter_send(NULL, &slot->waiter, make_host_down(slot->waiter.env, ring));
            waiter_close(NULL, ring, &slot->waiter);
        }
    }
    enif_mutex_lock(ring->lock);
    entry = ring->line;
    ring->line = NULL;
    ring->line_end = &ring->line;
    __atomic_store_n(&ring->line_len, 0, __ATOMIC_SEQ_CST);
    enif_mutex_unlock(ring->lock);
    for (; entry != NULL; entry = next) {
        next = entry->next;
        waiter_send(NULL, &entry->waiter, make_host_down(entry->waiter.env, ring));
        free_line_entry(NULL, ring, entry);
    }
}

/* Returns 0 when nobody rang. */
static inline int sleep_until_rung(struct ring *ring, uint32_t look)
{
    int rung = 1;

    __atomic_store_n(&ring->vm.header->vm_sleeps, 1, __ATOMIC_SEQ_CST);
    if (!anything_marked(ring) && !is_closed(ring))
        rung = bell_wait(&ring->vm.vm_bell, look, READER_LOOK_MS);
    if (!rung) {
        for (uint32_t i = 0; i < ring->vm.geometry.slots; i++)
            (void)deliver(NULL, ring, i);
        flush_gone(ring);
    }
    __atomic_store_n(&ring->vm.header->vm_sleeps, 0, __ATOMIC_SEQ_CST);
    return rung;
}

static inline void *reader(void *arg)
{
    struct ring *ring = arg;
    int false_alarms = 0;

    while (!is_closed(ring)) {
        const uint32_t look = bell_look(&ring->vm.vm_bell);
        const int delivered = deliver_marked(NULL, ring);

        if (purge_regions(ring) || delivered) {
            false_alarms = 0;
            continue;
        }
        flush_gone(ring);
        if (false_alarms > READER_FALSE_ALARMS)
            (void)nanosleep(&(struct timespec){0, 1000000}, NULL);
        false_alarms = sleep_until_rung(ring, look) ? false_alarms + 1 : 0;
    }
    dismiss_all(ring);
    leases_drop(ring);
    /* The host is gone, and nobody reads what it left: the pages go back although somebody may
     * still hold the ring. A NIF that is reading just now reads zeros. */
    (void)madvise(ring->vm.base + RING_HEADER_BYTES, ring->vm.bytes - RING_HEADER_BYTES,
                  MADV_REMOVE);
    __atomic_store_n(&ring->reader_done, 1, __ATOMIC_RELEASE);
    return NULL;
}

#endif
