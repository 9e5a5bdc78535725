/* tame/short.h - a call that is done in one step.
 *
 * Part of tame.h; for regular schedulers. To know how long a call took costs two readings of the
 * counter, and a run that may go on later or elsewhere has much to remember. A call of less than a
 * microsecond needs neither, where the calls of its row are known to be so short. It begins as nothing
 * but a struct tame_call; if it is not done in its first step, it becomes a run then.
 *
 * One call in 8 to 15 of a thread is measured. It tells what the others are charged. When it took too
 * long, or the average of the last few did, all calls of its row are measured again.
 *
 * One that is not measured may be long. So the counter is read once at its end: when much time has
 * passed since the call before, the next calls on the thread are measured, each of them. So one long
 * call in TAME_IMPL_SHORT_WARY + 1 passes for a short one at most, and the first step of a call is as
 * long as half a microsecond of work at the rate of the row takes. Where the counter is not steady
 * nobody sees it: then a measured call does. */
#ifndef TAME_SHORT_H
#define TAME_SHORT_H

#include "pay.h"
#include "work.h"

/* The calls of a row are short as long as those that are done in one step take no more on average. */
#define TAME_IMPL_SHORT_NS UINT64_C(2000)

/* After a call that is measured, this many calls of the thread are not, up to twice as many less one. */
#define TAME_IMPL_SHORT_UNREAD 8

/* The calls of a thread that are measured, one after the other, when one that was not has ended late:
 * after a 64th of a millisecond. */
#define TAME_IMPL_SHORT_WARY 16
#define TAME_IMPL_SHORT_LATE 64

/* A call that was done in one step took that long. The average is that of about the last eight. */
static inline void tame_impl_short_learn(struct tame_impl_row_stats *stats, uint64_t used_ns)
{
    const uint64_t before_ns = __atomic_load_n(&stats->short_ns, __ATOMIC_RELAXED);
    const uint64_t short_ns = before_ns == 0 ? used_ns : before_ns - before_ns / 8 + used_ns / 8;

    __atomic_store_n(&stats->short_ns, short_ns > 0 ? short_ns : 1, __ATOMIC_RELAXED);
}

/* A run has ended, and all of it was measured: whether it could have been a short call. If it took
 * several steps and no measurable time, the next begins with more, as tame_impl_slice_run has it. */
static inline void tame_impl_short_ended(struct tame_impl_run *run, uint64_t used_ns)
{
    const struct tame_job *job = run->row->job;
    const double rate = (double)run->done / (2 * TAME_IMPL_NOISE_NS);

    if (run->unread || run->phase != TAME_IMPL_BUILD || run->is_resource ||
        run->row->placement > TAME_YIELDING || job->max_running > 0 || job->build != NULL)
        return;
    if (run->steps == 1) {
        tame_impl_short_learn(tame_impl_stats(run), used_ns);
    } else if (used_ns < TAME_IMPL_NOISE_NS && run->pace.units_per_ns < rate) {
        run->pace.units_per_ns = rate;
        tame_impl_rate_store(run);
    }
}

/* When the call begins, if it is measured; else 0. Which is, comes from the time: a pattern of calls
 * must not hide some of them for ever. */
static inline uint64_t tame_impl_short_begin(struct tame_impl_mine *mine)
{
    uint64_t start_ns;

    if (mine->unread > 0) {
        mine->unread--;
        return 0;
    }
    start_ns = tame_impl_meter_begin();
    if (mine->wary > 0)
        mine->wary--;
    else
        mine->unread =
            TAME_IMPL_SHORT_UNREAD +
            (uint32_t)(start_ns * UINT64_C(0x9e3779b97f4a7c15) >> 32) % TAME_IMPL_SHORT_UNREAD;
    return start_ns;
}

/* A call has ended, or the first step of one that goes on. Much time since the end before it means that
 * this call was long, or that the thread did something else: the two are not told apart. */
static inline void tame_impl_short_ends(struct tame_impl_mine *mine, int measured)
{
    const uint64_t ms = __atomic_load_n(&tame_impl_cycles.good_for, __ATOMIC_RELAXED);
    const uint64_t ticks = tame_impl_ticks(), since = ticks - mine->short_ticks;

    mine->short_ticks = ticks;
    if (measured || since <= ms / TAME_IMPL_SHORT_LATE || ms == 0)
        return;
    mine->unread = 0;
    mine->wary = TAME_IMPL_SHORT_WARY;
}

