/* tame/finish.h - the author's init, result and cleanup, each called in one place; and what the end
 * of a run gives back.
 *
 * Part of tame.h. */
#ifndef TAME_FINISH_H
#define TAME_FINISH_H

#include "gate.h"

static inline void tame_impl_instance_release(struct tame_impl_instance *instance)
{
    if (__atomic_sub_fetch(&instance->references, 1, __ATOMIC_ACQ_REL) == 0) {
        tame_impl_gates_close(instance->gates);
        if (instance->row_stats != NULL)
            enif_free(instance->row_stats);
        enif_free(instance);
    }
}

static inline void tame_impl_auto_yielding_end(struct tame_impl_run *run)
{
    if (run->holds.auto_yielding)
        __atomic_fetch_sub(&run->instance->auto_yielding, 1, __ATOMIC_RELAXED);
    run->holds.auto_yielding = 0;
}

/* The one place where cleanup is called, and where the run's place becomes free. `env` is that of
 * the NIF or the callback that this is called from; NULL on a thread of ours. */
static inline void tame_impl_cleanup(ErlNifEnv *env, struct tame_impl_run *run)
{
    if (run->holds.initialised && run->row->job->cleanup != NULL)
        run->row->job->cleanup(run->call.impl_state);
    run->holds.initialised = 0;
    tame_impl_auto_yielding_end(run);
    if (run->holds.admitted)
        tame_impl_gate_leave(env, run);
    run->holds.admitted = 0;
}

/* Ends a run that has an environment of its own, whose result nobody wants. */
static inline void tame_impl_drop(ErlNifEnv *env, struct tame_impl_run *run)
{
    tame_impl_cleanup(env, run);
    if (run->waiter.own_env != NULL)
        enif_free_env(run->waiter.own_env);
    run->waiter.own_env = NULL;
}

/* Runs init. Returns 1, or 0 with the error to return in call.impl_error. */
static inline int tame_impl_init(struct tame_impl_run *run)
{
    struct tame_call *call = &run->call;

    run->holds.initialised = 1;
    if (run->row->job->init(call, call->impl_state) == TAME_INIT_OK && call->impl_error == 0)
        return 1;
    tame_impl_cleanup(call->env, run);
    /* No term at all would let the caller wait for ever. With an exception it is what a NIF
     * returns. */
    if (call->impl_error == 0 && !enif_has_pending_exception(call->env, NULL))
        call->impl_error = tame_impl_error(call->env, "init_failed");
    return 0;
}

/* On a scheduler of the caller's, with call.env and call.argv as they are there. */
static inline ERL_NIF_TERM tame_impl_result(struct tame_impl_run *run)
{
    ERL_NIF_TERM result = run->row->job->result(&run->call, run->call.impl_state);

    tame_impl_cleanup(run->call.env, run);
    return result;
}

/* The result of a run that is TAKEN by the calling NIF, and the end of it. */
static inline ERL_NIF_TERM tame_impl_take(ErlNifEnv *env, struct tame_impl_run *run,
                                          const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM result;

    run->call.env = env;
    run->call.argv = argv;
    result = tame_impl_result(run);
    /* After result, which may read the inputs. */
    enif_free_env(run->waiter.own_env);
    run->waiter.own_env = NULL;
    return result;
}

static inline void tame_impl_run_destroy(ErlNifEnv *env, void *object)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    tame_impl_drop(env, run);
    tame_impl_instance_release(run->instance);
}

#endif
