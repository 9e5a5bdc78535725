/* tame/pool.h - runs off the schedulers: a bounded pool of threads, and a thread per call.
 *
 * Part of tame.h. The caller waits in receive, not on a thread: the NIF returns {'$tame', wait,
 * Ref, Again} to the wrapper tame:value/3, and {Ref, done} follows by enif_send when all steps are
 * done. Then the caller calls the NIF again (tame/again.h), which makes the result. First come,
 * first served; more calls than may wait are refused at once. A caller that dies takes its call
 * with it, whether it waits, runs or is done. */
#ifndef TAME_POOL_H
#define TAME_POOL_H

#include "gate.h"
#include "thread.h"

struct tame_impl_pool {
    ErlNifMutex *lock; /* guards everything below */
    ErlNifCond *work;  /* signalled for workers: a run waits, or the pool closes */
    ErlNifCond *ended; /* signalled for the reaper: a thread of its own has ended */
    ErlNifCond *idle;  /* signalled for who halts: no worker is busy */
    struct tame_impl_queue waiting;
    struct tame_impl_queue finished; /* runs of `thread` whose thread is to be joined */
    int spinning; /* a worker looks for work; never more than one, so that idle workers cost one
                     core at most */
    int sleeping; /* workers that wait for `work` */
    int busy;     /* workers that have a run */
    int closing;
    int threads; /* of `thread`, not yet joined */
    int workers_max;
    int workers_len;
    int reaper_runs;
    uint32_t stack_kib; /* of a worker: the largest that a job asks for */
    ErlNifTid *workers; /* workers_max of them */
    ErlNifTid reaper;
};

/* One worker for each regular scheduler. */
static inline int tame_impl_pool_size(const struct tame_impl_instance *instance)
{
    return instance->pool->workers_max;
}

/* ---- on a thread of ours -------------------------------------------------------------------- */

/* {Ref, done} to the caller. No term of the author's is made on this thread: only what any thread
 * may make. */
static inline void tame_impl_send_done(struct tame_impl_run *run, ErlNifEnv *message,
                                       ERL_NIF_TERM reference)
{
    /* A caller that has died meanwhile is no error. */
    (void)enif_send(NULL, &run->caller, message,
                    enif_make_tuple2(message, reference, enif_make_atom(message, "done")));
    enif_free_env(message);
}

/* All steps in one go, each of them looking whether the caller still lives; then the message. */
static inline void tame_impl_work(struct tame_impl_run *run)
{
    enum tame_status status = TAME_MORE;
    ErlNifEnv *message;
    ERL_NIF_TERM reference;

    while (status == TAME_MORE && !tame_impl_stopped(run))
        status = tame_impl_long_slice(run, tame_now_ns());
    if (status != TAME_DONE) {
        /* Now, not in the destructor: the caller's stack may hold the run until its next
         * collection. */
        tame_impl_drop(NULL, run);
        return;
    }
    if (tame_impl_turn(run, TAME_IMPL_LOOKED_FOR, TAME_IMPL_THERE))
        return;
    /* Before it is there, because from then on own_env may be the caller's. */
    message = enif_alloc_env();
    reference = enif_make_copy(message, run->reference);
    (void)tame_impl_turn(run, TAME_IMPL_BY_MESSAGE, TAME_IMPL_THERE);
    tame_impl_send_done(run, message, reference);
    /* See tame_impl_run_down. */
    if (__atomic_load_n(&run->stop, __ATOMIC_SEQ_CST) &&
        tame_impl_turn(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN))
        tame_impl_drop(NULL, run);
}

/* How long a worker that has just ended a run looks for the next before it sleeps: to wake a
 * thread costs 5 to 50 us. The VM's own dirty schedulers do the same (+sbwtdcpu). */
#define TAME_IMPL_SPIN_NS 50000

/* Looks for work without the lock. Returns 0 when none came. */
static inline int tame_impl_spin(struct tame_impl_pool *pool)
{
    const uint64_t start_ns = tame_now_ns();

    do {
        for (int i = 0; i < 50; i++) {
            if (__atomic_load_n(&pool->waiting.len, __ATOMIC_RELAXED) > 0)
                return 1;
            tame_impl_pause();
        }
    } while (tame_now_ns() - start_ns < TAME_IMPL_SPIN_NS);
    return 0;
}

