/* reaper.h - a thread that ends what takes time to end: nng_close and nng_aio_free wait for nng's
 * own threads, and a socket's owner may die on a scheduler.
 *
 * One thread for a library; it ends when all that was given to it is done and the library goes.
 * Nobody waits for that: nng_close may take for ever (README, "Limits"), and the code stays
 * mapped. A file that the VM loads anew is the same library, so openings are counted. */
#ifndef TAME_NNG_REAPER_H
#define TAME_NNG_REAPER_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* First member of what is given away; `run` frees it. */
struct tn_reap {
    struct tn_reap *next;
    void (*run)(struct tn_reap *reap);
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work;
    struct tn_reap *first, *last;
    int libraries, ends;
} tn_reaper = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static inline void *tn_reaper_run(void *arg)
{
    (void)arg;
    (void)pthread_mutex_lock(&tn_reaper.lock);
    for (;;) {
        struct tn_reap *reap = tn_reaper.first;

        if (reap == NULL && tn_reaper.ends)
            break;
        if (reap == NULL) {
            (void)pthread_cond_wait(&tn_reaper.work, &tn_reaper.lock);
            continue;
        }
        tn_reaper.first = reap->next;
        if (tn_reaper.first == NULL)
            tn_reaper.last = NULL;
        (void)pthread_mutex_unlock(&tn_reaper.lock);
        reap->run(reap);
        (void)pthread_mutex_lock(&tn_reaper.lock);
    }
    (void)pthread_mutex_unlock(&tn_reaper.lock);
    return NULL;
}

/* Without a lock, from any thread; never fails. */
static inline void tn_reaper_take(struct tn_reap *reap)
{
    reap->next = NULL;
    (void)pthread_mutex_lock(&tn_reaper.lock);
    if (tn_reaper.last == NULL)
        tn_reaper.first = reap;
    else
        tn_reaper.last->next = reap;
    tn_reaper.last = reap;
    (void)pthread_cond_signal(&tn_reaper.work);
    (void)pthread_mutex_unlock(&tn_reaper.lock);
}

/* For a library that is loaded, or taken over by itself. Returns 0, or it must not be loaded. */
static inline int tn_reaper_open(void)
{
    sigset_t all, before;
    pthread_t thread;
    int error = 0;

    (void)pthread_mutex_lock(&tn_reaper.lock);
    if (tn_reaper.libraries == 0) {
        tn_reaper.ends = 0;
        (void)sigfillset(&all); /* signals are the VM's */
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        error = pthread_create(&thread, NULL, tn_reaper_run, NULL);
        if (error == 0)
            (void)pthread_detach(thread);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    if (error == 0)
        tn_reaper.libraries++;
    (void)pthread_mutex_unlock(&tn_reaper.lock);
    return error != 0;
}

/* A library goes. */
static inline void tn_reaper_close(void)
{
    (void)pthread_mutex_lock(&tn_reaper.lock);
    tn_reaper.ends = --tn_reaper.libraries == 0;
    (void)pthread_cond_broadcast(&tn_reaper.work);
    (void)pthread_mutex_unlock(&tn_reaper.lock);
}

#endif
