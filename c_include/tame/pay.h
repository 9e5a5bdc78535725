/* tame/pay.h - a result is returned when its time is paid for.
 *
 * Part of tame.h; for normal schedulers. */
#ifndef TAME_PAY_H
#define TAME_PAY_H

#include "charge.h"
#include "hold.h"

/* (Result, OwedNs, Hold) -> Result, after as many timeslices as it takes to pay for a call
 * that took longer than its own: the neighbours get theirs meanwhile. */
static inline ERL_NIF_TERM tame_impl_settle(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 owed_ns;

    if (!enif_get_uint64(env, argv[1], &owed_ns))
        return enif_make_badarg(env);
    owed_ns = tame_charge(env, owed_ns);
    if (owed_ns == 0)
        return argv[0];

    const ERL_NIF_TERM next[] = {argv[0], enif_make_uint64(env, owed_ns), argv[2]};

    return enif_schedule_nif(env, "tame_settle", 0, tame_impl_settle, argc, next);
}

/* The result, once it is paid for. The hops carry a run that does nothing but hold the library: a
 * purge can miss a process that is parked in a hop, and the VM keeps only a library that has
 * resources. */
static inline ERL_NIF_TERM tame_impl_pay(ErlNifEnv *env, ERL_NIF_TERM result, uint64_t used_ns)
{
    const uint64_t owed_ns = tame_charge(env, used_ns);
    ERL_NIF_TERM next[3];

    if (owed_ns == 0 || enif_has_pending_exception(env, NULL))
        return result;
    next[0] = result;
    next[1] = enif_make_uint64(env, owed_ns);
    next[2] = tame_impl_hold_term(env);
    if (next[2] == 0)
        return result;
    return enif_schedule_nif(env, "tame_settle", 0, tame_impl_settle, 3, next);
}

#endif
