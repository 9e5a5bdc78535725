/* What needs a process or a library: timeslices, the call's own process, the private data,
 * enif_schedule_nif, exceptions. */
#include "threads.h"

OP(consume_timeslice)
{
    return enif_make_int(env, enif_consume_timeslice(env, 1));
}

OP(current_alive)
{
    return enif_make_int(env, enif_is_current_process_alive(env));
}

OP(priv_data)
{
    return atom(env, enif_priv_data(env) == &plain_type ? "found" : "other");
}

static ERL_NIF_TERM next(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return atom(env, "scheduled");
}

OP(schedule_nif)
{
    return enif_schedule_nif(env, "next", 0, next, 1, &term);
}

/* An exception sent as a term, as a result that was made on an own thread would be. */
OP(raise_and_send)
{
    ErlNifEnv *message = enif_alloc_env();
    const ERL_NIF_TERM raised = enif_raise_exception(message, atom(message, "reason"));

    (void)enif_send(caller, pid, NULL, enif_make_tuple2(env, atom(env, "message"), raised));
    enif_free_env(message);
    return atom(env, "sent");
}
