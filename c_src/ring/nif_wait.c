/* nif_wait.c - how a caller waits: spinning, polling, in receive. */
#include "nif_wait.h"

#include "nif_functions.h"
#include "nif_reply.h"
#include "nif_slots.h"
#include "spin.h"

#include <sched.h>

/* Spins until the reply is there, for a bounded time. Returns 1 when it is there. */
static int spin(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id, uint32_t limit_ns,
                uint64_t start_ns)
{
    const uint32_t use = use_of(id);
    uint64_t last_ns = start_ns, now_ns;

    counted_alone(&ring->slots[index].spins);
    for (;;) {
        for (int i = 0; i < RING_SPIN_ROUNDS; i++) {
            if (ring_vm_replied(&ring->vm, index, use)) {
                now_ns = own_now_ns();
                ring->slots[index].replied_ns = now_ns;
                charge(env, now_ns - start_ns);
                waiting_uncrowded(&ring->waiting.crowd);
                counted_alone(&ring->slots[index].spins_paid);
                return 1;
            }
            tame_impl_pause();
        }
        now_ns = own_now_ns();
        if (now_ns - last_ns > RING_DESCHEDULED_NS)
            waiting_lost_core(&ring->waiting.crowd, start_ns, now_ns);
        if (now_ns - start_ns > limit_ns || now_ns - last_ns > RING_DESCHEDULED_NS ||
            __atomic_load_n(&ring->closed, __ATOMIC_RELAXED)) {
            charge(env, now_ns - start_ns);
            return 0;
        }
        last_ns = now_ns;
    }
}

ERL_NIF_TERM make_wait(ErlNifEnv *env, struct ring *ring, uint64_t id, uint32_t index)
{
    return enif_make_tuple2(env, ring->library->am_wait, enif_make_uint64(env, id << 11 | index));
}

int find_slot(struct ring *ring, uint64_t token)
{
    const uint64_t id = token >> 11;
    const uint32_t index = token & TOKEN_LINE, slots = ring->vm.geometry.slots;

    if (index < slots)
        return __atomic_load_n(&ring->slots[index].word, __ATOMIC_SEQ_CST) >> 3 == id ? (int)index
                                                                                      : -1;
    for (uint32_t i = 0; index == TOKEN_LINE && i < slots; i++)
        if (__atomic_load_n(&ring->slots[i].word, __ATOMIC_SEQ_CST) >> 3 == id)
            return (int)i;
    return -1;
}

/* The caller comes back to its slot. Returns 0 when the slot is in another phase. */
static int come_back(struct ring *ring, uint32_t index, uint64_t id, enum phase from)
{
    struct slot *slot = &ring->slots[index];

    if (!claim(slot, id, from, BUSY))
        return 0;
    waiter_close(ring, &slot->waiter);
    return 1;
}

/* The slot is ours: the reply, or why there is none. */
static ERL_NIF_TERM take_or_fail(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id)
{
    ERL_NIF_TERM result;

    if (ring_vm_replied(&ring->vm, index, use_of(id)))
        return take_reply(env, ring, index, id);
    if (is_closed(ring)) {
        result = make_host_down(env, ring);
        free_slot(ring, index);
    } else { /* it was there when the caller was told */
        result = make_bad_reply(env, ring, "state");
        finish_slot(ring, index, id, NULL);
    }
    return result;
}

/* ---- in turns with other processes ---- */

/* What the process before on this scheduler did. */
static __thread struct waiting_scheduler scheduler;

static int has_company(ErlNifEnv *env, uint64_t now_ns)
{
    ErlNifPid self;

    return waiting_called(&scheduler, enif_self(env, &self)->pid, now_ns);
}

/* A caller that does not spin polls each time that its scheduler has run the others: to be woken
 * from receive costs two threads a wake-up, 20 to 60 us, which is more than most calls take. */
