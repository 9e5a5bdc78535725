/* tame/go.h - a run goes on in its caller's process: init, steps, build and result, one after the
 * other, cut into slices, on regular schedulers and on dirty ones.
 *
 * Part of tame.h. */
#ifndef TAME_GO_H
#define TAME_GO_H

#include "short.h"
#include "submit.h"

static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* The flags of the dirty schedulers that a row's steps run on, from the first; 0: on none. */
static inline int tame_impl_dirty_flags(enum tame_placement placement)
{
    return placement == TAME_DIRTY_CPU  ? ERL_NIF_DIRTY_JOB_CPU_BOUND
           : placement == TAME_DIRTY_IO ? ERL_NIF_DIRTY_JOB_IO_BOUND
                                        : 0;
}

/* A run, and the term that holds it; 0: there is none yet. */
struct tame_impl_held {
    struct tame_impl_run *run;
    ERL_NIF_TERM term;
};

/* Moves the run off the stack. Returns 0 without memory: then the run has ended. */
static inline int tame_impl_hold(ErlNifEnv *env, struct tame_impl_held *held)
{
    struct tame_impl_run *run = held->run;

    if (!run->is_resource) {
        run = tame_impl_run_move(run);
        if (run == NULL) {
            tame_impl_end_here(env, held->run);
            return 0;
        }
        held->run = run;
        held->term = enif_make_resource(env, run);
        enif_release_resource(run); /* the term owns it now */
    } else if (held->term == 0) {
        held->term = enif_make_resource(env, run);
    }
    return 1;
}

/* Leaves the scheduler to others and comes back for the next slice. The arguments of the hop are the
 * run, its roots and the caller's arguments, so the VM keeps and moves them. */
static inline ERL_NIF_TERM tame_impl_schedule(ErlNifEnv *env, struct tame_impl_held held, int dirty)
{
    ERL_NIF_TERM argv[1 + TAME_MAX_ROOTS + TAME_MAX_ARGS];
    const struct tame_call *call;
    int flags;

    if (!tame_impl_hold(env, &held))
        return tame_impl_raise_enomem(env);
    call = &held.run->call;
    argv[0] = held.term;
    memcpy(argv + 1, call->root, sizeof call->root);
    memcpy(argv + 1 + TAME_MAX_ROOTS, call->argv, sizeof *argv * (size_t)call->argc);
    tame_impl_crowd(held.run, !dirty);
    if (dirty) {
        flags = tame_impl_dirty_flags(held.run->row->placement);
        flags = flags != 0 ? flags : ERL_NIF_DIRTY_JOB_CPU_BOUND;
        return enif_schedule_nif(env, held.run->row->name, flags, tame_impl_dirty_hop,
                                 1 + TAME_MAX_ROOTS + call->argc, argv);
    }
    /* A hop that has not used up its timeslice would stay. */
    (void)enif_consume_timeslice(env, 100);
    return enif_schedule_nif(env, held.run->row->name, 0, tame_impl_hop,
                             1 + TAME_MAX_ROOTS + call->argc, argv);
}

/* {'$tame', run, _}: the caller hands the run to '$tame'/3, with a reference to wait for. */
static inline ERL_NIF_TERM tame_impl_hand_over(ErlNifEnv *env, struct tame_impl_held held)
{
    if (!tame_impl_hold(env, &held))
        return tame_impl_raise_enomem(env);
    return tame_impl_tagged(env, held.run, "run", tame_impl_run_term(env, held.run));
}

/* What the NIF returns, after it has paid for the time used. In a call from a newer instance of the
 * library there is no way to wait until it has. */
static inline ERL_NIF_TERM tame_impl_paid(ErlNifEnv *env, ERL_NIF_TERM term, uint64_t used_ns,
                                          int uncut)
{
    if (!uncut)
        return tame_impl_pay(env, term, used_ns);
    (void)tame_charge(env, used_ns);
    return term;
}

/* {'$tame', part, {Part, _}}. The reader pays for a part as for a slice: with its timeslice, when it
 * has had parts for as long as a slice. */
