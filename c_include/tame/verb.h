/* tame/verb.h - '$tame'/3, the one NIF that every library has besides its own: a call goes on.
 *
 * Part of tame.h. Called by the module tame, for the function that the user called:
 *
 *   '$tame'(Nif, Deadline, Args)     begins a row under a deadline, erlang:monotonic_time(nanosecond)
 *                                    or infinity
 *   '$tame'(Run, Ref, Args)          goes on with a run that a NIF handed over, as far as that can be
 *   '$tame'(Run, {Ref, Deadline}, Args)  the same, under this deadline from now on; else under none
 *   '$tame'(Run, stop, Args)         ends it: {'$tame', stopped, Told}; Told: a message comes, or has
 *   '$tame'(Online, online, Permits) tells how many schedulers are online, and, if the list has one,
 *                                    of the permits of all libraries (tame/permits.h)
 *
 * The first two return a value, or {'$tame', What, _}:
 *
 *   run      hand it over again, with a reference
 *   wait     {Ref, go} comes; then hand it over again
 *   online   tell how many schedulers are online; then hand it over again
 *   part     a part of a stream, and the run that makes the next
 *   align    begin anew, with argument Number as a binary whose bytes lie in memory as they are
 *   badarg, error
 *
 * The module may have been loaded anew between two calls. Then a run comes to another instance of the
 * library than the one that has it, perhaps to another build. So each term of a run names its
 * resource type, by which its own instance goes on with it (enif_dynamic_resource_call). */
#ifndef TAME_VERB_H
#define TAME_VERB_H

#include "go.h"

/* How often a library asks how many schedulers are online; each time that its threads have work. */
#define TAME_IMPL_ONLINE_NS UINT64_C(1000000000)

static inline int tame_impl_asks_online(struct tame_impl_instance *instance, uint64_t now_ns)
{
    const uint64_t told_ns = __atomic_load_n(&instance->online_told_ns, __ATOMIC_RELAXED);

    return told_ns == 0 || now_ns > told_ns + TAME_IMPL_ONLINE_NS;
}

/* ---- a run goes on ---- */

/* What '$tame'/3 asks of a run, and its answer. Two builds of a library may meet here: a change of
 * this struct is a new TAME_IMPL_LAYOUT. */
struct tame_impl_ask {
    int layout;
    int stops;
    int uncut; /* it is asked by another instance */
    uint32_t argc, pulls;
    uint64_t start_ns, deadline_ns;
    ERL_NIF_TERM self, reference, roots;
    const ERL_NIF_TERM *argv;

    int answered; /* else the term is no run of the calling process that could go on */
    int begins;   /* the call begins anew in the instance that asks */
    ERL_NIF_TERM term;
};

/* The roots that the term of the run kept. */
static inline int tame_impl_take_roots(ErlNifEnv *env, struct tame_impl_run *run,
                                       ERL_NIF_TERM roots)
{
    const ERL_NIF_TERM *kept;
    int len;

    if (!enif_get_tuple(env, roots, &len, &kept) ||
        len != (run->row->job->terms ? TAME_MAX_ROOTS : 0))
        return 0;
    for (int i = 0; i < TAME_MAX_ROOTS; i++)
        run->call.root[i] = i < len ? kept[i] : run->instance->nil;
    return 1;
}

/* The run becomes the caller's. Returns 0 when it is at work, or has ended. */
static inline int tame_impl_take(struct tame_impl_run *run)
{
    const int state = tame_impl_state(&run->state);

    if (state == TAME_IMPL_CALLER)
        return 1;
    if ((state != TAME_IMPL_TURN && state != TAME_IMPL_DONE) ||
        !tame_impl_move(&run->state, state, TAME_IMPL_CALLER))
        return 0;
    tame_impl_unexpect(run);
    return 1;
}

/* The run waits for its turn, or is refused; or may go on: then 0. */
static inline ERL_NIF_TERM tame_impl_await(ErlNifEnv *env, struct tame_impl_run *run,
                                           ERL_NIF_TERM reference,
                                           enum tame_impl_entry (*enter)(struct tame_impl_run *))
{
    enum tame_impl_entry entry = TAME_IMPL_BUSY;
    const int expects = tame_impl_expect(env, run, reference);

