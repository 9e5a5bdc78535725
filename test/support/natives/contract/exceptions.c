/* Exceptions. */
#include "contract.h"

/* "Makes a badarg exception to be returned from a NIF"; and "Returns true if a pending exception is
 * associated with env." */
CASE(badarg)
{
    term reason = 0;
    int before = enif_has_pending_exception(env, &reason);
    term raised = enif_make_badarg(env);
    int after = enif_has_pending_exception(env, NULL);
    int again = enif_has_pending_exception(env, &reason);
    if (before || !after || !again || !enif_is_exception(env, raised) ||
        !enif_is_identical(reason, enif_make_atom(env, "badarg")))
        return enif_make_atom(env, "wrong");
    return raised;
}

static int was_exception[2];

static term say_what_was(ErlNifEnv *env, int argc, const term argv[])
{
    (void)argc, (void)argv;
    return enif_make_tuple2(env, enif_make_int(env, was_exception[0]),
                            enif_make_int(env, was_exception[1]));
}

/* "Returns true if t is an exception": what enif_schedule_nif returns is none. */
CASE(scheduled_is_no_exception)
{
    term scheduled = enif_schedule_nif(env, "say_what_was", 0, say_what_was, argc, argv);

    was_exception[0] = enif_is_exception(env, scheduled) != 0;
    was_exception[1] = enif_has_pending_exception(env, NULL) != 0;
    return scheduled;
}

/* "If schedule_nif fails, it returns badarg": then it is one. */
CASE(not_scheduled_is_exception)
{
    term scheduled = enif_schedule_nif(env, "no such flag", 99, say_what_was, argc, argv);

    was_exception[0] = enif_is_exception(env, scheduled) != 0;
    was_exception[1] = enif_has_pending_exception(env, NULL) != 0;
    return scheduled;
}

CASE(was_exception_)
{
    return say_what_was(env, argc, argv);
}

/* "Creates an error exception with the term reason to be returned from a NIF." */
CASE(raise_reason)
{
    return enif_raise_exception(env, IN);
}

/* A pending exception wins, whatever the NIF returns. */
CASE(raise_and_return_another)
{
    enif_raise_exception(env, IN);
    return enif_make_atom(env, "not_this");
}
