/* nif_info.c - what one may ask of a ring: whether its host lives, counters. */
#include "nif_functions.h"
#include "nif_slots.h"

ERL_NIF_TERM nif_pulse(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring) -> {Answered, InUse, UntakenMs} */
    struct ring *ring;
    const uint64_t now_ns = tame_now_ns();
    uint64_t answered = 0, in_use = 0, untaken_ns = 0;

    (void)argc;
    if (!get_ring(env, argv[0], &ring)) {
        const ERL_NIF_TERM zero = enif_make_uint(env, 0);

        return is_lost(env, argv[0]) ? enif_make_tuple3(env, zero, zero, zero)
                                     : enif_make_badarg(env);
    }
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);
        const uint64_t since_ns = __atomic_load_n(&slot->submitted_ns, __ATOMIC_RELAXED);

        answered += __atomic_load_n(&slot->answered, __ATOMIC_RELAXED);
        if ((word & 7) == FREE)
            continue;
        in_use++;
        /* If the slot passes to another call in between, that one is younger. */
        if (since_ns != 0 && now_ns > since_ns && now_ns - since_ns > untaken_ns &&
            !ring_vm_replied(&ring->vm, i, use_of(word >> 3)) && !ring_vm_taken(&ring->vm, i))
            untaken_ns = now_ns - since_ns;
    }
    return enif_make_tuple3(env, enif_make_uint64(env, answered), enif_make_uint64(env, in_use),
                            enif_make_uint64(env, untaken_ns / 1000000));
}

ERL_NIF_TERM nif_abandoned(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Ms) -> {Taken, Untouched}: calls that are not answered though nobody has wanted them
     * for this long, by whether the host says that a worker is at them. Untouched is 0 while a
     * worker is at any call at all. */
    struct ring *ring;
    unsigned ms, taken = 0, untouched = 0, at_work = 0;
    const uint64_t now_ns = tame_now_ns();

    (void)argc;
    if (!enif_get_uint(env, argv[1], &ms))
        return enif_make_badarg(env);
    if (!get_ring(env, argv[0], &ring)) {
        if (!is_lost(env, argv[0]))
            return enif_make_badarg(env);
        return enif_make_tuple2(env, enif_make_uint(env, 0), enif_make_uint(env, 0));
    }
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const enum phase phase = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) & 7;
        const int is_taken = ring_vm_taken(&ring->vm, i);

        at_work += phase != FREE && is_taken;
        /* If the slot passes to another call in between, that one is younger; and it may have been
         * abandoned since the clock was read. */
        if (phase == ABANDONED && now_ns >= __atomic_load_n(&slot->abandoned_ns, __ATOMIC_RELAXED) +
                                                ms * UINT64_C(1000000)) {
            taken += is_taken;
            untouched += !is_taken;
        }
    }
    return enif_make_tuple2(env, enif_make_uint(env, taken),
                            enif_make_uint(env, at_work > 0 ? 0 : untouched));
}

static uint64_t read_counter(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

ERL_NIF_TERM nif_info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring) -> map; of a lost ring, with zeros */
    enum { ROWS = 18 };
    const char *const names[ROWS] = {
        "slots",   "slot_bytes",   "request_bytes",    "reply_bytes",   "slots_in_use",
        "in_line", "region_bytes", "region_bytes_max", "leases_unused", "resources",
        "calls",   "spins",        "spins_paid",       "polls_paid",    "waits",
        "lined",   "busy",         "bad_replies",
    };
    uint64_t values[ROWS] = {0};
    struct ring *ring;
    ERL_NIF_TERM map = enif_make_new_map(env);

    (void)argc;
    if (get_ring(env, argv[0], &ring)) {
        uint64_t in_use = 0, calls = read_counter(&ring->lined), spins = 0, spins_paid = 0;

        for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
            const struct slot *slot = &ring->slots[i];

            in_use += (__atomic_load_n(&slot->word, __ATOMIC_RELAXED) & 7) != FREE;
            calls += read_counter(&slot->calls);
            spins += read_counter(&slot->spins);
            spins_paid += read_counter(&slot->spins_paid);
        }
        enif_mutex_lock(ring->lock);
        const uint64_t region_bytes = ring->vm.requests.used_pages * RING_PAGE;
        const uint64_t region_bytes_max = ring->vm.requests.used_max * RING_PAGE;
        const uint64_t unused = ring->leases_unused, resources = ring->resources;
        enif_mutex_unlock(ring->lock);

        const uint64_t now[ROWS] = {
            ring->vm.geometry.slots,
            ring->vm.geometry.slot_bytes,
            ring->vm.geometry.request_bytes,
            ring->vm.geometry.reply_bytes,
            in_use,
            __atomic_load_n(&ring->line_len, __ATOMIC_RELAXED),
            region_bytes,
            region_bytes_max,
            unused,
            resources,
            calls,
            spins,
            spins_paid,
            read_counter(&ring->polls_paid),
            read_counter(&ring->waits),
            read_counter(&ring->lined),
            read_counter(&ring->busy),
            read_counter(&ring->bad_replies),
        };

        memcpy(values, now, sizeof values);
    } else if (!is_lost(env, argv[0])) {
        return enif_make_badarg(env);
    }
    for (int i = 0; i < ROWS; i++)
        (void)enif_make_map_put(env, map, enif_make_atom(env, names[i]),
                                enif_make_uint64(env, values[i]), &map);
    return map;
}
