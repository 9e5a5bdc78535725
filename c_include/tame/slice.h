/* tame/slice.h - how much to do before the clock is read again.
 *
 * Part of tame.h; usable alone. Plain C: no ErlNifEnv, no allocation, no state of its own.
 *
 * A job's step is given a number of units (bytes, rounds, rows: the author's own), does at most
 * that much, and says whether there is more. tame_impl_slice_run calls it until the job is done or
 * the slice's time is spent, with amounts that follow the measured rate, and aims at reading the
 * clock every TAME_CLOCK_CHECK_NS.
 *
 * A rate is a memory, and may be wrong: a call may cost a thousand times as much per unit as the one
 * before. So each call begins with the work of half a microsecond at the rate that is remembered,
 * with one unit when none is, and grows at most fourfold from step to step. And as a step does at
 * most what it is asked for, every measured step bounds the rate from above, the last one too. */
#ifndef TAME_SLICE_H
#define TAME_SLICE_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"

/* What init, step and build return. */
enum tame_status {
    TAME_MORE,  /* there is more to do; from init by tame_ok */
    TAME_DONE,  /* all is done */
    TAME_PART,  /* from tame_emit */
    TAME_FAILED /* from tame_badarg, tame_fail, tame_enomem; after tame_claim gave NULL */
};

struct tame_call;

/* Does at most `units` (1 or more) of the job's work. */
typedef enum tame_status (*tame_step)(struct tame_call *call, void *state, size_t units);

/* The default slices. On a regular scheduler 100 us, not the 1 ms of the erl_nif manual: on today's
 * JIT an Erlang process has timeslices of 4 to 400 us, so a NIF that takes 1 ms is 10 to 250 times
 * greedier than its neighbours; a hop costs 0.3 us, so this costs 0.3 %. tame_job_rates has the
 * Erlang side's copy; its test compares the two. */
#define TAME_SLICE_US 100
#define TAME_DIRTY_SLICE_US 5000

/* How long a step may run until the clock is read. To read it costs 10 to 30 ns, 0.3 % of this;
 * this is a tenth of the default slice. */
#define TAME_CLOCK_CHECK_NS UINT64_C(10000)

/* What the first step of a call is worth, by the rate that is remembered. Shorter than this, a
 * measured time is mostly the clock's own and says nothing of the rate. */
#define TAME_IMPL_NOISE_NS 500

/* What is known of a run's speed; from one slice to the next, and of the rate from call to call. */
struct tame_impl_pace {
    double units_per_ns; /* 0: not measured yet */
    size_t last_units;   /* of the last step; 0: this call has made none */
};

/* When a slice ends. */
struct tame_impl_until {
    uint64_t start_ns; /* a reading of `clock` */
    uint64_t slice_ns;
    uint64_t deadline_ns; /* by the same clock; UINT64_MAX: none */
    uint64_t steps;       /* the most that it makes; 1 or more */
    const int *watched;   /* somebody else may change it, which ends the slice */
    int is;               /* what it is as long as all is well */
    tame_clock clock;
};

/* What one slice did. */
struct tame_impl_slice {
    enum tame_status status; /* of the last step */
    uint64_t used_ns;
    uint64_t units; /* asked of the steps; the last one may have done less */
    uint64_t steps;
    uint64_t longest_unit_ns; /* of the steps of one unit */
};

static inline size_t tame_impl_next_units(const struct tame_impl_pace *pace, uint64_t left_ns)
{
    const uint64_t ns = pace->last_units == 0           ? TAME_IMPL_NOISE_NS
                        : left_ns < TAME_CLOCK_CHECK_NS ? left_ns
                                                        : TAME_CLOCK_CHECK_NS;
    const double wanted = pace->units_per_ns * (double)ns;
    size_t most = SIZE_MAX / 8;

    if (pace->last_units > 0 && pace->last_units < most / 4)
        most = pace->last_units * 4;
    else if (pace->last_units == 0 && pace->units_per_ns == 0)
        most = 1;
    if (pace->units_per_ns == 0 || wanted >= (double)most)
        return most;
    return wanted < 1 ? 1 : (size_t)wanted;
}

/* A step of `units` took `took_ns`. One that did what it was asked for measures the rate. One that
 * may have done less, because it was the last, can only say that the rate is no higher. One too
 * short to be measured says that it is no lower: without it one slow unit, a page that had to be
 * fetched, would leave all later steps too small to be measured ever again. */
static inline void tame_impl_learn(struct tame_impl_pace *pace, size_t units, uint64_t took_ns,
                                   enum tame_status status)
{
    const double rate =
        (double)units / (double)(took_ns < TAME_IMPL_NOISE_NS ? TAME_IMPL_NOISE_NS : took_ns);

    if (status == TAME_MORE)
        pace->units_per_ns =
            took_ns < TAME_IMPL_NOISE_NS && pace->units_per_ns > rate ? pace->units_per_ns : rate;
    else if (took_ns >= TAME_IMPL_NOISE_NS && pace->units_per_ns > rate)
        pace->units_per_ns = rate;
    pace->last_units = units;
}

/* Runs `step` until it says something else than TAME_MORE, or one of `until` is so. At least one
 * step is made, so it lasts one step longer than said. */
static inline struct tame_impl_slice tame_impl_slice_run(tame_step step, struct tame_call *call,
                                                         void *state, struct tame_impl_pace *pace,
                                                         const struct tame_impl_until *until)
{
    const int unknown = pace->units_per_ns == 0;
    uint64_t last = until->start_ns;
    struct tame_impl_slice slice;

    slice.units = 0;
    slice.steps = 0;
    slice.longest_unit_ns = 0;
    do {
        /* Never below zero: a slice that is spent still does a step, of one unit. */
        const uint64_t spent_ns = last - until->start_ns;
        const uint64_t left_ns = spent_ns < until->slice_ns ? until->slice_ns - spent_ns : 0;
        const size_t units = tame_impl_next_units(pace, left_ns);
        uint64_t now;

        slice.status = step(call, state, units);
        now = until->clock();
        tame_impl_learn(pace, units, now - last, slice.status);
        slice.units += units;
        slice.steps++;
        if (units == 1 && now - last > slice.longest_unit_ns)
            slice.longest_unit_ns = now - last;
        last = now;
    } while (slice.status == TAME_MORE && last - until->start_ns < until->slice_ns &&
             last < until->deadline_ns && slice.steps < until->steps &&
             __atomic_load_n(until->watched, __ATOMIC_RELAXED) == until->is);
    slice.used_ns = last - until->start_ns;
    /* A job too short to be measured leaves a cautious guess: the last step may have done less than
     * it was asked, but no less than a quarter of all. The next call then needs one step. */
    if (unknown && pace->units_per_ns == 0 && slice.status == TAME_DONE && slice.used_ns > 0)
        pace->units_per_ns = (double)slice.units / 4 / (double)slice.used_ns;
    /* One that is known, but takes several steps all the same within no measurable time, begins with
     * more next time: all that it was asked for in twice that time is a cautious guess, too. */
    if (!unknown && slice.status == TAME_DONE && slice.steps > 1 &&
        slice.used_ns < TAME_IMPL_NOISE_NS &&
        pace->units_per_ns < (double)slice.units / (2 * TAME_IMPL_NOISE_NS))
        pace->units_per_ns = (double)slice.units / (2 * TAME_IMPL_NOISE_NS);
    return slice;
}

#endif