static inline ERL_NIF_TERM tame_impl_give_part(ErlNifEnv *env, struct tame_impl_held held,
                                               uint64_t start_ns, int dirty)
{
    ERL_NIF_TERM part;
    uint64_t used_ns;

    if (!tame_impl_hold(env, &held))
        return tame_impl_raise_enomem(env);
    tame_impl_crowd(held.run, 0);
    part =
        held.run->part ? enif_make_copy(env, held.run->call.impl_term) : held.run->call.impl_term;
    held.run->call.impl_term = 0;
    held.run->part = 0;
    held.run->pulls++;
    part = tame_impl_tagged(env, held.run, "part",
                            enif_make_tuple2(env, part, tame_impl_run_term(env, held.run)));
    if (dirty)
        return part;
    used_ns = held.run->owed_ns + tame_impl_meter_used_ns(start_ns, tame_impl_meter_now_ns());
    held.run->owed_ns = 0;
    held.run->parts_ns += used_ns;
    if (held.run->parts_ns < tame_impl_slice_ns(held.run))
        return tame_impl_paid(env, part, used_ns, held.run->uncut);
    held.run->parts_ns = 0;
    part = tame_impl_paid(env, part, used_ns, held.run->uncut);
    (void)enif_consume_timeslice(env, 100);
    return part;
}

/* The run's end, in its caller's process: a term, or 0 with an exception. */
static inline ERL_NIF_TERM tame_impl_finish(ErlNifEnv *env, struct tame_impl_run *run,
                                            uint64_t start_ns, int dirty)
{
    const uint64_t owed_ns = run->owed_ns;
    const int uncut = run->uncut;
    ERL_NIF_TERM term;
    uint64_t used_ns;

    run->call.env = env;
    if (run->call.impl_failure == TAME_IMPL_NO_FAILURE && run->phase == TAME_IMPL_BUILD) {
        term = run->row->job->result(&run->call, run->call.impl_state);
        if (run->call.impl_failure != TAME_IMPL_NO_FAILURE) /* result may fail, too */
            term = tame_impl_failure(env, run);
    } else {
        term = tame_impl_failure(env, run);
    }
    tame_impl_end_here(env, run); /* after result, which may read the inputs */
    if (dirty)
        return term;
    used_ns = tame_impl_meter_used_ns(start_ns, tame_impl_meter_now_ns());
    tame_impl_short_ended(run, used_ns);
    return tame_impl_paid(env, term, owed_ns + used_ns, uncut);
}

/* A slice on a regular scheduler, charged. Returns what the run says then. */
static inline enum tame_status tame_impl_regular_slice(ErlNifEnv *env, struct tame_impl_run *run,
                                                       uint64_t start_ns)
{
    const struct tame_job *job = run->row->job;
    struct tame_impl_instance *instance = run->instance;
    const uint32_t crowd =
        __atomic_load_n(&instance->crowd, __ATOMIC_RELAXED) + (run->holds.crowd ? 0 : 1);
    const uint32_t schedulers = tame_impl_schedulers(instance);
    const int whole = run->row->placement == TAME_INLINE || run->uncut;
    const uint64_t slice_ns =
        whole ? UINT64_MAX / 2
              : tame_impl_place_slice_ns(tame_impl_slice_ns(run), crowd, schedulers);
    const struct tame_impl_slice slice =
        tame_impl_run_slice(env, run, start_ns, slice_ns, &instance->halting, 0);
    uint64_t used_ns;

    /* One in which the VM ends is the last: the VM takes the process with it. */
    if (slice.status != TAME_MORE && slice.longest_unit_ns <= TAME_IMPL_SLOW_UNIT_NS)
        return slice.status; /* charged at the end */
    used_ns = tame_impl_meter_used_ns(start_ns, start_ns + slice.used_ns);
    tame_impl_tell_slow_unit(env, run, &slice, used_ns);
    if (slice.status != TAME_MORE)
        return slice.status;
    run->used_ns += used_ns;
    run->owed_ns = tame_charge(env, run->owed_ns + used_ns);
    if (run->row->placement == TAME_AUTO && run->phase == TAME_IMPL_STEPS &&
        tame_impl_place_leaves(run->used_ns, run->done, run->call.impl_total,
                               tame_impl_place_budget_ns(crowd, schedulers))) {
        run->dirty = job->terms;
        run->leaves = !job->terms;
    }
    return TAME_MORE;
}

