/* tame/run.h - who owns a run: its states, and the moves between them.
 *
 * Part of tame.h; usable alone. Plain C. A run is one call of a job. At each moment one party may
 * touch it, and the state says which. Every change of hands is a move of the table below, made by
 * one compare-and-swap; the party that makes the move owns the run afterwards, or has given it away.
 * docs/architecture.md draws the table. */
#ifndef TAME_RUN_H
#define TAME_RUN_H

#include <stdint.h>

enum tame_impl_state {
    TAME_IMPL_CALLER,  /* the calling process: in a NIF, in the arguments of a hop, in a term */
    TAME_IMPL_QUEUED,  /* the queue of a gate or of a context */
    TAME_IMPL_TURN,    /* nobody: it has its turn, and the caller is being told */
    TAME_IMPL_POOLED,  /* the pool's queue, or a thread that is being made */
    TAME_IMPL_WORKING, /* a thread of ours */
    TAME_IMPL_STOPPED, /* a thread of ours, which ends it after the step: nobody wants the result */
    TAME_IMPL_DONE,    /* nobody: the thread is through with it, and the caller is being told */
    TAME_IMPL_ENDED    /* nobody: cleaned up */
};

#define TAME_IMPL_TO(state) (UINT32_C(1) << (state))

/* The moves that there are, by the state they begin in. */
static inline uint32_t tame_impl_moves(int from)
{
    switch (from) {
    case TAME_IMPL_CALLER: /* the caller's process moves, or the collection of the last term */
        return TAME_IMPL_TO(TAME_IMPL_QUEUED) | TAME_IMPL_TO(TAME_IMPL_POOLED) |
               TAME_IMPL_TO(TAME_IMPL_ENDED);
    case TAME_IMPL_QUEUED: /* who leaves the gate or the context; the caller's end or its `stop` */
        return TAME_IMPL_TO(TAME_IMPL_TURN) | TAME_IMPL_TO(TAME_IMPL_ENDED);
    case TAME_IMPL_TURN: /* the caller; the caller's end or its `stop` */
    case TAME_IMPL_DONE:
        return TAME_IMPL_TO(TAME_IMPL_CALLER) | TAME_IMPL_TO(TAME_IMPL_ENDED);
    case TAME_IMPL_POOLED: /* a thread, or no thread could be made; the caller's end or its `stop` */
        return TAME_IMPL_TO(TAME_IMPL_WORKING) | TAME_IMPL_TO(TAME_IMPL_CALLER) |
               TAME_IMPL_TO(TAME_IMPL_ENDED);
    case TAME_IMPL_WORKING: /* the thread, which may give way; the caller's end or its `stop` */
        return TAME_IMPL_TO(TAME_IMPL_DONE) | TAME_IMPL_TO(TAME_IMPL_POOLED) |
               TAME_IMPL_TO(TAME_IMPL_STOPPED);
    case TAME_IMPL_STOPPED: /* the thread */
        return TAME_IMPL_TO(TAME_IMPL_ENDED);
    default:
        return 0;
    }
}

static inline int tame_impl_state(const int *state)
{
    return __atomic_load_n(state, __ATOMIC_SEQ_CST);
}

/* Moves a run. Returns 0 when it was in another state than `from`: then somebody else was first. A
 * move that is not in the table is a fault of tame.h, and ends the VM here rather than later. */
static inline int tame_impl_move(int *state, int from, int to)
{
    int expected = from;

    if ((tame_impl_moves(from) & TAME_IMPL_TO(to)) == 0)
        __builtin_trap();
    return __atomic_compare_exchange_n(state, &expected, to, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

#endif