    if (expects)
        entry = enter(run);
    if (entry == TAME_IMPL_ENTERED) {
        tame_impl_unexpect(run);
        return 0;
    }
    if (entry == TAME_IMPL_WAITS)
        return tame_impl_tagged(env, run, "wait", tame_impl_run_term(env, run));
    tame_impl_end_here(env, run);
    return expects ? tame_impl_error(env, "busy") : tame_impl_raise_enomem(env);
}

/* Goes on with a run of the calling process, as far as that can be. */
static inline ERL_NIF_TERM tame_impl_go_on(ErlNifEnv *env, struct tame_impl_held held,
                                           const struct tame_impl_ask *ask)
{
    struct tame_impl_run *run = held.run;
    const int dirty = tame_impl_dirty_flags(run->row->placement) != 0;
    ERL_NIF_TERM term;
    int waits;

    for (;;) {
        if (run->phase == TAME_IMPL_BEGIN && tame_impl_needs_place(run)) {
            term = tame_impl_await(env, run, ask->reference, tame_impl_gate_enter);
            if (term != 0)
                return term;
        }
        if (run->phase == TAME_IMPL_BEGIN && tame_impl_needs_context(run)) {
            term = tame_impl_await(env, run, ask->reference, tame_impl_context_enter);
            if (term != 0)
                return term;
        }
        if (run->phase == TAME_IMPL_STEPS && run->leaves && !run->part) {
            if (!run->uncut && tame_impl_asks_online(run->instance, ask->start_ns))
                return tame_impl_tagged(env, run, "online", tame_impl_run_term(env, run));
            if (!tame_impl_submit(env, run, ask->reference, &term)) {
                (void)tame_charge(env,
                                  tame_impl_meter_used_ns(ask->start_ns, tame_impl_meter_now_ns()));
                return term;
            }
            run->call.env = env;
            run->call.argv = ask->argv;
        }
        if (dirty && !run->uncut && run->phase != TAME_IMPL_FAILS)
            return tame_impl_schedule(env, held, 1);
        term = tame_impl_go(env, &held, ask->start_ns, 0, &waits);
        if (!waits)
            return term;
    }
}

/* In the instance of the run, which outlives its module as long as it has runs. */
static inline void tame_impl_answer(ErlNifEnv *env, void *object, void *data)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;
    struct tame_impl_ask *ask = (struct tame_impl_ask *)data;
    struct tame_impl_held held;
    ErlNifPid self;

    if (ask->layout != TAME_IMPL_LAYOUT || run->row == NULL ||
        ask->argc != (uint32_t)run->row->arity || enif_self(env, &self) == NULL ||
        enif_compare_pids(&self, &run->caller) != 0)
        return;
    if (ask->stops) {
        int told = 0;

        if (tame_impl_state(&run->state) == TAME_IMPL_CALLER)
            tame_impl_end_here(env, run);
        else
            told = tame_impl_abandon(env, run, tame_impl_pool_forget);
        ask->answered = 1;
        ask->term =
            tame_impl_tagged(env, run, "stopped", enif_make_atom(env, told ? "true" : "false"));
        return;
    }
    if (ask->pulls != run->pulls || !tame_impl_take(run))
        return;
    if (ask->uncut && run->phase == TAME_IMPL_BEGIN) {
        ask->answered = ask->begins = 1;
        tame_impl_end_here(env, run);
        return;
    }
    if (ask->uncut) /* who asks has another clock */
        ask->start_ns = tame_impl_meter_begin();
    run->uncut = ask->uncut;
    run->deadline_ns = ask->deadline_ns;
    run->call.env = env;
    run->call.argc = (int)ask->argc;
    run->call.argv = ask->argv;
    if (!tame_impl_take_roots(env, run, ask->roots)) {
        tame_impl_end_here(env, run);
        return;
    }
    if (!run->owned && !tame_impl_inputs(&run->call, ask->argv))
        run->phase = TAME_IMPL_FAILS;
    held.run = run;
    held.term = ask->self;
    ask->answered = 1;
    ask->term = tame_impl_go_on(env, held, ask);
}

