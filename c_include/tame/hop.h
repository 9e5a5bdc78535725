/* tame/hop.h - slices on the VM's schedulers: normal ones, and dirty ones.
 *
 * Part of tame.h. */
#ifndef TAME_HOP_H
#define TAME_HOP_H

#include "place.h"
#include "submit.h"

static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* Leaves the scheduler to others and comes back for the next slice: argv is the run's resource and
 * the caller's arguments. */
static inline ERL_NIF_TERM tame_impl_schedule(ErlNifEnv *env, struct tame_impl_run *run, int argc,
                                              const ERL_NIF_TERM argv[])
{
    if (run->row->placement == TAME_YIELDING_DIRTY)
        return enif_schedule_nif(env, run->row->name, ERL_NIF_DIRTY_JOB_CPU_BOUND,
                                 tame_impl_dirty_hop, argc, argv);
    /* A hop that has not used up its timeslice would stay. */
    (void)enif_consume_timeslice(env, 100);
    return enif_schedule_nif(env, run->row->name, 0, tame_impl_hop, argc, argv);
}

/* Moves the run off the stack and schedules its next slice. */
static inline ERL_NIF_TERM tame_impl_park(ErlNifEnv *env, struct tame_impl_run *on_stack)
{
    const int argc = on_stack->call.argc;
    struct tame_impl_run *run = tame_impl_run_move(on_stack);
    ERL_NIF_TERM argv[TAME_MAX_ARGS + 1];

    if (run == NULL) {
        tame_impl_cleanup(env, on_stack);
        return tame_impl_raise_enomem(env);
    }
    if (run->row->placement == TAME_AUTO) {
        run->holds.auto_yielding = 1;
        __atomic_fetch_add(&run->instance->auto_yielding, 1, __ATOMIC_RELAXED);
    }
    argv[0] = enif_make_resource(env, run);
    enif_release_resource(run); /* the term owns it now */
    memcpy(argv + 1, run->call.argv, sizeof *argv * (size_t)argc);
    if (!tame_impl_inputs(run, argv + 1, 1))
        return tame_impl_raise_enomem(env);
    return tame_impl_schedule(env, run, argc + 1, argv);
}

/* The run that argv[0] holds, ready for a slice here; NULL when it is none. */
static inline struct tame_impl_run *tame_impl_resume(ErlNifEnv *env, int argc,
                                                     const ERL_NIF_TERM argv[])
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);
    void *object;
    struct tame_impl_run *run;

    if (!enif_get_resource(env, argv[0], instance->run_type, &object))
        return NULL;
    run = (struct tame_impl_run *)object;
    run->call.env = env;
    run->call.argc = argc - 1;
    run->call.argv = argv + 1;
    return tame_impl_inputs(run, (ERL_NIF_TERM *)(argv + 1), 0) ? run : NULL;
}

/* A slice on a normal scheduler. */
static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run *run = tame_impl_resume(env, argc, argv);
    struct tame_slice slice;

    if (run == NULL)
        return enif_make_badarg(env);
    slice = tame_impl_slice(run, start_ns, tame_impl_slice_ns(run));
    if (slice.status == TAME_DONE) {
        const uint64_t owed_ns = run->pace.owed_ns;
        const ERL_NIF_TERM result = tame_impl_result(run);

        return tame_impl_pay(env, result, owed_ns + tame_now_ns() - start_ns);
    }
    run->pace.owed_ns = tame_charge(env, run->pace.owed_ns + slice.used_ns);
    if (tame_impl_takes_long(run)) {
        tame_impl_auto_yielding_end(run);
        enif_keep_resource(run); /* for the pool; the caller's term goes with its frame */
        return tame_impl_submit(env, run);
    }
    return tame_impl_schedule(env, run, argc, argv);
}

/* One slice on a dirty CPU scheduler; other dirty work runs after it. */
static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run *run = tame_impl_resume(env, argc, argv);

    if (run == NULL)
        return enif_make_badarg(env);
    if (tame_impl_long_slice(run, start_ns) == TAME_DONE)
        return tame_impl_result(run);
    return tame_impl_schedule(env, run, argc, argv);
}

/* All slices in one go. Between them the caller may turn out to be dead, or the VM about to end:
 * then the result is dropped. */
static inline ERL_NIF_TERM tame_impl_dirty(ErlNifEnv *env, struct tame_impl_run *run)
{
    while (tame_impl_long_slice(run, tame_now_ns()) != TAME_DONE) {
        if (!enif_is_current_process_alive(env) || tame_impl_stopped(run)) {
            tame_impl_cleanup(env, run);
            return enif_make_atom(env, "killed");
        }
    }
    return tame_impl_result(run);
}

#endif
