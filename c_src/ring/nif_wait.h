/* nif_wait.h - how a caller waits for its reply: it spins, looks again in turns with others, and
 * waits in receive at last.
 *
 * Private to tame_ring_nif.c, which includes it behind its helpers. */
#ifndef TAME_RING_NIF_WAIT_H
#define TAME_RING_NIF_WAIT_H

/* Where spinning has not paid lately, so many calls in a row spin all the same, out of so many: the
 * first may have to wake the host, the second finds it about to sleep, the third tells. */
#define PROBE_CALLS 4
#define PROBE_PERIOD 64

/* Time used beyond what a function call is worth is paid for. */
static void charge(ErlNifEnv *env, uint64_t ns)
{
    if (ns > 5000)
        (void)enif_consume_timeslice(env, ns < 1000000 ? (int)(ns / 10000) + 1 : 100);
}

/* Spinning failed: three times in a row, and it is left. One success brings it back. */
static void predict_late(uint32_t limit_ns, uint32_t *predicted_ns)
{
    const uint32_t old = __atomic_load_n(predicted_ns, __ATOMIC_RELAXED);

    if (old <= limit_ns)
        __atomic_store_n(predicted_ns, old + limit_ns * 2 / 5, __ATOMIC_RELAXED);
}

/* Arguments that pass from one core's cache to the other's take 0.1 to 0.2 ns a byte, and what the
 * NIF makes of them as long again: so much longer a caller spins. */
#define SPIN_BYTES_PER_NS 3

/* Looks for the reply, for a bounded time. Returns 1 when it is there. */
static int spin(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id, uint32_t function,
                size_t size)
{
    const size_t copied = size < INLINE_REQUEST_BYTES ? size : INLINE_REQUEST_BYTES;
    const uint32_t limit_ns = ring->spin_ns + (uint32_t)(copied / SPIN_BYTES_PER_NS);
    uint32_t *const predicted_ns = &ring->predicted_ns[function % PREDICTIONS];
    const uint32_t use = use_of(id);
    uint64_t start_ns, last_ns, now_ns;

    if (__atomic_load_n(predicted_ns, __ATOMIC_RELAXED) > limit_ns &&
        __atomic_add_fetch(&ring->probes, 1, __ATOMIC_RELAXED) % PROBE_PERIOD >= PROBE_CALLS)
        return ring_vm_replied(&ring->vm, index, use);
    if (ring->spin_ns == 0)
        return 0;
    counted(&ring->spins);
    start_ns = last_ns = ring_now_ns();
    for (;;) {
        for (int i = 0; i < RING_SPIN_LOOKS; i++) {
            if (ring_vm_replied(&ring->vm, index, use)) {
                now_ns = ring_now_ns();
                __atomic_store_n(predicted_ns, (uint32_t)(now_ns - start_ns) / 2, __ATOMIC_RELAXED);
                charge(env, now_ns - start_ns);
                counted(&ring->spins_paid);
                return 1;
            }
            ring_pause();
        }
        now_ns = ring_now_ns();
        if (now_ns - start_ns > limit_ns || now_ns - last_ns > RING_DESCHEDULED_NS ||
            __atomic_load_n(&ring->closed, __ATOMIC_RELAXED)) {
            predict_late(limit_ns, predicted_ns);
            charge(env, now_ns - start_ns);
            return 0;
        }
        last_ns = now_ns;
    }
}

/* From now on the caller waits in receive. */
static ERL_NIF_TERM begin_wait(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id)
{
    struct slot *slot = &ring->slots[index];
    const ERL_NIF_TERM ref = waiter_open(env, ring, &slot->waiter);

    __atomic_store_n(&slot->word, word_of(id, WAITING), __ATOMIC_SEQ_CST);
    return enif_make_tuple3(env, ring->library->am_wait, ref, enif_make_uint64(env, id));
}

/* Ends a wait that has just begun. Returns 0 when the reader was faster: then a message comes. */
static int end_wait(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id)
{
    struct slot *slot = &ring->slots[index];

    if (!turn(slot, id, WAITING, BUSY))
        return 0;
    waiter_close(env, ring, &slot->waiter);
    return 1;
}

