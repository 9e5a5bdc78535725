/* tame/hold.h - what keeps a library in the VM.
 *
 * Part of tame.h. A library stays loaded, and a type of resource in being, only as long as there are
 * resources. A purge waits for nobody who is in a dirty call: it kills the process, the call goes on,
 * and a resource that it makes then would be of a type whose memory the VM has freed (OTP 25, 27, 29).
 * So what may make one has a run that is a resource, and such a run holds all types of its instance. Runs
 * become resources on normal schedulers, where a purge waits, or where another run holds already. */
#ifndef TAME_HOLD_H
#define TAME_HOLD_H

#include "context.h"

/* Releases what was kept of the watches' type, and of the author's first `len`. */
static inline void tame_impl_types_release(struct tame_impl_instance *instance, int len)
{
    enif_release_resource(instance->kept_watch);
    for (int i = 0; i < len; i++)
        enif_release_resource(instance->kept[i]);
}

/* One resource of each type, which is nothing but that. 0 without memory. */
static inline int tame_impl_types_make(struct tame_impl_instance *instance)
{
    /* This and the others are the instance's, until its last run ends. */
    instance->kept_watch =
        enif_alloc_resource(instance->watch_type, sizeof(struct tame_impl_watch));
    if (instance->kept_watch == NULL)
        return 0;
    memset(instance->kept_watch, 0, sizeof(struct tame_impl_watch));
    for (int i = 0; i < instance->types_len; i++) {
        instance->kept[i] =
            enif_alloc_resource(instance->types[i], sizeof(struct tame_impl_context));
        if (instance->kept[i] == NULL) {
            tame_impl_types_release(instance, i);
            return 0;
        }
        memset(instance->kept[i], 0, sizeof(struct tame_impl_context));
    }
    return 1;
}

/* One run more or fewer that holds the instance, where at least this many do. */
static inline int tame_impl_runs_change(uint32_t *runs, uint32_t least, int32_t change)
{
    uint32_t now = __atomic_load_n(runs, __ATOMIC_RELAXED);

    while (now >= least)
        if (__atomic_compare_exchange_n(runs, &now, now + (uint32_t)change, 0, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return 1;
    return 0;
}

/* For a run that becomes a resource. 0 without memory. */
static inline int tame_impl_types_keep(struct tame_impl_instance *instance)
{
    int kept;

    if (tame_impl_runs_change(&instance->runs, 1, 1))
        return 1;
    enif_mutex_lock(instance->lock);
    kept = tame_impl_runs_change(&instance->runs, 1, 1);
    if (!kept && tame_impl_types_make(instance))
        kept = tame_impl_runs_change(&instance->runs, 0, 1);
    enif_mutex_unlock(instance->lock);
    return kept;
}

static inline void tame_impl_types_drop(struct tame_impl_instance *instance)
{
    if (tame_impl_runs_change(&instance->runs, 2, -1))
        return;
    enif_mutex_lock(instance->lock);
    if (__atomic_sub_fetch(&instance->runs, 1, __ATOMIC_ACQ_REL) == 0)
        tame_impl_types_release(instance, instance->types_len);
    enif_mutex_unlock(instance->lock);
}

/* A resource of a run, not written yet, which holds the instance. NULL without memory. */
static inline struct tame_impl_run *tame_impl_run_new(struct tame_impl_instance *instance,
                                                      size_t size)
{
    struct tame_impl_run *run;

    if (!tame_impl_types_keep(instance))
        return NULL;
    run = (struct tame_impl_run *)enif_alloc_resource(instance->run_type, size);
    if (run == NULL)
        tame_impl_types_drop(instance);
    else
        (void)tame_impl_instance_keep(instance);
    return run;
}

/* What a run that is destroyed held. */
static inline void tame_impl_run_drop(struct tame_impl_run *run)
{
    tame_impl_types_drop(run->instance);
    tame_impl_instance_release(run->instance);
}

/* A run that does nothing but hold the library; the term owns it. 0 without memory. */
static inline ERL_NIF_TERM tame_impl_hold_term(ErlNifEnv *env)
{
    struct tame_impl_instance *instance = (struct tame_impl_instance *)enif_priv_data(env);
    struct tame_impl_run *hold = tame_impl_run_new(instance, sizeof *hold);
    ERL_NIF_TERM term;

    if (hold == NULL)
        return 0;
    memset(hold, 0, sizeof *hold);
    hold->instance = instance;
    term = enif_make_resource(env, hold);
    enif_release_resource(hold); /* the term owns it now */
    return term;
}

/* The arguments of a call that goes to a dirty scheduler with a term: ({Term, Arg1}, Arg2, ...), or
 * ({Term}). So who looks at the process sees the function with its arity. Returns how many there are. */
static inline int tame_impl_pack(ErlNifEnv *env, ERL_NIF_TERM with, int argc,
                                 const ERL_NIF_TERM argv[], ERL_NIF_TERM packed[])
{
    if (argc == 0) {
        packed[0] = enif_make_tuple1(env, with);
        return 1;
    }
    packed[0] = enif_make_tuple2(env, with, argv[0]);
    memcpy(packed + 1, argv + 1, sizeof *argv * (size_t)(argc - 1));
    return argc;
}

/* The term; 0 when these are no such arguments. */
static inline ERL_NIF_TERM tame_impl_unpack(ErlNifEnv *env, const ERL_NIF_TERM packed[], int argc,
                                            ERL_NIF_TERM argv[])
{
    const ERL_NIF_TERM *first;
    int len;

    if (!enif_get_tuple(env, packed[0], &len, &first) || len != (argc == 0 ? 1 : 2))
        return 0;
    if (argc > 0) {
        argv[0] = first[1];
        memcpy(argv + 1, packed + 1, sizeof *argv * (size_t)(argc - 1));
    }
    return first[0];
}

/* A resource that holds the run and its state. The one on the stack is spent: the resource owns
 * what it owned. NULL when there is no memory. */
static inline struct tame_impl_run *tame_impl_run_move(struct tame_impl_run *from)
{
    const size_t state_size = from->call.impl_state_size;
    struct tame_impl_run *run =
        tame_impl_run_new(from->instance, sizeof *from + TAME_IMPL_ALIGNMENT + state_size);

    if (run == NULL)
        return NULL;
    *run = *from;
    run->is_resource = 1;
    enif_self(from->call.env, &run->caller);
    run->call.impl_state = tame_impl_align(run + 1); /* the state follows the run */
    if (from->row->job->move != NULL && from->holds.initialised)
        from->row->job->move(run->call.impl_state, from->call.impl_state);
    else
        memcpy(run->call.impl_state, from->call.impl_state, state_size);
    return run;
}

#endif
