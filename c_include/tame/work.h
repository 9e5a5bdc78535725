/* tame/work.h - a run's steps, in slices, on whatever thread.
 *
 * Part of tame.h. */
#ifndef TAME_WORK_H
#define TAME_WORK_H

#include <sched.h>

#include "run.h"
#include "tell.h"

static inline uint64_t tame_impl_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->slice_us;
    return (us > 0 ? us : TAME_SLICE_US) * UINT64_C(1000);
}

static inline uint64_t tame_impl_dirty_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->dirty_slice_us;
    return (us > 0 ? us : TAME_DIRTY_SLICE_US) * UINT64_C(1000);
}

/* After a slice that ended at now_ns: tells what is due. A slice shorter than TAME_CLOCK_CHECK_NS
 * says too little of the rate. */
static inline void tame_impl_tell_slice(struct tame_impl_run *run, uint64_t now_ns,
                                        uint64_t used_ns)
{
    uint64_t *rate_told_ns = &run->instance->row_stats[run->row->index].rate_told_ns;
    ErlNifEnv *env =
        run->waiter.own_env == NULL ? run->call.env : NULL; /* NULL: on a thread of ours */

    /* Two threads may both find it due; then it is told twice. */
    if (used_ns >= TAME_CLOCK_CHECK_NS && run->pace.units_per_ns > 0 &&
        now_ns - __atomic_load_n(rate_told_ns, __ATOMIC_RELAXED) >= TAME_IMPL_TELL_NS) {
        __atomic_store_n(rate_told_ns, now_ns, __ATOMIC_RELAXED);
        tame_impl_tell_rate(env, run->instance->module, run->row->name, run->row->arity,
                            run->pace.units_per_ns);
    }
    if (now_ns - run->pace.progress_told_ns >= TAME_IMPL_TELL_NS) {
        const uint64_t total = run->call.impl_total;
        ErlNifPid self;

        run->pace.progress_told_ns = now_ns;
        tame_impl_tell_progress(env, env != NULL ? enif_self(env, &self) : &run->waiter.caller,
                                total > 0 && run->pace.done > total ? total : run->pace.done,
                                total);
    }
}

/* One slice, from start_ns on. */
static inline struct tame_slice tame_impl_slice(struct tame_impl_run *run, uint64_t start_ns,
                                                uint64_t slice_ns)
{
    struct tame_slice slice =
        tame_slice_run(run->row->job->step, run->call.impl_state, start_ns, slice_ns,
                       run->pace.units_per_ns, &run->stop, tame_now_ns);

    run->pace.done += slice.units;
    run->pace.slices++;
    if (slice.used_ns > 0 && (double)slice.units / (double)slice.used_ns > run->pace.best_slice)
        run->pace.best_slice = (double)slice.units / (double)slice.used_ns;
    if (slice.units_per_ns != run->pace.units_per_ns) {
        run->pace.units_per_ns = slice.units_per_ns;
        tame_impl_rate_store(run);
    }
    tame_impl_tell_slice(run, start_ns + slice.used_ns, slice.used_ns);
    return slice;
}

/* ---- off the normal schedulers ---- */

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

    if (now_ns < run->pace.yield_at_ns)
        return now_ns;
    (void)sched_yield();
    back_ns = tame_now_ns();
    away_ns = back_ns - now_ns;
    run->pace.yield_at_ns =
        back_ns + (away_ns > TAME_IMPL_YIELD_EVERY_NS ? away_ns : TAME_IMPL_YIELD_EVERY_NS);
    return back_ns;
}

/* A long slice from start_ns on, in pieces; after each it may yield the core. Ends sooner when the
 * run is stopped. */
static inline enum tame_status tame_impl_long_slice(struct tame_impl_run *run, uint64_t start_ns)
{
    const uint64_t slice_ns = tame_impl_dirty_slice_ns(run);
    const uint64_t piece_ns =
        slice_ns < TAME_IMPL_YIELD_EVERY_NS ? slice_ns : TAME_IMPL_YIELD_EVERY_NS;
    uint64_t now_ns = start_ns;

    do {
        if (tame_impl_slice(run, now_ns, piece_ns).status == TAME_DONE)
            return TAME_DONE;
        now_ns = tame_impl_yield_core(run);
    } while (now_ns - start_ns < slice_ns && !tame_impl_stopped(run));
    return TAME_MORE;
}

#endif
