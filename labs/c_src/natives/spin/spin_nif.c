/* tame_spin: a CPU kept busy for a time, as one job in every placement. */
#include <tame.h>

#include "spin.h"

/* 11 days: below it the rounds never overflow, above it somebody has mistaken the unit. */
#define SPIN_MAX_US UINT64_C(1000000000000)

/* Measured by the first call, then remembered as long as the library stays loaded, because a lab
 * compares equal amounts of work. A static may hold it: it belongs to the machine, not to an
 * instance. Two first calls at once both measure; the later one's figure stays. */
static uint64_t rounds_per_us(void)
{
    static uint64_t remembered;
    uint64_t rounds = __atomic_load_n(&remembered, __ATOMIC_RELAXED);

    if (rounds == 0) {
        rounds = spin_measure(tame_now_ns);
        __atomic_store_n(&remembered, rounds, __ATOMIC_RELAXED);
    }
    return rounds;
}

/* Spins between init and cleanup, in all instances of the library. */
static uint64_t running;

static enum tame_status spin_init(struct tame_call *call, void *state)
{
    struct spin *spin = state;
    ErlNifUInt64 us;

    __atomic_add_fetch(&running, 1, __ATOMIC_RELAXED);
    if (!enif_get_uint64(call->env, call->argv[0], &us) || us > SPIN_MAX_US)
        return tame_badarg(call, 1, "must be an integer from 0 to 1000000000000, in microseconds");
    spin->left_us = us;
    spin->rounds_per_us = rounds_per_us();
    return tame_ok(call, us);
}

static ERL_NIF_TERM spin_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "ok");
}

static void spin_cleanup(void *state)
{
    (void)state;
    __atomic_sub_fetch(&running, 1, __ATOMIC_RELAXED);
}

static const struct tame_job spin = {
    .state_size = sizeof(struct spin),
    .init = spin_init,
    .step = spin_step,
    .result = spin_result,
    .cleanup = spin_cleanup,
};

/* As a server bounds its queue, so that who asks is told at once. The pool takes turns with all runs
 * that it has begun, and those wait no more: so both have to be bounded. */
#define BOUNDED_RUNNING 4
#define BOUNDED_WAITING 16

static const struct tame_job spin_bounded = {
    .state_size = sizeof(struct spin),
    .max_running = BOUNDED_RUNNING,
    .max_waiting = BOUNDED_WAITING,
    .init = spin_init,
    .step = spin_step,
    .result = spin_result,
    .cleanup = spin_cleanup,
};

/* () -> how many spins there are. */
static ERL_NIF_TERM count(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_uint64(env, __atomic_load_n(&running, __ATOMIC_RELAXED));
}

#define FUNCTIONS(JOB, NIF)                                    \
    JOB(spin_nif, 1, spin, TAME_AUTO)                          \
    JOB(spin_inline_nif, 1, spin, TAME_INLINE)                 \
    JOB(spin_yielding_nif, 1, spin, TAME_YIELDING)             \
    JOB(spin_dirty_nif, 1, spin, TAME_DIRTY_CPU)               \
    JOB(spin_dirty_io_nif, 1, spin, TAME_DIRTY_IO)             \
    JOB(spin_yielding_dirty_nif, 1, spin, TAME_YIELDING_DIRTY) \
    JOB(spin_thread_nif, 1, spin, TAME_THREAD)                 \
    JOB(spin_pool_nif, 1, spin, TAME_POOL)                     \
    JOB(spin_bounded_nif, 1, spin_bounded, TAME_POOL)          \
    NIF(running, 0, count, TAME_INLINE)

TAME_NIF_INIT(tame_spin, FUNCTIONS)
