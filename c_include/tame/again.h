/* tame/again.h - the entry of every NIF, and the second call, by which a call that had to wait goes
 * on.
 *
 * Part of tame.h. tame/wait.h says how the second call comes about, and what its arguments are.
 *
 * {Ref, done}: all steps are done, and `result` is made in this second call: on the caller's
 * scheduler and in its environment, where a term may be of any size and an exception is one.
 * {Ref, admitted}: there is a place at the gate, and the call begins (tame/gate.h).
 *
 * The module may have been loaded anew between the two calls. Then the second comes to another
 * instance of the library than the first, perhaps to another build. So Type names the resource type
 * of the run, by which that instance has the run's own one answer (enif_dynamic_resource_call). */
#ifndef TAME_AGAIN_H
#define TAME_AGAIN_H

#include "enter.h"

/* What the second call asks of a run, and its answer. Two builds of a library may meet here: a
 * change of this struct is a new TAME_IMPL_AGAIN. */
#define TAME_IMPL_AGAIN 1

struct tame_impl_again {
    uint32_t version; /* TAME_IMPL_AGAIN of the build that asks */
    uint32_t argc;
    const ERL_NIF_TERM *argv; /* as in the first call */
    const char *name;         /* of the NIF */

    int is; /* the answer: TAME_IMPL_AGAIN_... */
    ERL_NIF_TERM result;
};

/* None of the others: the run was taken before, is at work, or is another process's. */
#define TAME_IMPL_AGAIN_REFUSED 0
/* It is in `result`. */
#define TAME_IMPL_AGAIN_RESULT 1
/* The call may begin; it has a place at the gate of its instance, or has none and has to ask. */
#define TAME_IMPL_AGAIN_ADMITTED 2
#define TAME_IMPL_AGAIN_BEGIN 3

/* In the instance of the run, which outlives its module as long as it has runs. */
static inline void tame_impl_run_again(ErlNifEnv *env, void *object, void *data)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;
    struct tame_impl_again *again = (struct tame_impl_again *)data;
    ErlNifPid self;

    if (again->version != TAME_IMPL_AGAIN || strcmp(again->name, run->row->name) != 0 ||
        again->argc != (uint32_t)run->row->arity || enif_self(env, &self) == NULL ||
        enif_compare_pids(&self, &run->waiter.caller) != 0)
        return;
    if (tame_impl_claim(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN)) {
        again->result = tame_impl_take(env, run, again->argv);
        again->is = TAME_IMPL_AGAIN_RESULT;
    } else if (tame_impl_claim(run, TAME_IMPL_ADMITTED, TAME_IMPL_TAKEN)) {
        again->is = TAME_IMPL_AGAIN_ADMITTED;
        if (run->instance != enif_priv_data(env)) {
            again->is = TAME_IMPL_AGAIN_BEGIN;
            tame_impl_gate_leave(env, run);
        }
        run->holds.admitted = 0;
    }
}

/* The caller of a run that is off the schedulers, or waits for them or at the gate, is dead. A run
 * whose steps are done ends here, because somebody else may still hold the term that names it. */
static inline void tame_impl_run_down(ErlNifEnv *env, void *object, ErlNifPid *pid,
                                      ErlNifMonitor *monitor)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    (void)pid;
    (void)monitor;
    /* The thread makes it THERE and then reads stop; this writes stop and then reads whether it is
     * THERE. In one order for all, at least one of them sees what the other did. */
    __atomic_store_n(&run->stop, 1, __ATOMIC_SEQ_CST);
    tame_impl_gate_forget(run);
    tame_impl_pool_forget(run);
    if (tame_impl_claim(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN) ||
        tame_impl_claim(run, TAME_IMPL_ADMITTED, TAME_IMPL_TAKEN))
        tame_impl_drop(env, run);
}

static inline ERL_NIF_TERM tame_impl_enter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                           const struct tame_impl_row *row)
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);
    struct tame_impl_again again;
    ERL_NIF_TERM first[TAME_MAX_ARGS];
    const ERL_NIF_TERM *held;
    uint64_t start_ns;
    int arity;

    if (argc == 0 || !enif_get_tuple(env, argv[0], &arity, &held) || arity != 4 ||
        !enif_is_identical(held[0], instance->tag))
        return tame_impl_call(env, argc, argv, row, 0);

    start_ns = tame_now_ns();
    memset(&again, 0, sizeof again);
    memcpy(first, argv, sizeof *first * (size_t)argc);
    first[0] = held[3];
    again.version = TAME_IMPL_AGAIN;
    again.argc = (uint32_t)argc;
    again.argv = first;
    again.name = row->name;
    if (enif_dynamic_resource_call(env, instance->module_name, held[1], held[2], &again) != 0 ||
        again.is == TAME_IMPL_AGAIN_REFUSED)
        return enif_make_badarg(env);
    if (again.is == TAME_IMPL_AGAIN_RESULT)
        return tame_impl_pay(env, again.result, tame_now_ns() - start_ns);
    return tame_impl_call(env, argc, first, row, again.is == TAME_IMPL_AGAIN_ADMITTED);
}

#endif
