/* tame/enter.h - a call begins: admission, init, and the first slice where the placement says.
 *
 * Part of tame.h. */
#ifndef TAME_ENTER_H
#define TAME_ENTER_H

#include "hop.h"

/* A state larger than this is allocated before the first slice. */
#define TAME_IMPL_STACK_STATE 1024

static inline ERL_NIF_TERM tame_impl_begin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                           const struct tame_impl_row *row, void *state,
                                           int admitted)
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run run;
    struct tame_slice slice;
    ERL_NIF_TERM result;
    int crowded = 0;

    tame_impl_run_begin(&run, row, env, argc, argv, state, start_ns);
    run.holds.admitted = admitted;
    if (row->job->max_running > 0 && !admitted) {
        const ERL_NIF_TERM refused = tame_impl_gate_enter(&run);

        if (!run.holds.admitted)
            return refused;
    }
    if (!tame_impl_init(&run))
        return run.call.impl_error;

    switch (row->placement) {
    case TAME_DIRTY_CPU:
    case TAME_DIRTY_IO:
        return tame_impl_dirty(env, &run);
    case TAME_YIELDING_DIRTY:
        (void)tame_charge(env, tame_now_ns() - start_ns);
        return tame_impl_park(env, &run);
    case TAME_THREAD:
    case TAME_POOL:
        (void)tame_charge(env, tame_now_ns() - start_ns);
        return tame_impl_move_off(env, &run);
    case TAME_INLINE:
        slice = tame_impl_slice(&run, start_ns, UINT64_MAX / 2);
        break;
    case TAME_AUTO:
        crowded = tame_impl_crowded(&run);
        if (crowded &&
            tame_impl_exceeds(&run, tame_impl_slice_ns(&run) / TAME_IMPL_CROWDED_SLICES)) {
            (void)tame_charge(env, tame_now_ns() - start_ns);
            return tame_impl_move_off(env, &run);
        }
        slice = tame_impl_slice(
            &run, start_ns, tame_impl_slice_ns(&run) / (crowded ? TAME_IMPL_CROWDED_SLICES : 1));
        break;
    case TAME_YIELDING:
    default:
        slice = tame_impl_slice(&run, start_ns, tame_impl_slice_ns(&run));
    }
    if (slice.status == TAME_DONE) {
        result = tame_impl_result(&run);
        return tame_impl_pay(env, result, tame_now_ns() - start_ns);
    }
    run.pace.owed_ns = tame_charge(env, slice.used_ns);
    return crowded ? tame_impl_move_off(env, &run) : tame_impl_park(env, &run);
}

/* A call with these arguments; `admitted`: it has its place at the gate already. */
static inline ERL_NIF_TERM tame_impl_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                          const struct tame_impl_row *row, int admitted)
{
    const size_t size = row->job->state_size;

    if (size <= TAME_IMPL_STACK_STATE) {
        union {
            long double align;
            void *pointer;
            unsigned char bytes[TAME_IMPL_STACK_STATE];
        } state;

        memset(state.bytes, 0, size);
        return tame_impl_begin(env, argc, argv, row, state.bytes, admitted);
    } else {
        /* Freed below: a run that goes on has moved out of it. */
        void *memory = enif_alloc(size + TAME_IMPL_ALIGN);
        ERL_NIF_TERM term;

        if (memory == NULL) {
            if (admitted)
                tame_impl_gate_free(env, (struct tame_impl_instance *)enif_priv_data(env), row);
            return tame_impl_raise_enomem(env);
        }
        memset(memory, 0, size + TAME_IMPL_ALIGN);
        term = tame_impl_begin(env, argc, argv, row, tame_impl_align(memory), admitted);
        enif_free(memory);
        return term;
    }
}

#endif