static inline void *tame_impl_worker(void *arg)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)arg;
    int spin = 0; /* after work, once */

    tame_impl_thread_unbind();
    enif_mutex_lock(pool->lock);
    for (;;) {
        struct tame_impl_run *run = tame_impl_queue_pop(&pool->waiting);

        if (run == NULL) {
            if (pool->closing)
                break;
            if (spin && !pool->spinning) {
                pool->spinning = 1;
                enif_mutex_unlock(pool->lock);
                spin = tame_impl_spin(pool);
                enif_mutex_lock(pool->lock);
                pool->spinning = 0;
                continue;
            }
            spin = 0;
            pool->sleeping++;
            enif_cond_wait(pool->work, pool->lock);
            pool->sleeping--;
            continue;
        }
        spin = 1;
        tame_impl_gate(run)->pooled--;
        pool->busy++;
        enif_mutex_unlock(pool->lock);
        tame_impl_work(run);
        enif_release_resource(run); /* the pool's hold on it */
        enif_mutex_lock(pool->lock);
        if (--pool->busy == 0)
            enif_cond_signal(pool->idle);
    }
    enif_mutex_unlock(pool->lock);
    return NULL;
}

/* A thread for one call. The run outlives it: the reaper needs its thread id. */
static inline void *tame_impl_call_thread(void *arg)
{
    struct tame_impl_run *run = (struct tame_impl_run *)arg;
    struct tame_impl_pool *pool = run->instance->pool;

    tame_impl_thread_unbind();
    tame_impl_work(run);
    enif_mutex_lock(pool->lock);
    tame_impl_queue_push(&pool->finished, run); /* the reaper owns the pool's hold now */
    enif_cond_signal(pool->ended);
    enif_mutex_unlock(pool->lock);
    return NULL;
}

/* Joins the threads that have answered, so that no scheduler has to. */
static inline void *tame_impl_reap(void *arg)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)arg;

    enif_mutex_lock(pool->lock);
    while (!pool->closing || pool->threads > 0) {
        struct tame_impl_run *run = tame_impl_queue_pop(&pool->finished);

        if (run == NULL) {
            enif_cond_wait(pool->ended, pool->lock);
            continue;
        }
        pool->threads--;
        enif_mutex_unlock(pool->lock);
        enif_thread_join(run->tid, NULL);
        enif_release_resource(run);
        enif_mutex_lock(pool->lock);
    }
    enif_mutex_unlock(pool->lock);
    return NULL;
}

/* The caller of a run is dead; if it waits, it leaves the queue, where it would keep others out. */
static inline void tame_impl_pool_forget(struct tame_impl_run *run)
{
    struct tame_impl_pool *pool = run->instance->pool;
    int waited;

    enif_mutex_lock(pool->lock);
    waited = tame_impl_queue_remove(&pool->waiting, run);
    if (waited)
        tame_impl_gate(run)->pooled--;
    enif_mutex_unlock(pool->lock);
    if (waited)
        enif_release_resource(run); /* the queue's hold; the destructor cleans up */
}

/* ---- life cycle ------------------------------------------------------------------------------ */

/* No run lives any more: the VM puts an unload off until the last resource of the library is gone.
 * So all workers are idle. */
static inline void tame_impl_pool_close(struct tame_impl_pool *pool)
{
    if (pool->lock != NULL && pool->work != NULL && pool->ended != NULL) {
        enif_mutex_lock(pool->lock);
        pool->closing = 1;
        enif_cond_broadcast(pool->work);
        enif_cond_broadcast(pool->ended);
        enif_mutex_unlock(pool->lock);
    }
    while (pool->workers_len > 0)
        enif_thread_join(pool->workers[--pool->workers_len], NULL);
    if (pool->reaper_runs)
        enif_thread_join(pool->reaper, NULL);
    if (pool->idle != NULL)
        enif_cond_destroy(pool->idle);
    if (pool->ended != NULL)
        enif_cond_destroy(pool->ended);
    if (pool->work != NULL)
        enif_cond_destroy(pool->work);
    if (pool->lock != NULL)
        enif_mutex_destroy(pool->lock);
    if (pool->workers != NULL)
        enif_free(pool->workers);
    enif_free(pool);
}

/* The VM is about to end, and halting is set: the runs of workers end at their next step, and no
 * worker is within the library any more when this returns. A thread of its own may block in a step
 * for ever; it is not waited for. */
static inline void tame_impl_pool_halt(struct tame_impl_pool *pool)
{
    enif_mutex_lock(pool->lock);
    pool->closing = 1;
    enif_cond_broadcast(pool->work);
    while (pool->busy > 0)
        enif_cond_wait(pool->idle, pool->lock);
    enif_mutex_unlock(pool->lock);
}

