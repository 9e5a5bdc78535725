/* nif_slots.c - slots, the line before them, their callers, and the regions of requests. */
#include "nif_slots.h"

/* ---- waiters ---- */

void waiter_open(ErlNifEnv *env, struct waiter *waiter)
{
    enif_self(env, &waiter->pid);
    waiter->watched.part = NULL;
    waiter->env = NULL;
}

void waiter_watch(ErlNifEnv *env, struct ring *ring, struct waiter *waiter)
{
    if (waiter->watched.part != NULL)
        return;
    ring_keep(ring);
    if (!tame_impl_watch_enter(env, ring->library->watches, ring->library->watch_type, &waiter->pid,
                               &waiter->watched, ring))
        ring_drop(ring);
}

void waiter_unwatch(struct ring *ring, struct waiter *waiter)
{
    if (tame_impl_unwatch(&waiter->watched))
        ring_drop(ring);
    waiter->watched.part = NULL;
}

ErlNifEnv *waiter_message(struct ring *ring, ERL_NIF_TERM ref, ERL_NIF_TERM *message)
{
    ErlNifEnv *env = enif_alloc_env();

    *message = enif_make_tuple2(env, enif_make_copy(env, ref), ring->library->am_ready);
    return env;
}

void waiter_close(struct ring *ring, struct waiter *waiter)
{
    waiter_unwatch(ring, waiter);
    if (waiter->env != NULL)
        enif_free_env(waiter->env);
    waiter->env = NULL;
}

/* ---- regions of requests ---- */

struct extent take_request_region(struct ring *ring, size_t bytes)
{
    struct extent region;

    enif_mutex_lock(ring->lock);
    region = extents_take(&ring->vm.requests, ring_request_pages(bytes));
    enif_mutex_unlock(ring->lock);
    return region;
}

/* Gives a region back; what has to be purged first goes to the reader. The lock is held. */
static int give_request_region_locked(struct ring *ring, struct extent region)
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

void give_request_region(struct ring *ring, struct extent region)
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

/* ---- slots and the line ---- */

/* A free slot, now BUSY with this call, or -1. */
static int take_slot(struct ring *ring, uint64_t id)
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

int claim_slot(struct ring *ring, uint64_t id)
{
    return __atomic_load_n(&ring->line_len, __ATOMIC_SEQ_CST) > 0 ? -1 : take_slot(ring, id);
}

void line_add(struct line *line, struct line_entry *entry)
{
    entry->next = NULL;
    entry->before = line->last;
    if (line->last != NULL)
        line->last->next = entry;
    else
        line->first = entry;
    line->last = entry;
}

void line_remove(struct line *line, struct line_entry *entry)
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

struct line_entry *line_find(struct line *line, uint64_t id, const ErlNifPid *pid)
{
    struct line_entry *entry = line->last;

    while (entry != NULL &&
           !(pid == NULL ? entry->id == id : enif_compare_pids(&entry->waiter.pid, pid) == 0))
        entry = entry->before;
    return entry;
}

void leave_line(struct ring *ring, struct line_entry *entry)
{
    line_remove(&ring->line, entry);
    __atomic_fetch_sub(&ring->line_len, 1, __ATOMIC_SEQ_CST);
}

void free_line_entry(struct ring *ring, struct line_entry *entry)
{
    give_request_region(ring, entry->region);
    waiter_close(ring, &entry->waiter);
    free(entry);
}

void pump(struct ring *ring)
{
    enif_mutex_lock(ring->lock);
    while (ring->line.first != NULL && !is_closed(ring)) {
        struct line_entry *entry = ring->line.first;
        const int index = take_slot(ring, entry->id);
        const int armed = entry->waiter.env != NULL;
        const uint64_t now_ns = tame_now_ns();
        struct slot *slot;

        if (index < 0)
            break;
        leave_line(ring, entry);
        slot = &ring->slots[index];
        slot->waiter = entry->waiter; /* its environment too */
        tame_impl_watch_pass(&entry->waiter.watched, &slot->waiter.watched);
        slot->region = entry->region;
        slot->function = entry->function;
        slot->replied_ns = 0;
        slot->polled_out = 0;
        __atomic_store_n(&slot->submitted_ns, now_ns, __ATOMIC_RELAXED);
        if (entry->region.pages == 0)
            memcpy(ring_vm_slot(&ring->vm, (uint32_t)index)->payload, entry->data, entry->size);
        set_phase(slot, entry->id, armed ? WAITING : PARKED);
        (void)ring_vm_submit(&ring->vm, (uint32_t)index, use_of(entry->id), armed ? RING_WAIT : 0,
                             &(struct ring_request){.function = entry->function,
                                                    .id = entry->id,
                                                    .size = entry->size,
                                                    .region = entry->region,
                                                    .now_ns = now_ns});
        free(entry);
    }
    enif_mutex_unlock(ring->lock);
}

void free_slot(struct ring *ring, uint32_t index)
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

void finish_slot(struct ring *ring, uint32_t index, uint64_t id, const struct ring_reply *reply)
{
    struct slot *slot = &ring->slots[index];

    ring_vm_release(&ring->vm, index, use_of(id), reply);
    counted_alone(&slot->answered);
    free_slot(ring, index);
}

/* Has the reader see to a slot. */
static void mark_ready(struct ring *ring, uint32_t index)
{
    __atomic_fetch_or(&ring->ready[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    wake_reader(ring);
}

void abandon_slot(struct ring *ring, uint32_t index, uint64_t id)
{
    struct slot *slot = &ring->slots[index];

    if (is_closed(ring)) {
        free_slot(ring, index);
        return;
    }
    __atomic_store_n(&slot->abandoned_ns, tame_now_ns(), __ATOMIC_RELAXED);
    ring_vm_cancel(&ring->vm, index); /* while the slot cannot pass to another call */
    const int replied = ring_vm_wait(&ring->vm, index, use_of(id));
    set_phase(slot, id, ABANDONED);
    if (replied)
        mark_ready(ring, index);
}

void abandon_left(struct ring *ring)
{
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);
        ErlNifPid pid = slot->waiter.pid; /* the word's, if it can be claimed */

        if ((word & 7) == PARKED && !enif_is_process_alive(NULL, &pid) &&
            claim(slot, word >> 3, PARKED, EXCLUSIVE)) {
            waiter_unwatch(ring, &slot->waiter);
            abandon_slot(ring, i, word >> 3);
        }
    }
}

uint64_t calls_under_way(struct ring *ring)
{
    uint64_t used = ring->vm.geometry.slots;

    for (uint32_t i = 0; i < (ring->vm.geometry.slots + 63) / 64; i++)
        used -= (uint64_t)__builtin_popcountll(__atomic_load_n(&ring->free[i], __ATOMIC_RELAXED));
    return used + __atomic_load_n(&ring->line_len, __ATOMIC_RELAXED);
}
