/* tame/work.h - a run's steps, in slices, on whatever thread.
 *
 * Part of tame.h. */
#ifndef TAME_WORK_H
#define TAME_WORK_H

#include <sched.h>

#include "charge.h"
#include "finish.h"
#include "tell.h"

/* After a slice that ended at now_ns: tells what is due. A slice shorter than TAME_CLOCK_CHECK_NS
 * says too little of the rate. `env` is the calling NIF's; NULL on a thread of ours. */
static inline void tame_impl_tell_slice(ErlNifEnv *env, struct tame_impl_run *run, uint64_t now_ns,
                                        uint64_t used_ns)
{
    uint64_t *rate_told_ns = &tame_impl_stats(run)->rate_told_ns;

    /* Two threads may both find it due; then it is told twice. Their clocks differ by microseconds. */
    if (used_ns >= TAME_CLOCK_CHECK_NS && run->pace.units_per_ns > 0 &&
        now_ns >= __atomic_load_n(rate_told_ns, __ATOMIC_RELAXED) + TAME_IMPL_TELL_NS) {
        __atomic_store_n(rate_told_ns, now_ns, __ATOMIC_RELAXED);
        tame_impl_tell_rate(env, run->instance->module, run->row->name, run->row->arity,
                            run->pace.units_per_ns);
    }
    if (now_ns >= run->progress_told_ns + TAME_IMPL_TELL_NS) {
        const uint64_t total = run->call.impl_total;

        run->progress_told_ns = now_ns;
        if (env != NULL)
            enif_self(env, &run->caller);
        tame_impl_tell_progress(env, &run->caller,
                                total > 0 && run->done > total ? total : run->done, total);
    }
}

/* A job says TAME_MORE after at least one unit. One that has said so more than twice as often as it
 * has units, as init told, does not get on, and would go on for ever. */
#define TAME_IMPL_IDLE_STEPS 1000

static inline uint64_t tame_impl_steps_left(const struct tame_impl_run *run)
{
    const uint64_t total = run->call.impl_total;
    const uint64_t most =
        total == 0 || total > UINT64_MAX / 4 ? UINT64_MAX : 2 * (total + TAME_IMPL_IDLE_STEPS);

    return most > run->steps ? most - run->steps : 0;
}

/* The phase that the run is in is through: the next. Each has units of its own. */
static inline void tame_impl_next_phase(struct tame_impl_run *run)
{
    const int gathers = run->phase == TAME_IMPL_STEPS && tame_impl_scattered(&run->call);

    run->phase = gathers ? TAME_IMPL_GATHER : TAME_IMPL_BUILD;
    if (gathers || run->row->job->build != NULL)
        memset(&run->pace, 0, sizeof run->pace);
}

static inline tame_step tame_impl_step(const struct tame_impl_run *run)
{
    return run->phase == TAME_IMPL_STEPS    ? run->row->job->step
           : run->phase == TAME_IMPL_GATHER ? tame_impl_gather
                                            : run->row->job->build;
}

/* One slice of the phase that the run is in, from start_ns on, a reading of tame_impl_meter_begin;
 * `env` as above. The run ends at its deadline, and when it does not get on: then it has failed. */
static inline struct tame_impl_slice tame_impl_run_slice(ErlNifEnv *env, struct tame_impl_run *run,
                                                         uint64_t start_ns, uint64_t slice_ns,
                                                         const int *watched, int is)
{
    const int steps = run->phase == TAME_IMPL_STEPS;
    const double rate = run->pace.units_per_ns;
    struct tame_impl_until until;
    struct tame_impl_slice slice;

    until.start_ns = start_ns;
    until.slice_ns = slice_ns;
    until.deadline_ns = run->deadline_ns;
    until.steps = steps ? tame_impl_steps_left(run) : UINT64_MAX;
    until.watched = watched;
    until.is = is;
    until.clock = tame_impl_meter_now_ns;
    slice = tame_impl_slice_run(tame_impl_step(run), &run->call, run->call.impl_state, &run->pace,
                                &until);
    if (slice.used_ns > slice_ns + TAME_IMPL_LARGE_LATE_NS &&
        tame_impl_meter_used_ns(start_ns, start_ns + slice.used_ns) >
            slice_ns + TAME_IMPL_LARGE_LATE_NS)
        tame_impl_os_large_pages_late(start_ns);
    if (run->phase == TAME_IMPL_GATHER)
        slice.longest_unit_ns = 0; /* not the author's */
    if (steps) {
        run->done += slice.units;
        run->steps += slice.steps;
        if (run->pace.units_per_ns != rate)
            tame_impl_rate_store(run);
        tame_impl_tell_slice(env, run, start_ns + slice.used_ns, slice.used_ns);
        if (slice.status == TAME_MORE && tame_impl_steps_left(run) == 0)
            slice.status = tame_impl_fault(&run->call, "no_progress");
    }
    if (slice.status == TAME_MORE && start_ns + slice.used_ns >= run->deadline_ns)
        slice.status = tame_impl_fault(&run->call, "deadline");
    slice.status = tame_impl_stepped(&run->call, slice.status);
    return slice;
}

