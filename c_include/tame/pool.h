/* tame/pool.h - threads of the library's own: a bounded pool of workers.
 *
 * Part of tame.h. First come, first served, among those that have not had their share; a run that has
 * gives way to them (tame/place.h). A caller that dies takes its call with it, whether it waits, runs
 * or is done. How a run gets here is in tame/submit.h; a thread for one call in tame/call_thread.h,
 * which the pool keeps until it is joined. */
#ifndef TAME_POOL_H
#define TAME_POOL_H

#include "os.h"
#include "permits.h"
#include "thread.h"
#include "work.h"

struct tame_impl_pool {
    struct tame_impl_instance *instance;
    struct tame_impl_permits *permits; /* atomic: all libraries', a resource that is held, or */
    struct tame_impl_permits own;      /* those of this pool */
    ErlNifMutex *lock;                 /* guards everything below */
    ErlNifCond *work;  /* signalled for a worker: a run waits; for all: the pool closes */
    ErlNifCond *ended; /* signalled for the reaper: a thread of its own has ended */
    ErlNifCond *idle;  /* signalled for tame_impl_pool_halt: no worker is busy */
    struct tame_impl_queue young, old; /* each entry is a hold on its run */
    uint32_t young_in_a_row;
    struct tame_impl_queue finished; /* threads of `thread` that are to be joined */
    /* A worker spins for work; never more than one, so that idle workers cost one core at most. */
    int spinning;
    uint32_t sleeping; /* workers that wait for `work`, */
    uint32_t seeking;  /* and for a permit */
    int waking;        /* one of them is being woken, */
    int starting;      /* or one more is being made, until it looks; it sees to the next */
    uint32_t busy;     /* workers that have a run */
    int closing;       /* atomic, because who waits for a permit reads it */
    uint32_t threads;  /* of `thread`, not yet joined */
    uint32_t workers_max, workers_len;
    int reaper_runs;
    uint32_t stack_kib; /* of a worker: the largest that a job asks for */
    ErlNifTid *workers; /* workers_max of them */
    ErlNifTid reaper;
};

static inline struct tame_impl_permits *tame_impl_pool_permits(struct tame_impl_pool *pool)
{
    return __atomic_load_n(&pool->permits, __ATOMIC_ACQUIRE);
}

/* ---- on a thread of ours ---- */

/* The run is through here: its caller is told, if it waits in receive. `env` is that of the NIF that
 * this is called from; NULL on a thread of ours. */
