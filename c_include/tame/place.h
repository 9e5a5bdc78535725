/* tame/place.h - where a run goes on, for how long, and how many threads there are: the decisions,
 * and nothing but them.
 *
 * Part of tame.h; usable alone. Plain C: functions of facts, without a clock. */
#ifndef TAME_PLACE_H
#define TAME_PLACE_H

#include <stdint.h>

/* ---- on regular schedulers ---- */

/* `crowd` runs of the library take turns on `schedulers` schedulers. A process that waits for one of
 * them waits for a slice of each run in front of it; so slices shrink as the crowd grows, down to
 * what makes a hop (0.3 us) still cheap. */
#define TAME_IMPL_SLICE_MIN_NS UINT64_C(15000)

static inline uint64_t tame_impl_place_slice_ns(uint64_t slice_ns, uint32_t crowd,
                                                uint32_t schedulers)
{
    const uint64_t least_ns = slice_ns < TAME_IMPL_SLICE_MIN_NS ? slice_ns : TAME_IMPL_SLICE_MIN_NS;
    const uint64_t share_ns = crowd <= schedulers ? slice_ns : slice_ns * schedulers / crowd;

    return share_ns < least_ns ? least_ns : share_ns;
}

/* What a run of `auto` may use of the regular schedulers' time: 100 ms for one alone, and in a crowd
 * a share of that. */
#define TAME_IMPL_AUTO_NS UINT64_C(100000000)

static inline uint64_t tame_impl_place_budget_ns(uint32_t crowd, uint32_t schedulers)
{
    return crowd <= schedulers ? TAME_IMPL_AUTO_NS : TAME_IMPL_AUTO_NS * schedulers / crowd;
}

/* The one rule of `auto`, asked after each slice: a run that has used its budget leaves the regular
 * schedulers, and so does one that is known to need more than that. `used_ns` brought `done` of
 * `total` units; total 0 is not known, and less than a hundredth of the budget says nothing yet. */
static inline int tame_impl_place_leaves(uint64_t used_ns, uint64_t done, uint64_t total,
                                         uint64_t budget_ns)
{
    if (used_ns >= budget_ns)
        return 1;
    return total > done && used_ns >= budget_ns / 100 &&
           (double)total / (double)done * (double)used_ns > (double)budget_ns;
}

/* ---- on dirty schedulers ---- */

/* Whether the thread lets others that wake have its core (tame/os.h): not shortly before a deadline,
 * because it has to have a core to see that it has passed. */
#define TAME_IMPL_NEAR_NS UINT64_C(20000000)

static inline int tame_impl_place_gives_core(uint64_t now_ns, uint64_t deadline_ns)
{
    return deadline_ns > now_ns && deadline_ns - now_ns > TAME_IMPL_NEAR_NS;
}

/* ---- in the pool ---- */

/* A run that has used its share gives way to those that wait: it goes on behind those that have not
 * begun, and then in turns with others that gave way. Its turns are a quantum where young ones wait. */
#define TAME_IMPL_SHARE_NS UINT64_C(10000000)
#define TAME_IMPL_QUANTUM_NS UINT64_C(2000000)

/* Whether a run that has worked for `turn_ns` in this turn gives way. `is_old`: it gave way before. */
static inline int tame_impl_place_gives_way(uint64_t turn_ns, int is_old, uint32_t young,
                                            uint32_t old)
{
    return (young > 0 && is_old && turn_ns >= TAME_IMPL_QUANTUM_NS) ||
           (young + old > 0 && turn_ns >= TAME_IMPL_SHARE_NS);
}

/* Which queue a worker takes from next: the young ones', but after that many of them in a row one of
 * the old ones, so that these do not wait for ever. */
#define TAME_IMPL_YOUNG_IN_A_ROW 16

static inline int tame_impl_place_takes_old(uint32_t young, uint32_t old, uint32_t young_in_a_row)
{
    return old > 0 && (young == 0 || young_in_a_row >= TAME_IMPL_YOUNG_IN_A_ROW);
}

/* ---- threads ---- */

/* As many workers as schedulers are online, and no more than the CPUs that the system lets us use. A
 * fact that is not known is 0. */
static inline uint32_t tame_impl_place_workers(uint32_t schedulers, uint32_t online, uint32_t cpus)
{
    uint32_t workers = online > 0 && online < schedulers ? online : schedulers;

    if (cpus > 0 && cpus < workers)
        workers = cpus;
    return workers > 0 ? workers : 1;
}

#endif