/* The caller of a run that is off the schedulers, or waits for them, has ended. */
static inline void tame_impl_caller_ended(ErlNifEnv *env, struct tame_impl_run *run)
{
    (void)tame_impl_abandon(env, run, tame_impl_pool_forget);
}

static inline void tame_impl_run_told(ErlNifEnv *env, void *object, const ErlNifPid *pid)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    (void)pid;
    run->instance->caller_ended(env, run);
    enif_release_resource(run); /* the watch's hold; its build may go now */
}

static inline void tame_impl_process_down(ErlNifEnv *env, void *object, ErlNifPid *pid,
                                          ErlNifMonitor *monitor)
{
    (void)pid;
    (void)monitor;
    tame_impl_watch_down(env, (struct tame_impl_watch *)object, tame_impl_run_told);
}

/* ---- the NIF ---- */

/* The elements of a list; -1 when it is none, or too long. */
static inline int tame_impl_list(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *elements)
{
    ERL_NIF_TERM head;
    int len = 0;

    while (enif_get_list_cell(env, list, &head, &list)) {
        if (len == TAME_MAX_ARGS)
            return -1;
        elements[len++] = head;
    }
    return enif_is_empty_list(env, list) ? len : -1;
}

/* With {Hold, RowIndex, DeadlineNs} (tame_impl_pack): a row begins on its dirty scheduler. */
static inline ERL_NIF_TERM tame_impl_dirty_start(ErlNifEnv *env, int argc,
                                                 const ERL_NIF_TERM argv[])
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);
    const ERL_NIF_TERM *with;
    ERL_NIF_TERM args[TAME_MAX_ARGS];
    const struct tame_impl_row *row;
    ErlNifUInt64 deadline_ns;
    int len, index, arity;

    (void)argc;
    if (!enif_get_tuple(env, argv[0], &len, &with) || !enif_get_tuple(env, with[0], &len, &with) ||
        len != 3 || !enif_get_int(env, with[1], &index) ||
        !enif_get_uint64(env, with[2], &deadline_ns))
        return enif_make_badarg(env);
    row = &instance->rows[index];
    arity = row->arity;
    if (tame_impl_unpack(env, argv, arity, args) == 0)
        return enif_make_badarg(env);
    return tame_impl_start(env, arity, args, row, deadline_ns, 1);
}

static inline ERL_NIF_TERM tame_impl_start_anywhere(ErlNifEnv *env, int argc,
                                                    const ERL_NIF_TERM args[],
                                                    const struct tame_impl_row *row,
                                                    uint64_t deadline_ns)
{
    const int flags = tame_impl_dirty_flags(row->placement);
    ERL_NIF_TERM hold, argv[TAME_MAX_ARGS + 1];

    if (flags == 0)
        return tame_impl_start(env, argc, args, row, deadline_ns, 0);
    hold = tame_impl_hold_term(env);
    if (hold == 0)
        return tame_impl_raise_enomem(env);
    hold = enif_make_tuple3(env, hold, enif_make_int(env, row->index),
                            enif_make_uint64(env, deadline_ns));
    argc = tame_impl_pack(env, hold, argc, args, argv);
    return enif_schedule_nif(env, row->name, flags, tame_impl_dirty_start, argc, argv);
}

/* Erlang's deadline by our clock. Returns 0 when it is none. */
static inline int tame_impl_deadline(ErlNifEnv *env, ERL_NIF_TERM term, uint64_t *deadline_ns)
{
    ErlNifSInt64 at_ns;

    if (enif_get_int64(env, term, &at_ns)) {
        const uint64_t now_ns = tame_now_ns();
        int64_t left_ns;

        /* The VM's clock begins far below zero. */
        if (__builtin_sub_overflow(at_ns, enif_monotonic_time(ERL_NIF_NSEC), &left_ns))
            left_ns = at_ns > 0 ? INT64_MAX : INT64_MIN;
        *deadline_ns = left_ns > 0 ? now_ns + (uint64_t)left_ns : now_ns;
        return 1;
    }
    *deadline_ns = UINT64_MAX;
    return enif_is_identical(term, enif_make_atom(env, "infinity"));
}