/* The whole call bounds the rate of its only step, well enough where that was no short one. */
static __attribute__((noinline, unused)) void
tame_impl_short_measured(struct tame_impl_run *run, uint64_t units, uint64_t used_ns)
{
    tame_impl_short_learn(tame_impl_stats(run), used_ns);
    if (used_ns <= 4 * TAME_IMPL_NOISE_NS)
        return;
    run->pace.units_per_ns = tame_impl_rate(run);
    tame_impl_learn(&run->pace, (size_t)units, used_ns, TAME_DONE);
    tame_impl_rate_store(run);
}

/* The call is done: what the NIF returns. It pays for the time that it took, or, when that was not
 * measured, for what such a call takes. */
static inline ERL_NIF_TERM tame_impl_short_finish(ErlNifEnv *env, struct tame_impl_run *run,
                                                  struct tame_impl_mine *mine, uint64_t units,
                                                  uint64_t start_ns, uint64_t used_ns)
{
    const struct tame_job *job = run->row->job;
    struct tame_call *call = &run->call;
    ERL_NIF_TERM term = job->result(call, call->impl_state);

    if (call->impl_failure != TAME_IMPL_NO_FAILURE)
        term = tame_impl_failure(env, run);
    if (job->cleanup != NULL)
        job->cleanup(call->impl_state);
    if (call->impl_context != NULL)
        tame_impl_context_leave(env, run);
    if (start_ns > 0) {
        used_ns = tame_impl_meter_used_ns(start_ns, tame_impl_meter_now_ns());
        tame_impl_short_measured(run, units, used_ns);
    }
    tame_impl_short_ends(mine, start_ns > 0);
    mine->owed_ns += used_ns;
    return mine->owed_ns < TAME_IMPL_PERCENT_NS ? term : tame_impl_pay(env, term, 0);
}

/* A short call was not done in its first step: the run that it is from now on. */
static __attribute__((noinline, unused)) void tame_impl_short_goes_on(struct tame_impl_run *run,
                                                                      enum tame_status status,
                                                                      uint64_t units,
                                                                      uint64_t start_ns)
{
    const int quick = !run->unread && tame_impl_meter_now_ns() - start_ns < TAME_IMPL_NOISE_NS;

    run->phase = TAME_IMPL_STEPS;
    run->done = units;
    run->steps = 1;
    /* Where nobody knows how long that step took, the next is a quarter of it: it may have been long. */
    run->pace.last_units = (size_t)(quick ? units : units < 16 ? 1 : units / 16);
    if (status == TAME_DONE)
        tame_impl_next_phase(run); /* outputs are to be gathered */
    else if (status == TAME_FAILED)
        run->phase = TAME_IMPL_FAILS;
}

/* Begins a call, after tame_impl_call_begin. TAME_DONE: *term is what the NIF returns.
 * Else it is a run that goes on from *start_ns, where its phase says; TAME_PART: with a part. */
static inline enum tame_status tame_impl_short(ErlNifEnv *env, struct tame_impl_run *run,
                                               uint64_t *start_ns, ERL_NIF_TERM *term)
{
    const struct tame_impl_row_stats *stats = tame_impl_stats(run);
    const uint64_t short_ns = __atomic_load_n(&stats->short_ns, __ATOMIC_RELAXED);
    const uint64_t units = __atomic_load_n(&stats->first_units, __ATOMIC_RELAXED);
    const struct tame_job *job = run->row->job;
    struct tame_call *call = &run->call;
    enum tame_status status;
    struct tame_impl_mine *mine;
    int begins, unread;

    if (short_ns == 0 || short_ns > TAME_IMPL_SHORT_NS || units == 0) {
        *start_ns = tame_impl_meter_begin();
        tame_impl_run_begin(run, *start_ns, UINT64_MAX);
        return TAME_MORE;
    }
    mine = &tame_impl_mine;
    *start_ns = tame_impl_short_begin(mine);
    begins = job->init(call, call->impl_state) == TAME_MORE &&
             call->impl_failure == TAME_IMPL_NO_FAILURE;
    status = begins ? job->step(call, call->impl_state, (size_t)units) : TAME_FAILED;
    status = tame_impl_stepped(call, status);
    if (status == TAME_DONE && !tame_impl_scattered(call)) {
        *term = tame_impl_short_finish(env, run, mine, units, *start_ns, short_ns);
        return TAME_DONE;
    }
    unread = *start_ns == 0;
    tame_impl_short_ends(mine, !unread);
    if (unread)
        *start_ns = tame_impl_meter_begin();
    tame_impl_run_begin(run, *start_ns, UINT64_MAX);
    run->holds.initialised = 1;
    run->unread = unread;
    run->owed_ns = unread ? short_ns : 0;
    if (begins)
        tame_impl_short_goes_on(run, status, units, *start_ns);
    return status == TAME_PART ? TAME_PART : TAME_MORE;
}

#endif
