/* tame/call_thread.h - a thread for one call, and who joins it (TAME_THREAD).
 *
 * Part of tame.h. A thread makes the steps of its run as a worker of the pool does, and is gone then. */
#ifndef TAME_CALL_THREAD_H
#define TAME_CALL_THREAD_H

#include "pool.h"

/* A thread for one call. Owned by who makes it, from its end on by the reaper. */
struct tame_impl_thread {
    struct tame_impl_link link; /* first */
    struct tame_impl_run *run;  /* a hold on it: as long as there are runs, the library is there */
    ErlNifTid tid;
    int known; /* guarded by the pool's lock: the thread may end before its maker has its tid */
};

static inline void *tame_impl_call_thread(void *arg)
{
    struct tame_impl_thread *thread = (struct tame_impl_thread *)arg;
    struct tame_impl_run *run = thread->run;
    struct tame_impl_pool *pool = run->instance->pool;

    tame_impl_os_unbind();
    (void)tame_impl_os_give_way(1);
    if (tame_impl_move(&run->state, TAME_IMPL_POOLED, TAME_IMPL_WORKING))
        (void)tame_impl_work(pool, run);
    enif_mutex_lock(pool->lock);
    tame_impl_queue_push(&pool->finished, &thread->link); /* the reaper's now */
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
        struct tame_impl_thread *thread = (struct tame_impl_thread *)pool->finished.head;

        if (thread == NULL || !thread->known) {
            enif_cond_wait(pool->ended, pool->lock);
            continue;
        }
        (void)tame_impl_queue_pop(&pool->finished);
        pool->threads--;
        enif_mutex_unlock(pool->lock);
        enif_thread_join(thread->tid, NULL);
        enif_release_resource(thread->run);
        enif_free(thread);
        enif_mutex_lock(pool->lock);
    }
    enif_mutex_unlock(pool->lock);
    return NULL;
}

/* The most threads of TAME_THREAD at once, for each library; a library may define another number. */
#ifndef TAME_MAX_THREADS
#define TAME_MAX_THREADS 1024
#endif

/* Makes the thread of a run that is POOLED. Returns 0 when the system gives none. */
static inline int tame_impl_thread_start(struct tame_impl_pool *pool, struct tame_impl_run *run)
{
    struct tame_impl_thread *thread = (struct tame_impl_thread *)enif_alloc(sizeof *thread);
    int made, reaper;

    if (thread == NULL)
        return 0;
    memset(thread, 0, sizeof *thread);
    thread->run = run; /* with the hold that it was given */
    enif_mutex_lock(pool->lock);
    /* Under the lock, once for each library: the thread of a call may end at any time after it. */
    if (!pool->reaper_runs)
        pool->reaper_runs =
            tame_impl_thread_create("tame_reaper", &pool->reaper, tame_impl_reap, pool, 0) == 0;
    reaper = pool->reaper_runs && pool->threads < TAME_MAX_THREADS;
    pool->threads += (uint32_t)reaper;
    enif_mutex_unlock(pool->lock);
    made = reaper && tame_impl_thread_create("tame_call", &thread->tid, tame_impl_call_thread,
                                             thread, run->row->job->stack_kib) == 0;
    enif_mutex_lock(pool->lock);
    thread->known = made;
    pool->threads -= (uint32_t)(reaper && !made);
    enif_cond_signal(pool->ended);
    enif_mutex_unlock(pool->lock);
    if (!made)
        enif_free(thread);
    return made;
}

#endif
