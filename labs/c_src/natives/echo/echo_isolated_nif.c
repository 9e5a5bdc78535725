/* tame_echo_isolated: a NIF that returns its argument, as any library has it. It knows nothing of
 * hosts; the latency lab has it run in one. */
#include <erl_nif.h>

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term */
    (void)env;
    (void)argc;
    return argv[0];
}

static ErlNifFunc functions[] = {{"echo", 1, echo, 0}};

ERL_NIF_INIT(tame_echo_isolated, functions, NULL, NULL, NULL, NULL)
