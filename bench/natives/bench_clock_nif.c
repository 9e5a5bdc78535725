/* bench_clock: a clock that ticks more often than Erlang's timers do. */
#include <erl_nif.h>
#include <stdint.h>
#include <time.h>

#include "tame/clock.h"

struct clock {
    ErlNifPid pid;
    uint64_t period_ns;
    uint32_t ticks;
};

/* Its messages are the atom tick, at planned times: one that is late is followed sooner. */
static void *tick(void *argument)
{
    struct clock clock = *(struct clock *)argument;
    uint64_t next_ns = tame_now_ns();
    ErlNifEnv *env = enif_alloc_env(); /* this thread's, to its end */

    enif_free(argument);
    for (uint32_t i = 0; i < clock.ticks; i++) {
        next_ns += clock.period_ns;

        for (uint64_t now = tame_now_ns(); now < next_ns; now = tame_now_ns()) {
            const uint64_t left_ns = next_ns - now;
            const struct timespec left = {(time_t)(left_ns / 1000000000u),
                                          (long)(left_ns % 1000000000u)};

            (void)nanosleep(&left, NULL);
        }
        if (!enif_send(NULL, &clock.pid, env, enif_make_atom(env, "tick")))
            break;
        enif_clear_env(env);
    }
    enif_free_env(env);
    return NULL;
}

static ERL_NIF_TERM ticks(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (PeriodNs, Ticks) -> ok, and Ticks messages `tick` to the caller. The library may not be unloaded
     * before the last. */
    struct clock *clock = enif_alloc(sizeof *clock); /* the thread's, once there is one */
    ErlNifUInt64 period_ns;
    ErlNifTid thread;

    (void)argc;
    if (clock == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    if (!enif_get_uint64(env, argv[0], &period_ns) || period_ns > 10000000000u ||
        !enif_get_uint(env, argv[1], &clock->ticks)) {
        enif_free(clock);
        return enif_make_badarg(env);
    }
    clock->period_ns = period_ns;
    enif_self(env, &clock->pid);
    if (enif_thread_create("bench_clock", &thread, tick, clock, NULL) != 0) {
        enif_free(clock);
        return enif_raise_exception(env, enif_make_atom(env, "system_limit"));
    }
    return enif_make_atom(env, "ok");
}

static ErlNifFunc functions[] = {{"ticks", 2, ticks, 0}};

ERL_NIF_INIT(bench_clock, functions, NULL, NULL, NULL, NULL)
