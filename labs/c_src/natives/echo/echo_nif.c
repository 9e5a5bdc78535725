/* The latency lab's plain NIFs: each returns the very term it was given, and differs only in where
 * it runs. Written without tame.h, as what jobs are compared with. */
#include <erl_nif.h>

#include "../stateless.h"

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term */
    (void)env;
    (void)argc;
    return argv[0];
}

static ERL_NIF_TERM echo_yielding(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term, after one hop on the same scheduler */
    return enif_schedule_nif(env, "echo_yielding", 0, echo, argc, argv);
}

static ERL_NIF_TERM echo_yielding_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term, after one hop to a dirty CPU scheduler */
    return enif_schedule_nif(env, "echo_yielding_dirty", ERL_NIF_DIRTY_JOB_CPU_BOUND, echo, argc,
                             argv);
}

static ErlNifFunc functions[] = {
    {"echo", 1, echo, 0},
    {"echo_yielding", 1, echo_yielding, 0},
    {"echo_dirty_cpu", 1, echo, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"echo_dirty_io", 1, echo, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"echo_yielding_dirty", 1, echo_yielding_dirty, 0},
};

ERL_NIF_INIT(tame_echo_nif, functions, NULL, NULL, stateless_upgrade, NULL)
