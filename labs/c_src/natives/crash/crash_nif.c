/* tame_crash: a library as any other, with a function that has a fault in it. The isolation lab runs it in
 * a host. */
#include <erl_nif.h>

/* Volatile, so that the compiler reads from it as it stands. */
static const int *volatile nowhere = NULL;

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term */
    (void)env;
    (void)argc;
    return argv[0];
}

static ERL_NIF_TERM crash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> never: the read ends the OS process by SIGSEGV */
    (void)argc;
    (void)argv;
    return enif_make_int(env, *nowhere);
}

static ErlNifFunc functions[] = {{"echo", 1, echo, 0}, {"crash", 0, crash, 0}};

ERL_NIF_INIT(tame_crash, functions, NULL, NULL, NULL, NULL)
