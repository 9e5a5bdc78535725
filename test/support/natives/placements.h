/* The rows of a function table that run one job in each placement: auto_nif, inline_nif, ... As
 * test/support/job_probe.ex lists them. */
#define PLACEMENTS(F, arity, job)                          \
    F(auto_nif, arity, job, TAME_AUTO)                     \
    F(inline_nif, arity, job, TAME_INLINE)                 \
    F(yielding_nif, arity, job, TAME_YIELDING)             \
    F(dirty_cpu_nif, arity, job, TAME_DIRTY_CPU)           \
    F(dirty_io_nif, arity, job, TAME_DIRTY_IO)             \
    F(yielding_dirty_nif, arity, job, TAME_YIELDING_DIRTY) \
    F(thread_nif, arity, job, TAME_THREAD)                 \
    F(pool_nif, arity, job, TAME_POOL)