/* Threads are started when the first run needs them. */
static inline struct tame_impl_pool *tame_impl_pool_open(uint32_t stack_kib)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)enif_alloc(sizeof *pool);
    ErlNifSysInfo info;

    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->stack_kib = stack_kib;
    enif_system_info(&info, sizeof info);
    pool->workers_max = info.scheduler_threads > 0 ? info.scheduler_threads : 1;
    pool->workers = (ErlNifTid *)enif_alloc(sizeof *pool->workers * (size_t)pool->workers_max);
    pool->lock = enif_mutex_create((char *)"tame_pool");
    pool->work = enif_cond_create((char *)"tame_pool_work");
    pool->ended = enif_cond_create((char *)"tame_pool_ended");
    pool->idle = enif_cond_create((char *)"tame_pool_idle");
    if (pool->workers == NULL || pool->lock == NULL || pool->work == NULL || pool->ended == NULL ||
        pool->idle == NULL) {
        tame_impl_pool_close(pool);
        return NULL;
    }
    return pool;
}

/* ---- on the caller's scheduler -----------------------------------------------------------------
 */

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

/* A caller whose run a worker takes at once looks for the result so long before it waits in
 * receive, because to be woken costs several us. Where that failed so often in a row, only one call
 * in so many tries. */
#define TAME_IMPL_LOOK_NS 5000
#define TAME_IMPL_LOOKS_FAILED 3
#define TAME_IMPL_LOOK_PERIOD 64

static inline int tame_impl_worth_a_look(struct tame_impl_run *run)
{
    uint32_t *failed = &run->instance->learned[run->row->index].looks_failed;

    return __atomic_load_n(failed, __ATOMIC_RELAXED) < TAME_IMPL_LOOKS_FAILED ||
           __atomic_fetch_add(failed, 1, __ATOMIC_RELAXED) % TAME_IMPL_LOOK_PERIOD == 0;
}

/* The result, if it is there soon; then *found is set. */
static inline ERL_NIF_TERM tame_impl_look(ErlNifEnv *env, struct tame_impl_run *run,
                                          const ERL_NIF_TERM argv[], int *found)
{
    uint32_t *failed = &run->instance->learned[run->row->index].looks_failed;
    const uint64_t start_ns = tame_now_ns();
    ERL_NIF_TERM result = 0;
    uint64_t used_ns;

    do {
        for (int i = 0;
             i < 16 && __atomic_load_n(&run->answer, __ATOMIC_ACQUIRE) != TAME_IMPL_THERE; i++)
            tame_impl_pause();
        used_ns = tame_now_ns() - start_ns;
    } while (__atomic_load_n(&run->answer, __ATOMIC_ACQUIRE) != TAME_IMPL_THERE &&
             used_ns < TAME_IMPL_LOOK_NS);
    *found = !tame_impl_turn(run, TAME_IMPL_LOOKED_FOR, TAME_IMPL_BY_MESSAGE) &&
             tame_impl_turn(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN);
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

    run->own_env = enif_alloc_env();
    if (run->own_env == NULL)
        return 0;
    for (int i = 0; i < run->call.impl_inputs_len; i++) {
        const int arg = run->call.impl_inputs[i].arg;

        own_argv[arg] = enif_make_copy(run->own_env, argv[arg]);
    }
    run->reference = enif_make_copy(run->own_env, reference);
    run->call.env = run->own_env;
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
    int looks = 0, found = 0;
    ERL_NIF_TERM term = 0;

    enif_self(env, &run->caller);
    /* Monitored before a thread can have it; the destructor of the resource ends the monitor. */
    if (!tame_impl_own(run, reference) ||
        enif_monitor_process(env, run, &run->caller, &run->monitor) != 0) {
        enif_release_resource(run);
        return tame_impl_raise_enomem(env);
    }

    enif_keep_resource(run); /* ours, until the result or the term below */
    enif_mutex_lock(pool->lock);
    if (run->row->placement == TAME_THREAD) {
        if (!tame_impl_thread_start(pool, run))
            refused = "system_limit";
    } else if (run->row->placement != TAME_AUTO && /* which has been let in long ago */
               tame_impl_gate(run)->pooled >= (limit > 0 ? limit : TAME_MAX_WAITING)) {
        refused = "busy";
    } else if (!tame_impl_pool_has_worker(pool)) {
        refused = "system_limit";
    } else {
        looks = pool->spinning > 0 && pool->waiting.len == 0 && tame_impl_worth_a_look(run);
        if (looks)
            run->answer = TAME_IMPL_LOOKED_FOR;
        tame_impl_queue_push(&pool->waiting, run); /* the queue owns the hold now */
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
        if (looks)
            term = tame_impl_look(env, run, argv, &found);
        if (!found)
            term = tame_impl_wait(env, run, reference, argv);
    }
    enif_release_resource(run);
    return term;
}

#endif
