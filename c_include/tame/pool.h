/* tame/pool.h - threads of the library's own: a bounded pool of workers, and a thread per call.
 *
 * Part of tame.h. First come, first served. A caller that dies takes its call with it, whether it
 * waits, runs or is done. How a run gets here is in tame/submit.h. */
#ifndef TAME_POOL_H
#define TAME_POOL_H

#include "finish.h"
#include "thread.h"
#include "work.h"

struct tame_impl_pool {
    ErlNifMutex *lock; /* guards everything below */
    ErlNifCond *work;  /* signalled for workers: a run waits, or the pool closes */
    ErlNifCond *ended; /* signalled for the reaper: a thread of its own has ended */
    ErlNifCond *idle;  /* signalled for tame_impl_pool_halt: no worker is busy */
    struct tame_impl_queue waiting;
    struct tame_impl_queue finished; /* runs of `thread` whose thread is to be joined */
    /* A worker spins for work; never more than one, so that idle workers cost one core at most. */
    int spinning;
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

/* ---- on a thread of ours ---- */

/* {Ref, done} to the caller. No term of the author's is made on this thread: only what any thread
 * may make. */
static inline void tame_impl_send_done(struct tame_impl_run *run, ErlNifEnv *message,
                                       ERL_NIF_TERM reference)
{
    /* A caller that has died meanwhile is no error. */
    (void)enif_send(NULL, &run->waiter.caller, message,
                    enif_make_tuple2(message, reference, enif_make_atom(message, "done")));
    enif_free_env(message);
}

/* All steps in one go, and the next one only if the caller still lives; then the message. */
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
    if (tame_impl_claim(run, TAME_IMPL_BY_SPIN, TAME_IMPL_THERE))
        return;
    /* Before it is there, because from then on own_env may be the caller's. */
    message = enif_alloc_env();
    reference = enif_make_copy(message, run->waiter.reference);
    (void)tame_impl_claim(run, TAME_IMPL_BY_MESSAGE, TAME_IMPL_THERE);
    tame_impl_send_done(run, message, reference);
    /* See tame_impl_run_down (tame/again.h). */
    if (__atomic_load_n(&run->stop, __ATOMIC_SEQ_CST) &&
        tame_impl_claim(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN))
        tame_impl_drop(NULL, run);
}

/* How long a worker that has just ended a run spins for the next before it sleeps: to wake a thread
 * costs 5 to 50 us. The VM's own dirty schedulers do the same (+sbwtdcpu). */
#define TAME_IMPL_WORKER_SPIN_NS 50000

/* Looks for work without the lock. Returns 0 when none came. */
static inline int tame_impl_spin_for_work(struct tame_impl_pool *pool)
{
    const uint64_t start_ns = tame_now_ns();

    do {
        for (int i = 0; i < 50; i++) {
            if (__atomic_load_n(&pool->waiting.len, __ATOMIC_RELAXED) > 0)
                return 1;
            tame_impl_pause();
        }
    } while (tame_now_ns() - start_ns < TAME_IMPL_WORKER_SPIN_NS);
    return 0;
}

static inline void *tame_impl_worker(void *arg)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)arg;
    int spin = 0; /* after work, once */

    tame_impl_thread_unbind();
    enif_mutex_lock(pool->lock);
    for (;;) {
        struct tame_impl_run *run = tame_impl_queue_pop_run(&pool->waiting);

        if (run == NULL) {
            if (pool->closing)
                break;
            if (spin && !pool->spinning) {
                pool->spinning = 1;
                enif_mutex_unlock(pool->lock);
                spin = tame_impl_spin_for_work(pool);
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
    tame_impl_queue_push(&pool->finished, &run->link); /* the reaper owns the pool's hold now */
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
        struct tame_impl_run *run = tame_impl_queue_pop_run(&pool->finished);

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
    waited = tame_impl_queue_remove(&pool->waiting, &run->link);
    if (waited)
        tame_impl_gate(run)->pooled--;
    enif_mutex_unlock(pool->lock);
    if (waited)
        enif_release_resource(run); /* the queue's hold; the destructor cleans up */
}

/* ---- life cycle ---- */

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

#endif