static inline void tame_impl_hand_back(ErlNifEnv *env, struct tame_impl_run *run)
{
    struct tame_impl_message message;
    int spins = 1;

    if (__atomic_compare_exchange_n(&run->quiet, &spins, 2, 0, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        if (tame_impl_move(&run->state, TAME_IMPL_WORKING, TAME_IMPL_DONE))
            return;
    } else {
        message = tame_impl_go_message(run);
        if (tame_impl_move(&run->state, TAME_IMPL_WORKING, TAME_IMPL_DONE)) {
            tame_impl_send(env, &message);
            return;
        }
        enif_free_env(message.env);
    }
    (void)tame_impl_move(&run->state, TAME_IMPL_STOPPED, TAME_IMPL_ENDED);
    tame_impl_end(env, run);
}

/* The steps of a run that is WORKING, in pieces. Returns 1 when it gave way: then it is POOLED. */
static inline int tame_impl_work(struct tame_impl_pool *pool, struct tame_impl_run *run)
{
    const struct tame_impl_permits *permits = tame_impl_pool_permits(pool);
    const uint64_t start_ns = tame_now_ns();
    uint64_t now_ns = start_ns;
    enum tame_status status;

    for (;;) {
        status = tame_impl_long_slice(NULL, run, now_ns, TAME_IMPL_YIELD_EVERY_NS, &run->state,
                                      TAME_IMPL_WORKING);
        now_ns = tame_now_ns();
        if (status == TAME_DONE) {
            tame_impl_next_phase(run);
            if (run->phase == TAME_IMPL_GATHER)
                status = TAME_MORE;
        }
        if (status != TAME_MORE || tame_impl_state(&run->state) != TAME_IMPL_WORKING)
            break;
        if (__atomic_load_n(&run->instance->halting, __ATOMIC_RELAXED)) {
            /* The VM ends: nobody asks for the result. */
            (void)tame_impl_move(&run->state, TAME_IMPL_WORKING, TAME_IMPL_STOPPED);
            break;
        }
        if (run->row->placement != TAME_THREAD &&
            tame_impl_place_gives_way(now_ns - start_ns, run->old,
                                      __atomic_load_n(&pool->young.len, __ATOMIC_RELAXED) +
                                          tame_impl_permits_waiting(permits),
                                      __atomic_load_n(&pool->old.len, __ATOMIC_RELAXED))) {
            int gave_way;

            run->old = 1;
            enif_mutex_lock(pool->lock);
            gave_way = tame_impl_move(&run->state, TAME_IMPL_WORKING, TAME_IMPL_POOLED);
            if (gave_way)
                tame_impl_queue_push(&pool->old, &run->link); /* our hold is the queue's now */
            enif_mutex_unlock(pool->lock);
            if (gave_way)
                return 1;
            break;
        }
    }
    if (tame_impl_move(&run->state, TAME_IMPL_STOPPED, TAME_IMPL_ENDED)) {
        /* Now, not in the destructor: the caller's stack may hold the run until its next
         * collection. */
        tame_impl_end(NULL, run);
        return 0;
    }
    run->part = status == TAME_PART;
    run->phase = status == TAME_DONE   ? TAME_IMPL_BUILD
                 : status == TAME_PART ? TAME_IMPL_STEPS
                                       : TAME_IMPL_FAILS;
    tame_impl_hand_back(NULL, run);
    return 0;
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
            if (__atomic_load_n(&pool->young.len, __ATOMIC_RELAXED) > 0)
                return 1;
            tame_impl_pause();
        }
        (void)sched_yield(); /* the caller whose run has just ended may wait for this core */
    } while (tame_now_ns() - start_ns < TAME_IMPL_WORKER_SPIN_NS);
    return 0;
}

/* As many workers may have a run as schedulers are online. */
static inline uint32_t tame_impl_pool_limit(struct tame_impl_pool *pool)
{
    const uint32_t limit = tame_impl_schedulers(pool->instance);

    return limit < pool->workers_max ? limit : pool->workers_max;
}

/* The next run, which is WORKING now. Called with the lock, where one waits. */
static inline struct tame_impl_run *tame_impl_pool_next(struct tame_impl_pool *pool)
{
    struct tame_impl_run *run;
    int old;

    old = tame_impl_place_takes_old(pool->young.len, pool->old.len, pool->young_in_a_row);
    pool->young_in_a_row = old ? 0 : pool->young_in_a_row + 1;
    run = tame_impl_queue_pop_run(old ? &pool->old : &pool->young);
    if (!run->old)
        tame_impl_gate_of(run)->pooled--;
    (void)tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_WORKING);
    return run;
}

/* Sees to it that somebody takes what waits: one worker is woken at a time, and one more is made only
 * when none sleeps; who has been woken wakes the next. Called with the lock. Returns 1 when the
 * caller of this has to make a worker, without the lock. */
static inline int tame_impl_pool_wake(struct tame_impl_pool *pool)
{
    const uint32_t waiting = pool->young.len + pool->old.len;
    const uint32_t limit = tame_impl_pool_limit(pool);

    if (waiting <= (uint32_t)pool->spinning || pool->seeking > 0 || pool->waking ||
        pool->starting || pool->closing || pool->busy >= limit)
        return 0;
    if (pool->sleeping > 0) {
        pool->waking = 1;
        enif_cond_signal(pool->work);
        return 0;
    }
    pool->starting = pool->workers_len < limit;
    pool->workers_len += (uint32_t)pool->starting; /* its place is kept */
    return pool->starting;
}

static inline void *tame_impl_worker(void *arg);

/* Makes the worker whose place tame_impl_pool_wake has kept. Returns 0 when the system gives no
 * thread. Nobody is woken while it is made, because it looks itself at what came meanwhile: so it is
 * being made until it looks, and not only until its maker goes on, which may be long after. */