/* A unit that takes longer than a NIF may is told once for each row: to cut it is the author's
 * part, and nobody else sees it. */
#define TAME_IMPL_SLOW_UNIT_NS UINT64_C(1000000)

static inline void tame_impl_tell_slow_unit(ErlNifEnv *env, struct tame_impl_run *run,
                                            const struct tame_impl_slice *slice, uint64_t used_ns)
{
    int *told = &tame_impl_stats(run)->slow_unit_told;
    const uint64_t unit_ns = slice->longest_unit_ns < used_ns ? slice->longest_unit_ns : used_ns;

    if (unit_ns > 2 * TAME_IMPL_SLOW_UNIT_NS && !__atomic_exchange_n(told, 1, __ATOMIC_RELAXED))
        tame_impl_tell_unit(env, run->instance->module, run->row->name, run->row->arity, unit_ns);
}

/* A full slice on a regular scheduler, when nobody else waits for it. */
static inline uint64_t tame_impl_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->slice_us;

    return (us > 0 ? us : TAME_SLICE_US) * UINT64_C(1000);
}

/* ---- off the normal schedulers ---- */

static inline uint64_t tame_impl_dirty_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->dirty_slice_us;

    return (us > 0 ? us : TAME_DIRTY_SLICE_US) * UINT64_C(1000);
}

/* How often a thread that works beside the schedulers yields its core.
 *
 * The operating system shares a core among threads in time slices of some milliseconds. A normal
 * scheduler with nothing to do spins for a while and calls sched_yield() in each round, and Linux
 * lets it wait for a whole time slice of ours each time: neighbours woke 130 ms late beside work in
 * the pool (Linux 6.18), and 10 ms late since the pool yields too. */
#define TAME_IMPL_YIELD_EVERY_NS (TAME_SLICE_US * 1000)

/* Yields the core if the interval is over. Afterwards the job keeps it for as long as it was away,
 * so it runs at half speed at worst. Returns the time. */
static inline uint64_t tame_impl_yield_core(struct tame_impl_run *run)
{
    const uint64_t now_ns = tame_now_ns();
    uint64_t back_ns, away_ns;

    if (now_ns < run->yield_at_ns)
        return now_ns;
    (void)sched_yield();
    back_ns = tame_now_ns();
    away_ns = back_ns - now_ns;
    run->yield_at_ns =
        back_ns + (away_ns > TAME_IMPL_YIELD_EVERY_NS ? away_ns : TAME_IMPL_YIELD_EVERY_NS);
    return back_ns;
}

/* A long slice from start_ns on, in pieces; after each it may yield the core. Ends sooner when what
 * is watched changes. */
static inline enum tame_status tame_impl_long_slice(ErlNifEnv *env, struct tame_impl_run *run,
                                                    uint64_t start_ns, uint64_t slice_ns,
                                                    const int *watched, int is)
{
    const uint64_t piece_ns =
        slice_ns < TAME_IMPL_YIELD_EVERY_NS ? slice_ns : TAME_IMPL_YIELD_EVERY_NS;
    uint64_t now_ns = start_ns;
    enum tame_status status;

    do {
        status =
            tame_impl_run_slice(env, run, tame_impl_meter_begin(), piece_ns, watched, is).status;
        if (status != TAME_MORE)
            return status;
        now_ns = tame_impl_yield_core(run);
    } while (now_ns - start_ns < slice_ns && __atomic_load_n(watched, __ATOMIC_RELAXED) == is);
    return TAME_MORE;
}

#endif
