/* nif_cancel.c - calls whose callers do not wait any more: cancelled, or dead. */
#include "nif_functions.h"
#include "nif_slots.h"
#include "nif_wait.h"

ERL_NIF_TERM nif_cancel(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Token) -> ok: no message will come | wait: it is on its way */
    struct ring *ring;
    struct line_entry *entry;
    ErlNifUInt64 token;

    (void)argc;
    if (!get_ring(env, argv[0], &ring)) /* it was closed, and has told everybody, or will */
        return is_lost(env, argv[0]) ? library_of(env)->am_wait : enif_make_badarg(env);
    if (!enif_get_uint64(env, argv[1], &token))
        return enif_make_badarg(env);

    const uint64_t id = token >> 11;

    if ((token & TOKEN_LINE) == TOKEN_LINE) {
        enif_mutex_lock(ring->lock);
        entry = line_find(&ring->line, id, NULL);
        if (entry != NULL)
            leave_line(ring, entry);
        enif_mutex_unlock(ring->lock);
        if (entry != NULL) {
            free_line_entry(ring, entry);
            return ring->library->am_ok;
        }
    }

    const int index = find_slot(ring, token);

    if (index >= 0 && claim(&ring->slots[index], id, WAITING, EXCLUSIVE)) {
        waiter_close(ring, &ring->slots[index].waiter);
        abandon_slot(ring, (uint32_t)index, id);
        return ring->library->am_ok;
    }
    return ring->library->am_wait;
}

/* The process may have been the ring's owner, or a caller, or both. */
static void process_ended(struct ring *ring, const ErlNifPid *pid)
{
    if (enif_compare_pids(pid, &ring->owner) == 0)
        ring_shut(ring, ring->library->am_owner_down);
    for (;;) {
        struct line_entry *entry;

        enif_mutex_lock(ring->lock);
        entry = line_find(&ring->line, 0, pid);
        if (entry != NULL) {
            leave_line(ring, entry);
        } else {
            entry = line_find(&ring->dismissed, 0, pid);
            if (entry != NULL)
                line_remove(&ring->dismissed, entry);
        }
        enif_mutex_unlock(ring->lock);
        if (entry == NULL)
            break;
        free_line_entry(ring, entry);
    }
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);
        const enum phase phase = word & 7;
        const uint64_t id = word >> 3;

        /* If the slot passes to another call in between, the claim fails. While it is EXCLUSIVE,
         * the reader finds that the caller is dead when it sends. */
        if ((phase == PARKED || phase == WAITING || phase == TOLD) &&
            enif_compare_pids(&slot->waiter.pid, pid) == 0 && claim(slot, id, phase, EXCLUSIVE)) {
            waiter_close(ring, &slot->waiter);
            abandon_slot(ring, i, id);
        }
    }
}

static void tell_ended(ErlNifEnv *env, void *object, const ErlNifPid *pid)
{
    (void)env;
    process_ended(object, pid);
    ring_drop(object); /* the watch's hold */
}

void process_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid;
    (void)monitor;
    tame_impl_watch_down(env, object, tell_ended);
}