static inline int tame_impl_worker_start(struct tame_impl_pool *pool)
{
    ErlNifTid *tid = &pool->workers[pool->workers_len - 1]; /* no other is kept meanwhile */
    const int made =
        tame_impl_thread_create("tame_worker", tid, tame_impl_worker, pool, pool->stack_kib) == 0;

    if (made)
        return 1;
    enif_mutex_lock(pool->lock);
    pool->workers_len--;
    pool->starting = 0;
    enif_cond_signal(pool->work); /* for what came meanwhile */
    enif_mutex_unlock(pool->lock);
    return 0;
}

/* Waits for a run: a short while spinning after one, as *spin says, and then asleep. Called with the
 * lock. */
static inline void tame_impl_await_work(struct tame_impl_pool *pool, int *spin)
{
    if (*spin && !pool->spinning) {
        pool->spinning = 1;
        enif_mutex_unlock(pool->lock);
        *spin = tame_impl_spin_for_work(pool);
        enif_mutex_lock(pool->lock);
        pool->spinning = 0;
        return;
    }
    *spin = 0;
    pool->sleeping++;
    enif_cond_wait(pool->work, pool->lock);
    pool->sleeping--;
    pool->waking = 0;
}

/* Gives *permit back where nothing waits here, or another waits for one; and waits for one where a
 * run does. Returns 1 with a permit and a run that waits, else the worker is to look again. Called
 * with the lock. */
static inline int tame_impl_permitted(struct tame_impl_pool *pool,
                                      struct tame_impl_permits **permit)
{
    const uint32_t waiting = pool->young.len + pool->old.len;
    const uint32_t limit = tame_impl_pool_limit(pool);
    struct tame_impl_permits *permits = tame_impl_pool_permits(pool);

    if (*permit != NULL && (waiting == 0 || tame_impl_permits_wanted(*permit, limit))) {
        tame_impl_permits_give(*permit);
        *permit = NULL;
    }
    if (*permit != NULL || waiting == 0)
        return *permit != NULL;
    pool->seeking++;
    enif_mutex_unlock(pool->lock);
    if (tame_impl_permits_take(permits, limit, &pool->closing))
        *permit = permits;
    enif_mutex_lock(pool->lock);
    pool->seeking--;
    /* The lock was away: the pool may close by now. */
    return *permit != NULL && !pool->closing && pool->young.len + pool->old.len > 0;
}

static inline void *tame_impl_worker(void *arg)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)arg;
    struct tame_impl_permits *permit = NULL; /* one of these is its */
    int spin = 0;                            /* after work, once */

    tame_impl_os_unbind();
    (void)tame_impl_os_give_way(1);
    enif_mutex_lock(pool->lock);
    pool->starting = 0;
    while (!pool->closing) {
        struct tame_impl_run *run;
        int more;

        if (!tame_impl_permitted(pool, &permit)) {
            if (!pool->closing && permit == NULL && pool->young.len + pool->old.len == 0)
                tame_impl_await_work(pool, &spin);
            continue;
        }
        run = tame_impl_pool_next(pool);
        spin = 1;
        pool->busy++;
        more = tame_impl_pool_wake(pool);
        enif_mutex_unlock(pool->lock);

        if (more)
            (void)tame_impl_worker_start(pool);
        if (!tame_impl_work(pool, run))
            enif_release_resource(run); /* the pool's hold on it */

        enif_mutex_lock(pool->lock);
        if (--pool->busy == 0)
            enif_cond_signal(pool->idle);
    }
    if (permit != NULL)
        tame_impl_permits_give(permit);
    enif_mutex_unlock(pool->lock);
    return NULL;
}

/* Takes a run whose caller does not want it any more out of the queue. Returns 0 when a thread has it
 * by now. */
static inline int tame_impl_pool_forget(struct tame_impl_run *run)
{
    struct tame_impl_pool *pool = run->instance->pool;
    int ended, waited = 0;

    enif_mutex_lock(pool->lock);
    ended = tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_ENDED);
    if (ended && run->link.queue != NULL) { /* else its own thread is being made, and finds it so */
        if (!run->old)
            tame_impl_gate_of(run)->pooled--;
        waited = tame_impl_queue_remove(run->link.queue, &run->link);
    }
    enif_mutex_unlock(pool->lock);
    if (waited)
        enif_release_resource(run); /* the queue's hold; the caller of this has another */
    return ended;
}

