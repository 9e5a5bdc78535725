/* The NIFs of Tame.JobLibrary (test/support/job_library.ex): what a real library needs of tame.h,
 * each in the smallest job that shows it. */
#include <tame.h>

#include "placements.h"
#include "job_library/sums.h"
#include "job_library/counts.h"
#include "job_library/parts.h"
#include "job_library/flips.h"
#include "job_library/counters.h"

static const struct tame_resource *const resources[] = {&counter, NULL};

#ifdef KEEPS
#define UPGRADE TAME_UPGRADE_KEEPS
#else
#define UPGRADE TAME_UPGRADE_REFUSED
#endif

#define NAMED(JOB, name, arity, job)                      \
    JOB(name##_auto_nif, arity, job, TAME_AUTO)           \
    JOB(name##_inline_nif, arity, job, TAME_INLINE)       \
    JOB(name##_yielding_nif, arity, job, TAME_YIELDING)   \
    JOB(name##_dirty_cpu_nif, arity, job, TAME_DIRTY_CPU) \
    JOB(name##_dirty_io_nif, arity, job, TAME_DIRTY_IO)   \
    JOB(name##_yielding_dirty_nif, arity, job, TAME_YIELDING_DIRTY)
#define OFF(JOB, name, arity, job)                  \
    JOB(name##_thread_nif, arity, job, TAME_THREAD) \
    JOB(name##_pool_nif, arity, job, TAME_POOL)

#define FUNCTIONS(JOB, NIF)                          \
    NAMED(JOB, sum, 1, sum)                          \
    NAMED(JOB, flip, 1, flip)                        \
    NAMED(JOB, count, 3, count)                      \
    OFF(JOB, count, 3, count)                        \
    JOB(count_terms_nif, 3, count_terms, TAME_AUTO)  \
    NAMED(JOB, cost, 2, cost)                        \
    NAMED(JOB, parts, 2, parts)                      \
    OFF(JOB, parts, 2, parts)                        \
    NAMED(JOB, late, 1, late)                        \
    OFF(JOB, late, 1, late)                          \
    NAMED(JOB, bump, 2, bump)                        \
    OFF(JOB, bump, 2, bump)                          \
    NIF(sum_uncut, 1, sum_uncut, TAME_INLINE)        \
    NIF(cleaned, 0, cleaned, TAME_INLINE)            \
    NIF(new_counter, 0, new_counter, TAME_DIRTY_CPU) \
    NIF(keep_counter, 1, keep_counter, TAME_INLINE)  \
    NIF(read_kept, 1, read_kept, TAME_INLINE)        \
    NIF(read_counter, 1, read_counter, TAME_INLINE)  \
    NIF(state, 0, state_of, TAME_INLINE)

TAME_NIF_INIT(Elixir.Tame.JobLibrary, FUNCTIONS, .resources = resources, .upgrade = UPGRADE,
              .load = load, .unload = unload)