/* A long slice on a dirty scheduler, or all of them where the placement says so. The caller may turn
 * out to be dead, or the VM about to end: then *gone is set. */
static inline enum tame_status tame_impl_dirty_slices(ErlNifEnv *env, struct tame_impl_run *run,
                                                      int *gone)
{
    const int whole = tame_impl_dirty_flags(run->row->placement) != 0;
    enum tame_status status;
    int gives_way = 0, first;

    do {
        const uint64_t now_ns = tame_now_ns();

        /* A short job need not pay for it; the thread is the VM's, and has it back as it was. */
        first = run->steps == 0;
        if (!first && run->row->placement != TAME_DIRTY_IO &&
            gives_way != tame_impl_place_gives_core(now_ns, run->deadline_ns)) {
            gives_way = !gives_way;
            (void)tame_impl_os_give_way(gives_way);
        }
        status = tame_impl_long_slice(
            env, run, now_ns, first ? TAME_IMPL_YIELD_EVERY_NS : tame_impl_dirty_slice_ns(run),
            &run->instance->halting, 0);
        *gone = status == TAME_MORE && (!enif_is_current_process_alive(env) ||
                                        __atomic_load_n(&run->instance->halting, __ATOMIC_RELAXED));
    } while ((whole || first) && status == TAME_MORE && !*gone);
    if (gives_way)
        (void)tame_impl_os_give_way(0);
    return status;
}

/* The run goes on from where it is, for one slice on the regular scheduler or the dirty one that this
 * is called on. What it returns is what the NIF returns. *waits is set instead when the run cannot go
 * on here: it leaves for a thread of ours, or another call has the context that it claims. */
static inline ERL_NIF_TERM tame_impl_go(ErlNifEnv *env, struct tame_impl_held *held,
                                        uint64_t start_ns, int dirty, int *waits)
{
    struct tame_impl_run *run = held->run;
    enum tame_status status;
    int gone = 0;

    *waits = 0;
    if (run->phase == TAME_IMPL_BEGIN) {
        const int claims =
            tame_impl_init(run) != TAME_MORE && run->call.impl_failure == TAME_IMPL_CLAIM;

        if (run->phase == TAME_IMPL_BEGIN && !claims)
            return tame_impl_finish(env, run, start_ns, dirty);
        if (claims)
            tame_impl_uninit(run);
        *waits = claims || run->leaves;
        if (*waits) {
            if (!dirty) /* the time of init */
                run->owed_ns = tame_charge(env, run->owed_ns + tame_impl_meter_now_ns() - start_ns);
            return 0;
        }
    }
    for (;;) {
        if (run->phase == TAME_IMPL_STEPS && run->part)
            return tame_impl_give_part(env, *held, start_ns, dirty);
        *waits = run->phase == TAME_IMPL_STEPS && run->leaves;
        if (*waits)
            return 0;
        if (run->phase == TAME_IMPL_FAILS ||
            (run->phase == TAME_IMPL_BUILD && run->row->job->build == NULL))
            return tame_impl_finish(env, run, start_ns, dirty);
        if (!dirty && (run->dirty || run->row->placement == TAME_YIELDING_DIRTY) && !run->uncut) {
            run->owed_ns = tame_charge(env, run->owed_ns + tame_impl_meter_now_ns() - start_ns);
            return tame_impl_schedule(env, *held, 1);
        }
        status = dirty ? tame_impl_dirty_slices(env, run, &gone)
                       : tame_impl_regular_slice(env, run, start_ns);
        if (gone) {
            tame_impl_end_here(env, run);
            return enif_make_atom(env, "killed");
        }
        switch (status) {
        case TAME_MORE:
            if (run->phase == TAME_IMPL_STEPS && run->leaves)
                continue;
            if (run->uncut)
                continue;
            return tame_impl_schedule(env, *held, dirty || run->dirty);
        case TAME_PART:
            return tame_impl_give_part(env, *held, start_ns, dirty);
        case TAME_DONE:
            if (run->phase != TAME_IMPL_BUILD) {
                tame_impl_next_phase(run);
                continue;
            }
            /* fallthrough */
        default:
            run->phase = status == TAME_DONE ? TAME_IMPL_BUILD : TAME_IMPL_FAILS;
            return tame_impl_finish(env, run, start_ns, dirty);
        }
    }
}

