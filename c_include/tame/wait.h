/* tame/wait.h - a caller that has to wait: what its NIF returns, and who may answer it.
 *
 * Part of tame.h. The NIF returns {'$tame', wait, Ref, Again}. tame:value/3 waits for {Ref, _} and
 * calls the NIF with the arguments Again, which are those of the first call but for the first:
 * {'$tame', Type, Run, First}. Run is the run's resource, which owns what the call has, and First
 * the argument as it was. Again has as many elements as the NIF has arguments, so it does not
 * depend on what the wrapper takes. What the second call does is in tame/again.h. */
#ifndef TAME_WAIT_H
#define TAME_WAIT_H

#include "run.h"

/* What has become of a run that its caller waits for. A thread makes it THERE, or the gate
 * ADMITTED; that gives the run away. The caller, or the thread that learns of the caller's death,
 * makes it TAKEN and owns it then. */
enum tame_impl_answer {
    TAME_IMPL_BY_MESSAGE, /* on a thread, or at the gate; the caller waits for a message */
    TAME_IMPL_BY_SPIN,    /* on a thread; the caller spins, and needs no message */
    TAME_IMPL_THERE,      /* all steps are done; result is not made */
    TAME_IMPL_ADMITTED,   /* has its place at the gate */
    TAME_IMPL_TAKEN
};

/* Takes a run from one state to the next. Returns 0 when it is in another. */
static inline int tame_impl_claim(struct tame_impl_run *run, enum tame_impl_answer from,
                                  enum tame_impl_answer to)
{
    int expected = from;

    return __atomic_compare_exchange_n(&run->waiter.answer, &expected, to, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

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

#endif
