/* tame/submit.h - a run goes to a thread of ours, from its caller's scheduler.
 *
 * Part of tame.h. The caller waits in receive, not on a thread: {Ref, done} follows by enif_send
 * when all steps are done. Then the caller calls the NIF again (tame/again.h), which makes the
 * result. More calls than may wait are refused at once. */
#ifndef TAME_SUBMIT_H
#define TAME_SUBMIT_H

#include "pay.h"
#include "pool.h"

/* Whether a worker is there to take the run; called with the lock held. */
static inline int tame_impl_pool_has_worker(struct tame_impl_pool *pool)
{
    if (pool->workers_len < pool->workers_max &&
        tame_impl_thread_create("tame_worker", &pool->workers[pool->workers_len], tame_impl_worker,
                                pool, pool->stack_kib) == 0)
        pool->workers_len++;
    return pool->workers_len > 0;
}

static inline int tame_impl_thread_start(struct tame_impl_pool *pool, struct tame_impl_run *run)
{
    if (!pool->reaper_runs)
        pool->reaper_runs =
            tame_impl_thread_create("tame_reaper", &pool->reaper, tame_impl_reap, pool, 0) == 0;
    if (!pool->reaper_runs || tame_impl_thread_create("tame_call", &run->tid, tame_impl_call_thread,
                                                      run, run->row->job->stack_kib) != 0)
        return 0;
    pool->threads++;
    return 1;
}

/* How long a caller whose run a worker takes at once spins for the result before it waits in
 * receive, because to be woken costs several us. After TAME_IMPL_SPINS_FAILED failures in a row
 * only one call in TAME_IMPL_SPIN_PERIOD spins. */
#define TAME_IMPL_CALLER_SPIN_NS 5000
#define TAME_IMPL_SPINS_FAILED 3
#define TAME_IMPL_SPIN_PERIOD 64

static inline int tame_impl_worth_spinning(struct tame_impl_run *run)
{
    uint32_t *failed = &run->instance->row_stats[run->row->index].spins_failed;

    return __atomic_load_n(failed, __ATOMIC_RELAXED) < TAME_IMPL_SPINS_FAILED ||
           __atomic_fetch_add(failed, 1, __ATOMIC_RELAXED) % TAME_IMPL_SPIN_PERIOD == 0;
}

/* The result, if it is there soon; then *found is set. */
static inline ERL_NIF_TERM tame_impl_spin_for_result(ErlNifEnv *env, struct tame_impl_run *run,
                                                     const ERL_NIF_TERM argv[], int *found)
{
    uint32_t *failed = &run->instance->row_stats[run->row->index].spins_failed;
    const uint64_t start_ns = tame_now_ns();
    ERL_NIF_TERM result = 0;
    uint64_t used_ns;

    do {
        for (int i = 0;
             i < 16 && __atomic_load_n(&run->waiter.answer, __ATOMIC_ACQUIRE) != TAME_IMPL_THERE;
             i++)
            tame_impl_pause();
        used_ns = tame_now_ns() - start_ns;
    } while (__atomic_load_n(&run->waiter.answer, __ATOMIC_ACQUIRE) != TAME_IMPL_THERE &&
             used_ns < TAME_IMPL_CALLER_SPIN_NS);
    *found = !tame_impl_claim(run, TAME_IMPL_BY_SPIN, TAME_IMPL_BY_MESSAGE) &&
             tame_impl_claim(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN);
    if (*found) {
        __atomic_store_n(failed, 0, __ATOMIC_RELAXED);
        result = tame_impl_pay(env, tame_impl_take(env, run, argv), tame_now_ns() - start_ns);
    } else {
        __atomic_fetch_add(failed, 1, __ATOMIC_RELAXED);
        (void)tame_charge(env, used_ns);
    }
    return result;
}

/* Copies what the steps read into an environment of the run's own, and nothing else: the other
 * arguments stay with the caller, where result finds them. Returns 0 without memory. */
