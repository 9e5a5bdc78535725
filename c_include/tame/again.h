/* tame/again.h - the second call of a NIF, by which a call that had to wait goes on.
 *
 * Part of tame.h. A NIF whose caller has to wait returns {'$tame', wait, Ref, Again}. tame:value/3
 * waits for {Ref, _} and calls the NIF with the arguments Again, which are those of the first call
 * but for the first: {'$tame', Type, Run, First}. Run is the run's resource, which owns what the
 * call has, and First the argument as it was. Again has as many elements as the NIF has arguments,
 * so it does not depend on what the wrapper takes.
 *
 * {Ref, done}: all steps are done, and `result` is made in this second call: on the caller's
 * scheduler and in its environment, where a term may be of any size and an exception is one.
 * {Ref, turn}: there is a place at the gate, and the call begins (tame/gate.h).
 *
 * The module may have been loaded anew between the two calls. Then the second comes to another
 * instance of the library than the first, perhaps to another build. So Type names the resource type
 * of the run, by which that instance has the run's own one answer (enif_dynamic_resource_call). */
#ifndef TAME_AGAIN_H
#define TAME_AGAIN_H

#include "run.h"

/* {'$tame', wait, Ref, Again} for a run whose caller waits; the term holds the run. */
static inline ERL_NIF_TERM tame_impl_wait(ErlNifEnv *env, struct tame_impl_run *run,
                                          ERL_NIF_TERM reference, const ERL_NIF_TERM argv[])
{
    const struct tame_impl_instance *instance = run->instance;
    ERL_NIF_TERM again[TAME_MAX_ARGS];

    memcpy(again, argv, sizeof *again * (size_t)run->row->arity);
    again[0] = enif_make_tuple4(env, instance->tag, instance->type_name,
                                enif_make_resource(env, run), argv[0]);
    return enif_make_tuple4(env, instance->tag, enif_make_atom(env, "wait"), reference,
                            enif_make_list_from_array(env, again, (unsigned)run->row->arity));
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
    enif_free_env(run->own_env);
    run->own_env = NULL;
    return result;
}

/* What the second call asks of a run, and its answer. Two builds of a library may meet here: a
 * change of this struct is a new TAME_IMPL_AGAIN. */
#define TAME_IMPL_AGAIN 1

struct tame_impl_again {
    uint32_t version; /* TAME_IMPL_AGAIN of who asks */
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
        enif_compare_pids(&self, &run->caller) != 0)
        return;
    if (tame_impl_turn(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN)) {
        again->result = tame_impl_take(env, run, again->argv);
        again->is = TAME_IMPL_AGAIN_RESULT;
    } else if (tame_impl_turn(run, TAME_IMPL_TURN, TAME_IMPL_TAKEN)) {
        again->is = TAME_IMPL_AGAIN_ADMITTED;
        if (run->instance != enif_priv_data(env)) {
            again->is = TAME_IMPL_AGAIN_BEGIN;
            tame_impl_gate_leave(env, run);
        }
        run->admitted = 0;
    }
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
