/* tame/submit.h - a run goes to a thread of ours, from its caller's scheduler.
 *
 * Part of tame.h. The caller waits in receive, not on a thread: {Ref, go} follows when the steps are
 * done. More calls than may wait are refused at once. */
#ifndef TAME_SUBMIT_H
#define TAME_SUBMIT_H

#include "call_thread.h"

/* How long a caller whose run a worker takes at once spins for the result before it waits in
 * receive, because to be woken costs several us. After TAME_IMPL_SPINS_FAILED failures in a row
 * only one call in TAME_IMPL_SPIN_PERIOD spins.
 *
 * run->quiet is 1 while the caller spins: then the thread makes it 2, and sends no message. The
 * caller that gives up makes it 0 before, and a message comes. */
#define TAME_IMPL_CALLER_SPIN_NS 5000
#define TAME_IMPL_SPINS_FAILED 3
#define TAME_IMPL_SPIN_PERIOD 64

static inline int tame_impl_worth_spinning(struct tame_impl_run *run)
{
    uint32_t *failed = &tame_impl_stats(run)->spins_failed;

    return __atomic_load_n(failed, __ATOMIC_RELAXED) < TAME_IMPL_SPINS_FAILED ||
           __atomic_fetch_add(failed, 1, __ATOMIC_RELAXED) % TAME_IMPL_SPIN_PERIOD == 0;
}

/* Whether the steps are done soon. */
static inline int tame_impl_spin(struct tame_impl_run *run)
{
    uint32_t *failed = &tame_impl_stats(run)->spins_failed;
    const uint64_t start_ns = tame_now_ns();
    int spins = 1;

    do {
        for (int i = 0; i < 16 && tame_impl_state(&run->state) != TAME_IMPL_DONE; i++)
            tame_impl_pause();
    } while (tame_impl_state(&run->state) != TAME_IMPL_DONE &&
             tame_now_ns() - start_ns < TAME_IMPL_CALLER_SPIN_NS);
    if (tame_impl_state(&run->state) != TAME_IMPL_DONE &&
        __atomic_compare_exchange_n(&run->quiet, &spins, 0, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        __atomic_fetch_add(failed, 1, __ATOMIC_RELAXED);
        return 0;
    }
    while (tame_impl_state(&run->state) != TAME_IMPL_DONE) /* it is being made so */
        tame_impl_pause();
    __atomic_store_n(failed, 0, __ATOMIC_RELAXED);
    return 1;
}

/* Copies what the steps read into an environment of the run's own, and nothing else: the other
 * arguments stay with the caller, where result finds them. Returns 0 without memory, and when the job
 * wrote the size of an input: then the call has failed. */
static inline int tame_impl_own(ErlNifEnv *env, struct tame_impl_run *run, ERL_NIF_TERM reference)
{
    const ERL_NIF_TERM *argv = run->call.argv;
    ERL_NIF_TERM own_argv[TAME_MAX_ARGS];

    if (!tame_impl_expect(env, run, reference))
        return 0;
    for (int i = 0; i < run->call.impl_inputs_len; i++) {
        const int arg = run->call.impl_inputs[i].arg;

        own_argv[arg] = enif_make_copy(run->own_env, argv[arg]);
    }
    run->owned = 1;
    run->call.env = run->own_env;
    run->call.argv = NULL;
    return tame_impl_inputs(&run->call, own_argv);
}

/* No worker could be made. Where there is none at all, nobody would ever come for those that wait:
 * they came while the one was being made, and made none themselves. So they are told. */
static inline void tame_impl_pool_refuse(ErlNifEnv *env, struct tame_impl_pool *pool)
{
    struct tame_impl_run *run;

    do {
        enif_mutex_lock(pool->lock);
        run = pool->workers_len == 0 && !pool->starting ? tame_impl_queue_pop_run(&pool->young)
                                                        : NULL;
        if (run != NULL) {
            tame_impl_gate_of(run)->pooled--;
            (void)tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_WORKING);
        }
        enif_mutex_unlock(pool->lock);
        if (run != NULL) {
            (void)tame_impl_fault(&run->call, "system_limit");
            run->phase = TAME_IMPL_FAILS;
            tame_impl_hand_back(env, run);
            enif_release_resource(run); /* the queue's hold */
        }
    } while (run != NULL);
}

/* Puts the run into the pool's queue, with the hold that it was given. NULL, or why not. */
static inline const char *tame_impl_pool_enter(ErlNifEnv *env, struct tame_impl_pool *pool,
                                               struct tame_impl_run *run, int *spins)
{
    const char *refused = NULL;
    int start = 0;

    enif_mutex_lock(pool->lock);
    if (tame_impl_gate_of(run)->pooled >= tame_impl_max_waiting(run)) {
        refused = "busy";
    } else {
        *spins = pool->spinning > 0 && pool->young.len == 0 && tame_impl_worth_spinning(run);
        run->quiet = *spins;
        run->old = 0;
        tame_impl_gate_of(run)->pooled++;
        (void)tame_impl_move(&run->state, TAME_IMPL_CALLER, TAME_IMPL_POOLED);
        tame_impl_queue_push(&pool->young, &run->link);
        start = tame_impl_pool_wake(pool);
    }
    enif_mutex_unlock(pool->lock);
    if (!start || tame_impl_worker_start(pool))
        return refused;
    /* With other workers it waits for those. */
    enif_mutex_lock(pool->lock);
    if (pool->workers_len == 0 && tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_CALLER)) {
        (void)tame_impl_queue_remove(&pool->young, &run->link);
        tame_impl_gate_of(run)->pooled--;
        refused = "system_limit";
    }
    enif_mutex_unlock(pool->lock);
    tame_impl_pool_refuse(env, pool);
    return refused;
}

/* Gives the run to a thread. Returns 1 when the steps are done already and the run is the caller's
 * again; else *term is what the NIF returns: that the caller waits, or why not. */
static inline int tame_impl_submit(ErlNifEnv *env, struct tame_impl_run *run,
                                   ERL_NIF_TERM reference, ERL_NIF_TERM *term)
{
    struct tame_impl_pool *pool = run->instance->pool;
    const char *refused = NULL;
    int spins = 0;

    if (!tame_impl_own(env, run, reference)) {
        const int written = run->call.impl_failure != TAME_IMPL_NO_FAILURE;

        *term = written ? tame_impl_failure(env, run) : 0;
        tame_impl_end_here(env, run);
        if (!written) /* the caller lives: there is no other reason */
            *term = tame_impl_raise_enomem(env);
        return 0;
    }
    tame_impl_crowd(run, 0);
    enif_keep_resource(run); /* the queue's or the thread's hold */
    if (run->row->placement == TAME_THREAD) {
        run->quiet = 0;
        (void)tame_impl_move(&run->state, TAME_IMPL_CALLER, TAME_IMPL_POOLED);
        if (!tame_impl_thread_start(pool, run)) {
            (void)tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_CALLER);
            refused = "system_limit";
        }
    } else {
        refused = tame_impl_pool_enter(env, pool, run, &spins);
    }
    if (refused != NULL) {
        enif_release_resource(run);
        tame_impl_end_here(env, run);
        *term = tame_impl_error(env, refused);
        return 0;
    }
    if (spins && tame_impl_spin(run) &&
        tame_impl_move(&run->state, TAME_IMPL_DONE, TAME_IMPL_CALLER)) {
        tame_impl_unexpect(run);
        return 1;
    }
    *term = tame_impl_tagged(env, run, "wait", tame_impl_run_term(env, run));
    return 0;
}

#endif
