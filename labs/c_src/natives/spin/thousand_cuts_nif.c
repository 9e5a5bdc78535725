/* tame_thousand_cuts: what a contention lab needs beside tame_spin, written by hand without tame.h.
 *
 *   cut              a CPU kept busy for a time by a plain NIF that charges nothing: a thousand
 *                    such calls in a row, none of them long, hold a scheduler as one long call does
 *   dirty_cpu_clock  a dirty CPU NIF that only reads the clock, so that its caller learns when it
 *                    got its scheduler
 *
 * cut does not follow this project's own advice; it is what others are compared with. */
#include <erl_nif.h>

#include "spin.h"

/* Ten times what a plain NIF is said to be free to take: a cut is to be a short call. */
#define CUT_MAX_US 10000

static uint64_t now_ns(void)
{
    return (uint64_t)enif_monotonic_time(ERL_NIF_NSEC);
}

/* Measured when the library is loaded, about 0.3 ms. */
static uint64_t rounds_per_us;

/* Where the arithmetic goes, so that the compiler has to do it. */
static volatile uint64_t sink;

static ERL_NIF_TERM cut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Us :: 0..10000) -> ok */
    ErlNifUInt64 us;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &us) || us > CUT_MAX_US)
        return enif_make_badarg(env);

    struct spin spin = {.left_us = us, .rounds_per_us = rounds_per_us, .value = 1};
    (void)spin_step(NULL, &spin, SIZE_MAX);
    sink = spin.value;
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM dirty_cpu_clock(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> integer(), as erlang:monotonic_time(nanosecond) */
    (void)argc;
    (void)argv;
    return enif_make_int64(env, enif_monotonic_time(ERL_NIF_NSEC));
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)env;
    (void)priv_data;
    (void)load_info;
    rounds_per_us = spin_measure(now_ns);
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

static ErlNifFunc functions[] = {
    {"cut", 1, cut, 0},
    {"dirty_cpu_clock", 0, dirty_cpu_clock, ERL_NIF_DIRTY_JOB_CPU_BOUND},
};

ERL_NIF_INIT(tame_thousand_cuts, functions, load, NULL, upgrade, NULL)