/* A hop: (Run, Root1, ..., Arg1, ...). */
static inline ERL_NIF_TERM tame_impl_hop_on(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                            int dirty)
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);
    const uint64_t start_ns = dirty ? tame_now_ns() : tame_impl_meter_begin();
    struct tame_impl_held held;
    ERL_NIF_TERM term;
    void *object;
    int waits;

    if (!enif_get_resource(env, argv[0], instance->run_type, &object))
        return enif_make_badarg(env);
    held.run = (struct tame_impl_run *)object;
    held.term = argv[0];
    held.run->call.env = env;
    held.run->call.argc = argc - 1 - TAME_MAX_ROOTS;
    held.run->call.argv = argv + 1 + TAME_MAX_ROOTS;
    memcpy(held.run->call.root, argv + 1, sizeof held.run->call.root);
    if (!held.run->owned && !tame_impl_inputs(&held.run->call, held.run->call.argv))
        held.run->phase = TAME_IMPL_FAILS;
    term = tame_impl_go(env, &held, start_ns, dirty, &waits);
    return waits ? tame_impl_hand_over(env, held) : term;
}

static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return tame_impl_hop_on(env, argc, argv, 0);
}

static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    return tame_impl_hop_on(env, argc, argv, 1);
}

/* ---- a call begins ---- */

/* A state larger than this is allocated before the first slice. */
#define TAME_IMPL_STACK_STATE 1024

static inline ERL_NIF_TERM tame_impl_begin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                           const struct tame_impl_row *row, void *state,
                                           uint64_t deadline_ns, int dirty)
{
    struct tame_impl_run run;
    struct tame_impl_held held;
    ERL_NIF_TERM term;
    uint64_t start_ns;
    int waits;

    held.run = &run;
    held.term = 0;
    tame_impl_call_begin(&run, row, env, argc, argv, state);
    if (dirty || deadline_ns != UINT64_MAX) {
        start_ns = dirty ? tame_now_ns() : tame_impl_meter_begin();
        tame_impl_run_begin(&run, start_ns, deadline_ns);
    } else {
        switch (tame_impl_short(env, &run, &start_ns, &term)) {
        case TAME_DONE:
            return term;
        case TAME_PART:
            return tame_impl_give_part(env, held, start_ns, 0);
        default:
            break;
        }
    }
    /* A term that nobody takes up must not keep a place: a run that leaves asks for it later. */
    if (row->job->max_running > 0 && (run.leaves || !tame_impl_gate_try(&run)))
        return tame_impl_hand_over(env, held);
    term = tame_impl_go(env, &held, start_ns, dirty, &waits);
    return waits ? tame_impl_hand_over(env, held) : term;
}

/* A call with these arguments, on a dirty scheduler or a regular one. */
static inline ERL_NIF_TERM tame_impl_start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                           const struct tame_impl_row *row, uint64_t deadline_ns,
                                           int dirty)
{
    const size_t size = row->job->state_size;

    if (size <= TAME_IMPL_STACK_STATE) {
        union {
            long double align;
            void *pointer;
            unsigned char bytes[TAME_IMPL_STACK_STATE];
        } state;

        memset(state.bytes, 0, size);
        return tame_impl_begin(env, argc, argv, row, state.bytes, deadline_ns, dirty);
    } else {
        /* Freed below: a run that goes on has moved out of it. */
        void *memory = enif_alloc(size + TAME_IMPL_ALIGNMENT);
        ERL_NIF_TERM term;

        if (memory == NULL)
            return tame_impl_raise_enomem(env);
        memset(memory, 0, size + TAME_IMPL_ALIGNMENT);
        term = tame_impl_begin(env, argc, argv, row, tame_impl_align(memory), deadline_ns, dirty);
        enif_free(memory);
        return term;
    }
}

#endif