static inline const struct tame_impl_row *
tame_impl_find_row(const struct tame_impl_instance *instance, ERL_NIF_TERM name, int arity)
{
    for (int i = 0; i < instance->rows_len; i++)
        if (enif_is_identical(instance->names[i], name) && instance->rows[i].arity == arity)
            return &instance->rows[i];
    return NULL;
}

/* What follows a run: a reference, or {Reference, Deadline}. Returns 0 when it is neither. */
static inline int tame_impl_take_reference(ErlNifEnv *env, ERL_NIF_TERM term,
                                           struct tame_impl_ask *ask)
{
    const ERL_NIF_TERM *both;
    int len;

    ask->reference = term;
    ask->deadline_ns = UINT64_MAX;
    if (enif_get_tuple(env, term, &len, &both)) {
        if (len != 2 || !tame_impl_deadline(env, both[1], &ask->deadline_ns))
            return 0;
        ask->reference = both[0];
    }
    return enif_is_ref(env, ask->reference);
}

/* From now on the pool's permits are those that the term is a resource of. It is another library's:
 * only that knows its type. */
static inline void tame_impl_share(ErlNifEnv *env, struct tame_impl_instance *instance,
                                   ERL_NIF_TERM term)
{
    const ERL_NIF_TERM owner = enif_make_atom(env, TAME_IMPL_PERMITS_OWNER);
    const ERL_NIF_TERM type = enif_make_atom(env, TAME_IMPL_PERMITS_TYPE);
    struct tame_impl_permits *permits = NULL;

    if (enif_dynamic_resource_call(env, owner, type, term, &permits) == 0 && permits != NULL)
        tame_impl_pool_share(instance->pool, permits);
}

static inline ERL_NIF_TERM tame_impl_verb(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_impl_instance *instance = (struct tame_impl_instance *)enif_priv_data(env);
    ERL_NIF_TERM args[TAME_MAX_ARGS];
    const ERL_NIF_TERM *run;
    const struct tame_impl_row *row;
    struct tame_impl_ask ask;
    uint64_t deadline_ns;
    unsigned online;
    int len;
    void *object;

    (void)argc;
    memset(&ask, 0, sizeof ask);
    len = tame_impl_list(env, argv[2], args);
    if (len < 0)
        return enif_make_badarg(env);
    if (enif_get_uint(env, argv[0], &online)) {
        __atomic_store_n(&instance->online, online, __ATOMIC_RELAXED);
        __atomic_store_n(&instance->online_told_ns, tame_now_ns(), __ATOMIC_RELAXED);
        if (len > 0)
            tame_impl_share(env, instance, args[0]);
        return enif_make_atom(env, "ok");
    }
    if (enif_is_atom(env, argv[0])) {
        row = tame_impl_find_row(instance, argv[0], len);
        if (row == NULL || !tame_impl_deadline(env, argv[1], &deadline_ns))
            return enif_make_badarg(env);
        return tame_impl_start_anywhere(env, len, args, row, deadline_ns);
    }
    ask.layout = TAME_IMPL_LAYOUT;
    ask.argc = (uint32_t)len;
    ask.argv = args;
    ask.stops = enif_is_identical(argv[1], enif_make_atom(env, "stop"));
    ask.start_ns = tame_impl_meter_begin();
    if (!enif_get_tuple(env, argv[0], &len, &run) || len != 5 ||
        !enif_get_uint(env, run[3], &ask.pulls) ||
        (!ask.stops && !tame_impl_take_reference(env, argv[1], &ask)))
        return enif_make_badarg(env);
    ask.self = run[2];
    ask.roots = run[4];
    if (enif_get_resource(env, run[2], instance->run_type, &object)) {
        tame_impl_answer(env, object, &ask);
    } else {
        ask.uncut = 1;
        (void)enif_dynamic_resource_call(env, instance->module_name, run[1], run[2], &ask);
    }
    if (!ask.answered)
        return enif_make_badarg(env);
    if (!ask.begins)
        return ask.term;
    row = tame_impl_find_row(instance, run[0], (int)ask.argc);
    if (row == NULL)
        return tame_impl_error(env, "upgraded");
    return tame_impl_start_anywhere(env, (int)ask.argc, args, row, ask.deadline_ns);
}

#endif
