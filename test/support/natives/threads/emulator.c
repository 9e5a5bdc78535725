/* The emulator's counters, clocks and figures. */
#include "threads.h"

OP(make_ref)
{
    return enif_make_tuple2(env, enif_make_ref(env), enif_make_ref(env));
}

OP(unique_integer)
{
    return enif_make_list(
        env, 4, enif_make_unique_integer(env, 0),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE | ERL_NIF_UNIQUE_MONOTONIC));
}

static ERL_NIF_TERM a_time(ErlNifEnv *env, ErlNifTime time)
{
    return time == ERL_NIF_TIME_ERROR ? atom(env, "error") : enif_make_int64(env, time);
}

OP(clocks)
{
    return enif_make_tuple2(env, a_time(env, enif_monotonic_time(ERL_NIF_NSEC)),
                            a_time(env, enif_time_offset(ERL_NIF_NSEC)));
}

OP(system_info)
{
    ErlNifSysInfo info;

    enif_system_info(&info, sizeof info);
    return enif_make_tuple2(
        env, enif_make_int(env, info.scheduler_threads),
        enif_make_int64(env, enif_convert_time_unit(1, ERL_NIF_SEC, ERL_NIF_USEC)));
}