static ERL_NIF_TERM make_poll(ErlNifEnv *env, struct ring *ring, uint64_t id, uint32_t index,
                              uint64_t now_ns)
{
    struct slot *slot = &ring->slots[index];

    slot->looked_ns = now_ns;
    slot->looked_on = &scheduler;
    slot->looked_at = scheduler.visits;
    return enif_make_tuple2(env, ring->library->am_poll, enif_make_uint64(env, id << 11 | index));
}

/* What has looked in vain waits for others who need the core, where it is not missed. Slots are taken
 * lowest first, so as many calls are under way as its number says. Returns the time. */
static uint64_t give_core(struct ring *ring, uint32_t index, uint64_t now_ns)
{
    uint64_t back_ns;

    if (!waiting_gives_core(&ring->waiting, index, now_ns))
        return now_ns;
    (void)sched_yield();
    back_ns = own_now_ns();
    waiting_got_core(&ring->waiting, &scheduler, now_ns, back_ns);
    return back_ns;
}

ERL_NIF_TERM nif_poll(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Token) -> Reply | {decode, ...} | {poll | wait, Token} */
    struct ring *ring;
    ErlNifUInt64 token;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost(env, argv[0]);
    if (!enif_get_uint64(env, argv[1], &token))
        return enif_make_badarg(env);

    const uint64_t id = token >> 11, now_ns = own_now_ns();
    const int index = find_slot(ring, token);

    if (index < 0)
        return make_closed(env, ring);

    struct slot *slot = &ring->slots[index];

    if (slot->looked_on == &scheduler)
        waiting_looked(&scheduler, slot->looked_ns, slot->looked_at, now_ns);
    if (ring_vm_replied(&ring->vm, (uint32_t)index, use_of(id)) &&
        come_back(ring, (uint32_t)index, id, PARKED)) {
        slot->replied_ns = now_ns;
        waiting_uncrowded(&ring->waiting.crowd);
        counted(&ring->polls_paid);
        return take_reply(env, ring, (uint32_t)index, id);
    }
    if (is_closed(ring))
        return make_wait(env, ring, id, (uint32_t)index);
    if (now_ns > slot->submitted_ns + WAITING_POLL_NS) {
        slot->polled_out = 1;
        return make_wait(env, ring, id, (uint32_t)index);
    }
    const uint64_t back_ns = give_core(ring, (uint32_t)index, now_ns);

    if (waiting_nudges(slot->submitted_ns, slot->looked_ns, back_ns))
        ring_vm_nudge(&ring->vm, (uint32_t)index);
    return make_poll(env, ring, id, (uint32_t)index, back_ns);
}

ERL_NIF_TERM await(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id, size_t size,
                   int woke, int by_route)
{
    struct slot *slot = &ring->slots[index];
    /* Not the submission's: to wake the host may take as long as the caller would spin. */
    uint64_t now_ns = woke ? own_now_ns() : slot->submitted_ns;
    const uint32_t limit_ns =
        waiting_spin_ns(ring->spin_ns, size < INLINE_REQUEST_BYTES ? size : INLINE_REQUEST_BYTES);
    const int company = has_company(env, now_ns);
    enum waiting_how how = ring->spin_ns == 0 ? WAITING_RECEIVE
                                              : waiting_begin(&ring->waiting, slot->function,
                                                              limit_ns, woke, company, now_ns);

    const int spins = how == WAITING_SPIN;

    counted_alone(&slot->calls);
    if (spins) {
        const int replied = spin(env, ring, index, id, limit_ns, now_ns);
        ERL_NIF_TERM result;

        if (replied && !by_route)
            return take_reply(env, ring, index, id);
        if (replied && take_small_reply(env, ring, index, id, &result))
            return result;
        now_ns = own_now_ns();
        how = replied || waiting_is_crowded(&ring->waiting.crowd, now_ns) ? WAITING_RECEIVE
                                                                          : WAITING_POLL;
    }
    waiter_open(env, &slot->waiter);
    /* Where callers come one after another, the reader finds those that have died. */
    if (!company || slot->region.pages > 0)
        waiter_watch(env, ring, &slot->waiter);
    set_phase(slot, id, PARKED);
    if (how == WAITING_RECEIVE)
        return make_wait(env, ring, id, index);
    if (spins)
        ring_vm_nudge(&ring->vm, index);
    return make_poll(env, ring, id, index, now_ns);
}