/* The reply is in the slot, and we own it. */
static ERL_NIF_TERM take_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id)
{
    ERL_NIF_TERM result;

    if (read_reply(env, ring, index, id, INLINE_REPLY_BYTES, INLINE_BINARY_BYTES, &result)) {
        free_slot(ring, index);
        return result;
    }
    /* Too much for a scheduler. */
    result = begin_wait(env, ring, index, id);
    __atomic_fetch_or(&ring->ready[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    wake_reader(ring);
    if (is_closed(ring) && end_wait(env, ring, index, id))
        return make_host_down(env, ring);
    return result;
}

/* The caller's wait, which has begun, goes on in receive: the host is to ring for it. */
static ERL_NIF_TERM wait_in_receive(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                                    ERL_NIF_TERM wait)
{
    const int replied = ring_vm_wait(&ring->vm, index, use_of(id));

    if ((replied || is_closed(ring)) && end_wait(env, ring, index, id))
        return replied ? take_reply(env, ring, index, id) : make_host_down(env, ring);
    counted(&ring->waits);
    return wait;
}

/* A caller that has stopped spinning looks again, for so long in all, each time that its scheduler
 * has nobody else to run: to be woken from receive costs two threads a wake-up, 20 to 60 us, which
 * is more than most calls take. */
#define LOOK_NS 200000

/* So many calls of a function in a row that took longer, and it does not look any more; one in
 * PROBE_PERIOD tries. */
#define LOOK_FAILURES 3

static ERL_NIF_TERM look(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Wait, Index, Id, Function, StartNs) -> Reply | Wait */
    struct ring *ring;
    uint32_t index, function;
    ErlNifUInt64 id, start_ns;

    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[2], &index) ||
        !enif_get_uint64(env, argv[3], &id) || !enif_get_uint(env, argv[4], &function) ||
        !enif_get_uint64(env, argv[5], &start_ns))
        return enif_make_badarg(env);

    uint8_t *const failures = &ring->look_failures[function % PREDICTIONS];

    if (ring_vm_replied(&ring->vm, index, use_of(id))) {
        __atomic_store_n(failures, 0, __ATOMIC_RELAXED);
        counted(&ring->looks_paid);
        return end_wait(env, ring, index, id) ? take_reply(env, ring, index, id) : argv[1];
    }
    if (ring_now_ns() - start_ns > LOOK_NS || is_closed(ring)) {
        if (__atomic_load_n(failures, __ATOMIC_RELAXED) < LOOK_FAILURES)
            __atomic_fetch_add(failures, 1, __ATOMIC_RELAXED);
        return wait_in_receive(env, ring, index, id, argv[1]);
    }
    /* All of its timeslice, so that others really come first. */
    (void)enif_consume_timeslice(env, 100);
    return enif_schedule_nif(env, "look", 0, look, argc, argv);
}

static int is_worth_a_look(struct ring *ring, uint32_t function)
{
    return ring->spin_ns > 0 &&
           (__atomic_load_n(&ring->look_failures[function % PREDICTIONS], __ATOMIC_RELAXED) <
                LOOK_FAILURES ||
            __atomic_add_fetch(&ring->probes, 1, __ATOMIC_RELAXED) % PROBE_PERIOD == 0);
}

static ERL_NIF_TERM await(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM ring_term, uint32_t index,
                          uint64_t id, uint32_t function, size_t size)
{
    ERL_NIF_TERM wait;

    counted(&ring->calls);
    if (spin(env, ring, index, id, function, size))
        return take_reply(env, ring, index, id);
    wait = begin_wait(env, ring, index, id);
    if (is_worth_a_look(ring, function)) {
        const ERL_NIF_TERM next[] = {ring_term,
                                     wait,
                                     enif_make_uint(env, index),
                                     enif_make_uint64(env, id),
                                     enif_make_uint(env, function),
                                     enif_make_uint64(env, ring_now_ns())};

        (void)enif_consume_timeslice(env, 100);
        return enif_schedule_nif(env, "look", 0, look, 6, next);
    }
    return wait_in_receive(env, ring, index, id, wait);
}

#endif
