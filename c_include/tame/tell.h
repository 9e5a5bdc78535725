/* tame/tell.h - what a job library tells of its jobs: how far one is, how fast they are, and
 * that a unit is too long.
 *
 * Part of tame.h. All go by message to the process tame_job_rates of the application tame, and
 * nowhere when that does not run: a library needs nobody to work. A job's progress and a row's rate
 * are told each 100 ms at most, so that it costs nothing that could be measured. */
#ifndef TAME_TELL_H
#define TAME_TELL_H

#include <erl_nif.h>
#include <stdint.h>

#define TAME_IMPL_TELL_NS UINT64_C(100000000)

/* An environment for a message to tame_job_rates, whose pid it gives; NULL when nobody listens, or
 * without memory. Owned by the caller, until tame_impl_tell. `env` is NULL on a thread of ours. */
static inline ErlNifEnv *tame_impl_tell_env(ErlNifEnv *env, ErlNifPid *reports)
{
    ErlNifEnv *message = enif_alloc_env();

    if (message != NULL &&
        !enif_whereis_pid(env, enif_make_atom(message, "tame_job_rates"), reports)) {
        enif_free_env(message);
        message = NULL;
    }
    return message;
}

static inline void tame_impl_tell(ErlNifEnv *env, const ErlNifPid *reports, ErlNifEnv *message,
                                  ERL_NIF_TERM term)
{
    /* A listener that has just ended is no error. */
    (void)enif_send(env, reports, message, term);
    enif_free_env(message);
}

/* {'$tame', progress, Caller, Done, Total}. Without enif_make_pid, whose cast is a warning in C++.
 */
static inline void tame_impl_tell_progress(ErlNifEnv *env, const ErlNifPid *caller, uint64_t done,
                                           uint64_t total)
{
    ErlNifPid reports;
    ErlNifEnv *message = tame_impl_tell_env(env, &reports);

    if (message != NULL)
        tame_impl_tell(env, &reports, message,
                       enif_make_tuple5(message, enif_make_atom(message, "$tame"),
                                        enif_make_atom(message, "progress"), caller->pid,
                                        enif_make_uint64(message, done),
                                        enif_make_uint64(message, total)));
}

/* {'$tame', rate, {Module, Nif, Arity}, UnitsPerMs} */
static inline void tame_impl_tell_rate(ErlNifEnv *env, const char *module, const char *name,
                                       int arity, double units_per_ns)
{
    ErlNifPid reports;
    ErlNifEnv *message = tame_impl_tell_env(env, &reports);

    if (message != NULL)
        tame_impl_tell(env, &reports, message,
                       enif_make_tuple4(message, enif_make_atom(message, "$tame"),
                                        enif_make_atom(message, "rate"),
                                        enif_make_tuple3(message, enif_make_atom(message, module),
                                                         enif_make_atom(message, name),
                                                         enif_make_int(message, arity)),
                                        enif_make_double(message, units_per_ns * 1e6)));
}

/* {'$tame', slow_unit, {Module, Nif, Arity}, Us} */
static inline void tame_impl_tell_unit(ErlNifEnv *env, const char *module, const char *name,
                                       int arity, uint64_t unit_ns)
{
    ErlNifPid reports;
    ErlNifEnv *message = tame_impl_tell_env(env, &reports);

    if (message != NULL)
        tame_impl_tell(env, &reports, message,
                       enif_make_tuple4(message, enif_make_atom(message, "$tame"),
                                        enif_make_atom(message, "slow_unit"),
                                        enif_make_tuple3(message, enif_make_atom(message, module),
                                                         enif_make_atom(message, name),
                                                         enif_make_int(message, arity)),
                                        enif_make_uint64(message, unit_ns / 1000)));
}

#endif
