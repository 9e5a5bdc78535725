/* tame/finish.h - the author's init, result and cleanup, each called in one place; what the end of a
 * run gives back; and its failure as a term.
 *
 * Part of tame.h. */
#ifndef TAME_FINISH_H
#define TAME_FINISH_H

#include "gate.h"
#include "hold.h"

/* The run takes turns on the regular schedulers from now on, or does so no more. */
static inline void tame_impl_crowd(struct tame_impl_run *run, int is_in)
{
    if (run->holds.crowd == is_in)
        return;
    if (is_in)
        __atomic_fetch_add(&run->instance->crowd, 1, __ATOMIC_RELAXED);
    else
        __atomic_fetch_sub(&run->instance->crowd, 1, __ATOMIC_RELAXED);
    run->holds.crowd = is_in;
}

/* The one place where cleanup is called. */
static inline void tame_impl_cleanup(struct tame_impl_run *run)
{
    if (run->holds.initialised && run->row->job->cleanup != NULL)
        run->row->job->cleanup(run->call.impl_state);
    run->holds.initialised = 0;
}

/* The end of a run: everything that it has is given back. By who owns it, or has just made it ENDED.
 * `env` is that of the NIF or the callback that this is called from; NULL on a thread of ours. */
static inline void tame_impl_end(ErlNifEnv *env, struct tame_impl_run *run)
{
    tame_impl_unexpect(run);
    tame_impl_cleanup(run);
    tame_impl_crowd(run, 0);
    if (run->call.impl_context != NULL)
        tame_impl_context_leave(env, run);
    if (run->holds.place)
        tame_impl_gate_leave(env, run);
    if (run->own_env != NULL)
        enif_free_env(run->own_env);
    run->own_env = NULL;
}

/* The same in the process of the caller, who owns it. One on the stack nobody else knows, and a locked
 * instruction costs 10 ns. */
static inline void tame_impl_end_here(ErlNifEnv *env, struct tame_impl_run *run)
{
    if (run->is_resource)
        (void)tame_impl_move(&run->state, TAME_IMPL_CALLER, TAME_IMPL_ENDED);
    else
        run->state = TAME_IMPL_ENDED;
    tame_impl_end(env, run);
}

/* What the NIF returns for a run that failed; env is the caller's. An argument that is needed in
 * another form: {'$tame', align, {Nif, Number}}. */
static inline ERL_NIF_TERM tame_impl_failure(ErlNifEnv *env, const struct tame_impl_run *run)
{
    const struct tame_call *call = &run->call;
    const ERL_NIF_TERM number = enif_make_int(env, call->impl_number);

    switch (call->impl_failure) {
    case TAME_IMPL_BADARG:
        if (call->impl_number < 1 || call->impl_number > call->argc)
            return tame_impl_error(env, "no_such_argument");
        return enif_make_tuple3(
            env, run->instance->tag, enif_make_atom(env, "badarg"),
            enif_make_tuple2(env, number,
                             enif_make_string(env, call->impl_sentence, ERL_NIF_LATIN1)));
    case TAME_IMPL_ALIGN:
        return enif_make_tuple3(
            env, run->instance->tag, enif_make_atom(env, "align"),
            enif_make_tuple2(env, run->instance->names[run->row->index], number));
    case TAME_IMPL_REASON:
        return tame_impl_error_term(env, enif_make_copy(env, call->impl_term));
    default:
        /* No term at all would let the caller wait for ever. With an exception it is what a NIF
         * returns. */
        return enif_has_pending_exception(env, NULL) ? 0 : tame_impl_error(env, "failed");
    }
}

/* Runs init; TAME_MORE when all is well. */
static inline enum tame_status tame_impl_init(struct tame_impl_run *run)
{
    struct tame_call *call = &run->call;
    enum tame_status status;

    if (run->holds.initialised)
        return TAME_FAILED; /* it has failed already, in a short call */
    run->holds.initialised = 1;
    status = run->row->job->init(call, call->impl_state);
    if (status == TAME_MORE && call->impl_failure == TAME_IMPL_NO_FAILURE)
        run->phase = TAME_IMPL_STEPS;
    else
        status = TAME_FAILED;
    return status;
}

/* A call that has to begin once more, with its turn, is as new. */
static inline void tame_impl_uninit(struct tame_impl_run *run)
{
    tame_impl_cleanup(run);
    memset(run->call.impl_state, 0, run->call.impl_state_size);
    run->call.impl_failure = TAME_IMPL_NO_FAILURE;
    run->call.impl_inputs_len = 0;
    run->call.impl_outputs_len = 0;
}

/* The caller does not want the run any more: it is dead, or says `stop`. The thread that has the run gives
 * it up; what its own process or its thread has, that one ends. Returns whether the caller is being
 * told: then a message comes. */
static inline int tame_impl_abandon(ErlNifEnv *env, struct tame_impl_run *run,
                                    int (*pool_forget)(struct tame_impl_run *))
{
    for (;;) {
        const int state = tame_impl_state(&run->state);

        switch (state) {
        case TAME_IMPL_QUEUED:
            if (!tame_impl_turn_forget(run))
                continue;
            tame_impl_end(env, run);
            return 0;
        case TAME_IMPL_POOLED:
            if (!pool_forget(run))
                continue;
            tame_impl_end(env, run);
            return 0;
        case TAME_IMPL_WORKING:
            if (!tame_impl_move(&run->state, TAME_IMPL_WORKING, TAME_IMPL_STOPPED))
                continue;
            return 0;
        case TAME_IMPL_TURN:
        case TAME_IMPL_DONE:
            if (!tame_impl_move(&run->state, state, TAME_IMPL_ENDED))
                continue;
            tame_impl_end(env, run);
            return 1;
        default: /* CALLER, STOPPED, ENDED */
            return 0;
        }
    }
}

/* The last term that held the run is gone, and so is the queue's and the thread's hold: it is in one
 * of the states that nobody else ends. */
static inline void tame_impl_run_destroy(ErlNifEnv *env, void *object)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    tame_impl_end(env, run);
    tame_impl_run_drop(run);
}

#endif