/* ---- life cycle ---- */

/* No run is begun any more, and workers end. Called with the lock. */
static inline void tame_impl_pool_closing(struct tame_impl_pool *pool)
{
    __atomic_store_n(&pool->closing, 1, __ATOMIC_RELAXED);
    enif_cond_broadcast(pool->work);
    tame_impl_permits_wake(tame_impl_pool_permits(pool));
}

/* No run lives any more: the VM puts an unload off until the last resource of the library is gone.
 * So all workers are idle. */
static inline void tame_impl_pool_close(struct tame_impl_pool *pool)
{
    if (pool->permits != NULL) {
        enif_mutex_lock(pool->lock);
        tame_impl_pool_closing(pool);
        enif_cond_broadcast(pool->ended);
        enif_mutex_unlock(pool->lock);
    }
    while (pool->workers_len > 0)
        enif_thread_join(pool->workers[--pool->workers_len], NULL);
    if (pool->reaper_runs)
        enif_thread_join(pool->reaper, NULL);
    if (pool->permits != NULL) {
        if (pool->permits != &pool->own)
            enif_release_resource(pool->permits);
        tame_impl_permits_close(&pool->own);
    }
    if (pool->idle != NULL)
        enif_cond_destroy(pool->idle);
    if (pool->ended != NULL)
        enif_cond_destroy(pool->ended);
    if (pool->work != NULL)
        enif_cond_destroy(pool->work);
    if (pool->lock != NULL)
        enif_mutex_destroy(pool->lock);
    enif_free(pool->workers);
    enif_free(pool);
}

/* The VM is about to end, and halting is set: the runs of workers end after their step, none is begun
 * any more, and no worker is within the library when this returns. A thread of its own may block in a
 * step for ever; it is not waited for. */
static inline void tame_impl_pool_halt(struct tame_impl_pool *pool)
{
    enif_mutex_lock(pool->lock);
    tame_impl_pool_closing(pool);
    while (pool->busy > 0)
        enif_cond_wait(pool->idle, pool->lock);
    enif_mutex_unlock(pool->lock);
}

/* Threads are started when the first run needs them. */
static inline struct tame_impl_pool *tame_impl_pool_open(struct tame_impl_instance *instance,
                                                         uint32_t stack_kib)
{
    struct tame_impl_pool *pool = (struct tame_impl_pool *)enif_alloc(sizeof *pool);

    if (pool == NULL)
        return NULL;
    memset(pool, 0, sizeof *pool);
    pool->instance = instance;
    pool->stack_kib = stack_kib;
    pool->workers_max = instance->schedulers > 0 ? instance->schedulers : 1;
    pool->workers = (ErlNifTid *)enif_alloc(sizeof *pool->workers * pool->workers_max);
    pool->lock = enif_mutex_create((char *)"tame_pool");
    pool->work = enif_cond_create((char *)"tame_pool_work");
    pool->ended = enif_cond_create((char *)"tame_pool_ended");
    pool->idle = enif_cond_create((char *)"tame_pool_idle");
    if (pool->workers == NULL || pool->lock == NULL || pool->work == NULL || pool->ended == NULL ||
        pool->idle == NULL || !tame_impl_permits_open(&pool->own)) {
        tame_impl_pool_close(pool);
        return NULL;
    }
    pool->permits = &pool->own;
    return pool;
}

/* The permits of all libraries, from now on. */
static inline void tame_impl_pool_share(struct tame_impl_pool *pool,
                                        struct tame_impl_permits *permits)
{
    enif_mutex_lock(pool->lock);
    if (pool->permits == &pool->own) {
        enif_keep_resource(permits); /* the pool's, until it closes */
        __atomic_store_n(&pool->permits, permits, __ATOMIC_RELEASE);
    }
    enif_mutex_unlock(pool->lock);
}

#endif