/* ---- in receive ---- */

/* A call that may be in line: arms it there. Returns 1 when that is done or the call is over, 0
 * when it has left the line for a slot. */
static int wait_in_line(ErlNifEnv *env, struct ring *ring, uint64_t id, ERL_NIF_TERM ref,
                        ERL_NIF_TERM *result)
{
    ERL_NIF_TERM message;
    ErlNifEnv *const message_env = waiter_message(ring, ref, &message);
    struct line_entry *entry, *dismissed = NULL;

    enif_mutex_lock(ring->lock);
    entry = line_find(&ring->line, id, NULL);
    if (entry != NULL) {
        entry->waiter.env = message_env; /* the entry's now */
        entry->waiter.message = message;
    } else {
        dismissed = line_find(&ring->dismissed, id, NULL);
        if (dismissed != NULL)
            line_remove(&ring->dismissed, dismissed);
    }
    enif_mutex_unlock(ring->lock);
    if (entry == NULL)
        enif_free_env(message_env);
    if (dismissed != NULL)
        free_line_entry(ring, dismissed);
    *result = entry != NULL ? ring->library->am_wait : make_closed(env, ring);
    return entry != NULL || dismissed != NULL;
}

ERL_NIF_TERM nif_wait(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Token, Ref) -> Reply | wait: {Ref, ready} will come */
    struct ring *ring;
    ErlNifUInt64 token;
    ERL_NIF_TERM result;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost(env, argv[0]);
    if (!enif_get_uint64(env, argv[1], &token) || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);

    const uint64_t id = token >> 11;

    if ((token & TOKEN_LINE) == TOKEN_LINE && wait_in_line(env, ring, id, argv[2], &result))
        return result;

    const int index = find_slot(ring, token);

    if (index < 0)
        return make_closed(env, ring);

    struct slot *slot = &ring->slots[index];

    if (!claim(slot, id, PARKED, BUSY))
        return enif_make_badarg(env); /* it waits already */
    if (ring_vm_replied(&ring->vm, (uint32_t)index, use_of(id)) || is_closed(ring)) {
        waiter_close(ring, &slot->waiter);
        return take_or_fail(env, ring, (uint32_t)index, id);
    }
    waiter_watch(env, ring, &slot->waiter);
    slot->waiter.env = waiter_message(ring, argv[2], &slot->waiter.message);
    set_phase(slot, id, WAITING);
    /* From here on the host rings. It may have replied, or have died, just before. */
    if ((ring_vm_wait(&ring->vm, (uint32_t)index, use_of(id)) || is_closed(ring)) &&
        come_back(ring, (uint32_t)index, id, WAITING))
        return take_or_fail(env, ring, (uint32_t)index, id);
    ring_vm_nudge(&ring->vm, (uint32_t)index);
    counted(&ring->waits);
    return ring->library->am_wait;
}

ERL_NIF_TERM nif_take(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Token) -> Reply; after {Ref, ready} has come */
    struct ring *ring;
    struct line_entry *entry;
    ErlNifUInt64 token;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost(env, argv[0]);
    if (!enif_get_uint64(env, argv[1], &token))
        return enif_make_badarg(env);

    const uint64_t id = token >> 11;
    const int index = find_slot(ring, token);

    if (index >= 0 && come_back(ring, (uint32_t)index, id, TOLD))
        return take_or_fail(env, ring, (uint32_t)index, id);
    enif_mutex_lock(ring->lock);
    entry = line_find(&ring->dismissed, id, NULL);
    if (entry != NULL)
        line_remove(&ring->dismissed, entry);
    enif_mutex_unlock(ring->lock);
    if (entry != NULL)
        free_line_entry(ring, entry);
    return make_closed(env, ring);
}
