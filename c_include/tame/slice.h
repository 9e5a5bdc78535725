/* tame/slice.h - how much to do before the clock is read again.
 *
 * Part of tame.h; usable alone. Plain C: no ErlNifEnv, no allocation, no state of its own.
 *
 * A job's step is given a number of units (bytes, rounds, rows: the author's own), does at most
 * that much, and says whether there is more. tame_slice_run calls it until the job is done or the
 * slice's time is spent, with amounts that follow the measured rate: it starts with one unit when
 * nothing is known, grows at most fourfold from one step to the next, and aims at reading the clock
 * every TAME_CLOCK_CHECK_NS. So a rate that suddenly falls (fresh memory that has to be paged in, a
 * colder cache) costs one step of the wrong size and no more. */
#ifndef TAME_SLICE_H
#define TAME_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"

/* What a step returns. */
enum tame_status { TAME_MORE = 0, TAME_DONE = 1 };

/* Does at most `units` (1 or more) of the job's work. */
typedef enum tame_status (*tame_step)(void *state, size_t units);

/* The default slices. On a regular scheduler 100 us, not the 1 ms of the erl_nif manual: on today's
 * JIT an Erlang process has timeslices of 4 to 400 us, so a NIF that takes 1 ms is 10 to 250 times
 * greedier than its neighbours; a hop costs 0.3 us, so this costs 0.3 %. tame_job_rates has the
 * Erlang side's copy; its test compares the two. */
#define TAME_SLICE_US 100
#define TAME_DIRTY_SLICE_US 5000

/* How long a step may run until the clock is read. To read it costs about 30 ns, 0.3 % of this;
 * this is a tenth of the default slice. */
#define TAME_CLOCK_CHECK_NS UINT64_C(10000)

/* Shorter than this, a measured time is mostly the clock's own and says nothing of the rate. */
#define TAME_IMPL_NOISE_NS 500

/* The rate after a step that did `units` in `took_ns`, where `known` was the rate before it. A step
 * too short to be measured still says that the job is no slower than that: without it one slow
 * unit, a page that had to be fetched, would leave all later steps too small to be measured ever
 * again. */
static inline double tame_impl_step_rate(size_t units, uint64_t took_ns, double known)
{
    const double rate =
        (double)units / (double)(took_ns < TAME_IMPL_NOISE_NS ? TAME_IMPL_NOISE_NS : took_ns);

    return took_ns < TAME_IMPL_NOISE_NS && known > rate ? known : rate;
}

/* What one slice did. */
struct tame_slice {
    enum tame_status status;
    uint64_t used_ns;
    size_t units;        /* asked of the steps; the last one may have done less */
    double units_per_ns; /* the rate to begin the next slice with; 0: nothing is known */
};

/* Runs `step` until it is done, `slice_ns` have passed since `start_ns` (a reading of `clock`), or
 * somebody sets `*stop`. `units_per_ns` is the rate known before, 0 when none is. */
static inline struct tame_slice tame_slice_run(tame_step step, void *state, uint64_t start_ns,
                                               uint64_t slice_ns, double units_per_ns,
                                               const int *stop, tame_clock clock)
{
    uint64_t last = start_ns;
    struct tame_slice slice;
    size_t most = units_per_ns > 0 ? SIZE_MAX / 8 : 1; /* fourfold of the step before */

    slice.units = 0;
    slice.units_per_ns = units_per_ns;
    for (;;) {
        /* Never below zero: a slice that is spent still does a step, of one unit. */
        const uint64_t spent_ns = last - start_ns;
        const uint64_t left_ns = spent_ns < slice_ns ? slice_ns - spent_ns : 0;
        const double wanted =
            slice.units_per_ns *
            (double)(left_ns < TAME_CLOCK_CHECK_NS ? left_ns : TAME_CLOCK_CHECK_NS);
        size_t units = most;
        uint64_t now;

        if (slice.units_per_ns > 0 && wanted < (double)most)
            units = wanted < 1 ? 1 : (size_t)wanted;

        slice.status = step(state, units);
        now = clock();
        slice.units += units;
        if (slice.status == TAME_MORE)
            slice.units_per_ns = tame_impl_step_rate(units, now - last, slice.units_per_ns);
        most = units < SIZE_MAX / 8 ? units * 4 : units;
        last = now;
        if (slice.status == TAME_DONE || now - start_ns >= slice_ns ||
            __atomic_load_n(stop, __ATOMIC_RELAXED))
            break;
    }
    slice.used_ns = last - start_ns;
    /* A job too short to be measured leaves a cautious guess: the last step may have done less than
     * it was asked, but no less than a quarter of all. The next call then needs one step. */
    if (slice.units_per_ns == 0 && slice.status == TAME_DONE && slice.used_ns > 0)
        slice.units_per_ns = (double)slice.units / 4 / (double)slice.used_ns;
    return slice;
}

#endif
