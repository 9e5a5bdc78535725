// The rows of one job in each placement: NAME_auto_nif, NAME_inline_nif, ...
#ifndef EVERYWHERE_HPP
#define EVERYWHERE_HPP

#define EVERYWHERE(JOB, NAME, ARITY, WHAT)                           \
    JOB(NAME##_auto_nif, ARITY, WHAT, TAME_AUTO)                     \
    JOB(NAME##_inline_nif, ARITY, WHAT, TAME_INLINE)                 \
    JOB(NAME##_yielding_nif, ARITY, WHAT, TAME_YIELDING)             \
    JOB(NAME##_dirty_cpu_nif, ARITY, WHAT, TAME_DIRTY_CPU)           \
    JOB(NAME##_dirty_io_nif, ARITY, WHAT, TAME_DIRTY_IO)             \
    JOB(NAME##_yielding_dirty_nif, ARITY, WHAT, TAME_YIELDING_DIRTY) \
    JOB(NAME##_thread_nif, ARITY, WHAT, TAME_THREAD)                 \
    JOB(NAME##_pool_nif, ARITY, WHAT, TAME_POOL)

#endif
