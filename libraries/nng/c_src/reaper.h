/* reaper.h - a thread that ends what takes time to end: nng_close and nng_aio_free wait for nng's
 * own threads, and a socket's owner may die on a scheduler.
 *
 * What is given to it is ended in order, one after the other. nng_close may take for ever (README,
 * "Limits"); but it tells peers, frees addresses and ends calls that wait before it waits itself. So
 * where one takes longer than TN_REAPER_LATE_MS another thread goes on with the next, and with the
 * one after that sooner, up to TN_REAPERS of them. They end when all is done and the library goes.
 * Nobody waits for that: the code stays mapped. A file that the VM loads anew is the same library, so
 * openings are counted. */
#ifndef TAME_NNG_REAPER_H
#define TAME_NNG_REAPER_H

#include <stdint.h>
#include <time.h>

#include "thread.h"

#define TN_REAPER_LATE_MS 1000
#define TN_REAPER_SOONER_MS 20 /* while one is late */
#define TN_REAPERS 256

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
    int threads, idle, late;
    uint64_t taken;            /* how many; the number of the last one */
    uint64_t running;          /* the number of the one that is not late; 0: none */
    struct timespec late_from; /* of that */
} tn_reaper = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER};

static inline void *tn_reaper_run(void *arg);

/* Under the lock. Returns 0, or an error. */
static inline int tn_reaper_thread(void)
{
    const int error = tn_thread(tn_reaper_run, NULL);

    if (error == 0) {
        tn_reaper.threads++;
        tn_reaper.idle++;
    }
    return error;
}

static inline int tn_reaper_is_late(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec > tn_reaper.late_from.tv_sec ||
           (now.tv_sec == tn_reaper.late_from.tv_sec && now.tv_nsec >= tn_reaper.late_from.tv_nsec);
}

static inline void tn_reaper_late_in(int ms)
{
    (void)clock_gettime(CLOCK_MONOTONIC, &tn_reaper.late_from);
    tn_reaper.late_from.tv_nsec += (long)ms * 1000000;
    tn_reaper.late_from.tv_sec += tn_reaper.late_from.tv_nsec / 1000000000;
    tn_reaper.late_from.tv_nsec %= 1000000000;
}

/* Under the lock: waits until something is to be ended here. NULL: the library has gone, or there are
 * more of us than the one that works and the one that would go on. */
static inline struct tn_reap *tn_reaper_next(void)
{
    for (;;) {
        struct tn_reap *reap = tn_reaper.first;

        if (reap == NULL && (tn_reaper.ends || tn_reaper.idle > 2))
            return NULL;
        if (reap == NULL) {
            (void)pthread_cond_wait(&tn_reaper.work, &tn_reaper.lock);
        } else if (tn_reaper.running != 0 && !tn_reaper_is_late()) {
            (void)pthread_cond_clockwait(&tn_reaper.work, &tn_reaper.lock, CLOCK_MONOTONIC,
                                         &tn_reaper.late_from);
        } else {
            tn_reaper.first = reap->next;
            if (tn_reaper.first == NULL)
                tn_reaper.last = NULL;
            return reap;
        }
    }
}

/* Under the lock, but while it runs. */
static inline void tn_reaper_end(struct tn_reap *reap)
{
    const uint64_t number = ++tn_reaper.taken;

    tn_reaper.late += tn_reaper.running != 0;
    tn_reaper.running = number;
    tn_reaper_late_in(tn_reaper.late > 0 ? TN_REAPER_SOONER_MS : TN_REAPER_LATE_MS);
    tn_reaper.idle--;
    /* Who goes on if this takes long. */
    if (tn_reaper.idle == 0 && tn_reaper.threads < TN_REAPERS)
        (void)tn_reaper_thread();
    (void)pthread_mutex_unlock(&tn_reaper.lock);
    reap->run(reap);
    (void)pthread_mutex_lock(&tn_reaper.lock);
    tn_reaper.idle++;
    if (tn_reaper.running == number)
        tn_reaper.running = 0;
    else
        tn_reaper.late--;
    (void)pthread_cond_broadcast(&tn_reaper.work);
}

static inline void *tn_reaper_run(void *arg)
{
    struct tn_reap *reap;

    (void)arg;
    (void)pthread_mutex_lock(&tn_reaper.lock);
    while ((reap = tn_reaper_next()) != NULL)
        tn_reaper_end(reap);
    tn_reaper.threads--;
    tn_reaper.idle--;
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
    (void)pthread_cond_broadcast(&tn_reaper.work);
    (void)pthread_mutex_unlock(&tn_reaper.lock);
}

/* For a library that is loaded, or taken over by itself. Returns 0, or it must not be loaded. */
static inline int tn_reaper_open(void)
{
    int error = 0;

    (void)pthread_mutex_lock(&tn_reaper.lock);
    tn_reaper.ends = 0;
    if (tn_reaper.idle == 0)
        error = tn_reaper_thread();
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