static inline int tame_impl_own(struct tame_impl_run *run, ERL_NIF_TERM reference)
{
    const ERL_NIF_TERM *argv = run->call.argv;
    ERL_NIF_TERM own_argv[TAME_MAX_ARGS];

    run->waiter.own_env = enif_alloc_env();
    if (run->waiter.own_env == NULL)
        return 0;
    for (int i = 0; i < run->call.impl_inputs_len; i++) {
        const int arg = run->call.impl_inputs[i].arg;

        own_argv[arg] = enif_make_copy(run->waiter.own_env, argv[arg]);
    }
    run->waiter.reference = enif_make_copy(run->waiter.own_env, reference);
    run->call.env = run->waiter.own_env;
    run->call.argv = NULL; /* until result */
    return tame_impl_inputs(run, own_argv, 0);
}

/* Gives the run, with the caller's hold on it, to a thread. What it returns is the result, or tells
 * tame:value/3 to wait, or why not. */
static inline ERL_NIF_TERM tame_impl_submit(ErlNifEnv *env, struct tame_impl_run *run)
{
    struct tame_impl_pool *pool = run->instance->pool;
    const uint32_t limit = run->row->job->max_waiting;
    const ERL_NIF_TERM *argv = run->call.argv; /* the caller's, for as long as this NIF runs */
    const ERL_NIF_TERM reference = enif_make_ref(env);
    const char *refused = NULL;
    int spins = 0, found = 0;
    ERL_NIF_TERM term = 0;

    enif_self(env, &run->waiter.caller);
    /* Monitored before a thread can have it; the destructor of the resource ends the monitor. */
    if (!tame_impl_own(run, reference) ||
        enif_monitor_process(env, run, &run->waiter.caller, &run->waiter.monitor) != 0) {
        enif_release_resource(run);
        return tame_impl_raise_enomem(env);
    }

    enif_keep_resource(run); /* ours, until the result or the term below */
    enif_mutex_lock(pool->lock);
    if (run->row->placement == TAME_THREAD) {
        if (!tame_impl_thread_start(pool, run))
            refused = "system_limit";
    } else if (run->row->placement != TAME_AUTO && /* its limit is the gate's alone */
               tame_impl_gate(run)->pooled >= (limit > 0 ? limit : TAME_MAX_WAITING)) {
        refused = "busy";
    } else if (!tame_impl_pool_has_worker(pool)) {
        refused = "system_limit";
    } else {
        spins = pool->spinning > 0 && pool->waiting.len == 0 && tame_impl_worth_spinning(run);
        if (spins)
            run->waiter.answer = TAME_IMPL_BY_SPIN;
        tame_impl_queue_push(&pool->waiting, &run->link); /* the queue owns the hold now */
        tame_impl_gate(run)->pooled++;
        /* One that spins takes the first; a sleeper is woken for the others. */
        if (pool->sleeping > 0 && pool->waiting.len > (uint32_t)pool->spinning)
            enif_cond_signal(pool->work);
    }
    enif_mutex_unlock(pool->lock);

    if (refused != NULL) {
        enif_release_resource(run); /* the hold that was for the thread */
        term = tame_impl_error(env, refused);
    } else {
        if (spins)
            term = tame_impl_spin_for_result(env, run, argv, &found);
        if (!found)
            term = tame_impl_wait(env, run, reference, argv);
    }
    enif_release_resource(run);
    return term;
}

/* Moves the run off the stack and gives it to a thread. */
static inline ERL_NIF_TERM tame_impl_move_off(ErlNifEnv *env, struct tame_impl_run *on_stack)
{
    struct tame_impl_run *run = tame_impl_run_move(on_stack);

    if (run == NULL) {
        tame_impl_cleanup(env, on_stack);
        return tame_impl_raise_enomem(env);
    }
    return tame_impl_submit(env, run);
}

#endif
