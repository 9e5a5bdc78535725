/* tame/place.h - where a run of `auto` goes: the decisions, and nothing but them.
 *
 * Part of tame.h. */
#ifndef TAME_PLACE_H
#define TAME_PLACE_H

#include "pool.h"

/* What is left takes longer than this: `auto` moves it off the normal schedulers. */
#define TAME_IMPL_MOVE_NS UINT64_C(100000000)

/* Slices measured before `auto` may move a run. The fastest of them counts: one in which the thread
 * lost its core looks slow, and says nothing of the job. */
#define TAME_IMPL_MOVE_SLICES 4

static inline int tame_impl_takes_long(const struct tame_impl_run *run)
{
    return run->row->placement == TAME_AUTO && run->pace.slices >= TAME_IMPL_MOVE_SLICES &&
           run->call.impl_total > run->pace.done &&
           (double)(run->call.impl_total - run->pace.done) >
               run->pace.best_slice * TAME_IMPL_MOVE_NS;
}

/* Runs of `auto` that may share the normal schedulers, for each of them: their slices add up to
 * 10 ms, for which everybody else waits. One that comes on top gets a tenth of a slice, which is
 * enough for a short one, and goes on in the pool; it goes there at once when the rate of its row
 * says that a tenth is not enough. */
#define TAME_IMPL_AUTO_YIELDING_MAX 100
#define TAME_IMPL_CROWDED_SLICES 10

/* A worker is there for each normal scheduler. */
static inline int tame_impl_crowded(const struct tame_impl_run *run)
{
    return run->row->placement == TAME_AUTO && run->call.impl_total > 0 &&
           __atomic_load_n(&run->instance->auto_yielding, __ATOMIC_RELAXED) >=
               TAME_IMPL_AUTO_YIELDING_MAX * (uint32_t)run->instance->pool->workers_max;
}

/* Whether all of the run is known to take longer; of a row that was never measured nothing is. */
static inline int tame_impl_exceeds(const struct tame_impl_run *run, uint64_t ns)
{
    return run->pace.units_per_ns > 0 &&
           (double)run->call.impl_total > run->pace.units_per_ns * (double)ns;
}

#endif
