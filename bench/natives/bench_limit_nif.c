/* bench_limit: what bench/limit.exs calls in a host, in the VM and on a dirty scheduler. */
#include <erl_nif.h>
#include <stdint.h>

#include "tame/clock.h"

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> Term */
    (void)env;
    (void)argc;
    return argv[0];
}

static ERL_NIF_TERM spin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ns) -> ok, as many ns later */
    ErlNifUInt64 ns;
    const uint64_t start_ns = tame_now_ns();

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &ns) || ns > 1000000000u)
        return enif_make_badarg(env);
    while (tame_now_ns() - start_ns < ns)
        ;
    return enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {{"echo", 1, echo, 0},
                                 {"echo_dirty", 1, echo, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"spin", 1, spin, 0}};

ERL_NIF_INIT(bench_limit, functions, NULL, NULL, NULL, NULL)
