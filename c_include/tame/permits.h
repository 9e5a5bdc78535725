/* tame/permits.h - a semaphore of all libraries of the VM: a worker that has a run has a permit.
 *
 * Part of tame.h; usable alone. Plain C. Each library has a pool of its own, because a thread that
 * runs a library's steps would keep it loaded. But workers take cores from schedulers, whosever they
 * are; so there are permits for as many as one pool would have. They are in a resource of the module
 * tame_permits, which '$tame'/3 is given (tame/verb.h); a library that is given none has its own.
 *
 * First come, first served. Who has a permit gives it back where another waits and its turn is over
 * (tame/place.h). A step that blocks keeps its permit, and must not stop other libraries: where no
 * permit has moved for TAME_IMPL_PERMITS_STUCK_NS, the first of those that wait goes on without. */
#ifndef TAME_PERMITS_H
#define TAME_PERMITS_H

#include "clock.h"
#include "queue.h"
#include <pthread.h>
#include <string.h>

/* -std=c11 hides this one as it hides what tame/clock.h declares. */
#if defined(__GLIBC__) && !defined(__USE_XOPEN2K)
int pthread_condattr_setclock(pthread_condattr_t *, int);
#endif

/* The resource's type, of the module TAME_IMPL_PERMITS_OWNER. The number in its name, which is the
 * layout, changes with what libraries share: the struct below, struct tame_impl_link, and the clock
 * that `given` goes by. */
#define TAME_IMPL_PERMITS_OWNER "tame_permits"
#define TAME_IMPL_PERMITS_TYPE "tame_permits_2"
#define TAME_IMPL_PERMITS_LAYOUT 2

/* Ten turns of a run that gives way. */
#define TAME_IMPL_PERMITS_STUCK_NS UINT64_C(100000000)

struct tame_impl_permits {
    uint32_t layout;      /* first in any */
    uint32_t taken;       /* guarded by the lock; read without it, too */
    uint64_t moved_ns;    /* when one was taken or given; guarded by the lock */
    pthread_mutex_t lock; /* the last that a thread takes */
    pthread_cond_t given; /* for all: a permit is free, another is first, or a pool closes */
    struct tame_impl_queue waiting; /* guarded by the lock; its len is read without it, too */
};

/* Waits for it are timed by the monotonic clock: the wall clock may be set meanwhile. macOS has a
 * wait of its own for that. */
static inline int tame_impl_permits_open_given(pthread_cond_t *given)
{
#ifdef __APPLE__
    return pthread_cond_init(given, NULL) == 0;
#else
    pthread_condattr_t attributes;
    int is_open;

    if (pthread_condattr_init(&attributes) != 0)
        return 0;
    is_open = pthread_condattr_setclock(&attributes, TAME_IMPL_CLOCK) == 0 &&
              pthread_cond_init(given, &attributes) == 0;
    (void)pthread_condattr_destroy(&attributes);
    return is_open;
#endif
}

/* Returns 0 when the system has none; then there is nothing to close. */
static inline int tame_impl_permits_open(struct tame_impl_permits *permits)
{
    memset(permits, 0, sizeof *permits);
    if (pthread_mutex_init(&permits->lock, NULL) != 0)
        return 0;
    if (!tame_impl_permits_open_given(&permits->given)) {
        (void)pthread_mutex_destroy(&permits->lock);
        return 0;
    }
    permits->layout = TAME_IMPL_PERMITS_LAYOUT;
    return 1;
}

static inline void tame_impl_permits_close(struct tame_impl_permits *permits)
{
    (void)pthread_cond_destroy(&permits->given);
    (void)pthread_mutex_destroy(&permits->lock);
}

/* Until `given` is signalled, but for ns at most. */
static inline void tame_impl_permits_await(struct tame_impl_permits *permits, uint64_t ns)
{
    struct timespec until;

#ifndef __APPLE__
    ns += tame_now_ns();
#endif
    until.tv_sec = (time_t)(ns / UINT64_C(1000000000));
    until.tv_nsec = (long)(ns % UINT64_C(1000000000));
#ifdef __APPLE__
    (void)pthread_cond_timedwait_relative_np(&permits->given, &permits->lock, &until);
#else
    (void)pthread_cond_timedwait(&permits->given, &permits->lock, &until);
#endif
}

/* One more is taken, or fewer are; under the lock. */
static inline void tame_impl_permits_move(struct tame_impl_permits *permits, uint32_t taken)
{
    __atomic_store_n(&permits->taken, taken, __ATOMIC_RELAXED);
    permits->moved_ns = tame_now_ns();
    if (permits->waiting.len > 0)
        (void)pthread_cond_broadcast(&permits->given);
}

/* Waits for a permit of `limit`. Returns 0, without one, when *closing is set;
 * tame_impl_permits_wake tells of that. */
static inline int tame_impl_permits_take(struct tame_impl_permits *permits, uint32_t limit,
                                         const int *closing)
{
    struct tame_impl_link me;
    int closed;

    memset(&me, 0, sizeof me);
    (void)pthread_mutex_lock(&permits->lock);
    tame_impl_queue_push(&permits->waiting, &me);
    for (;;) {
        const uint64_t still_ns = tame_now_ns() - permits->moved_ns;

        closed = __atomic_load_n(closing, __ATOMIC_RELAXED);
        if (closed || (permits->waiting.head == &me &&
                       (permits->taken < limit || still_ns >= TAME_IMPL_PERMITS_STUCK_NS)))
            break;
        tame_impl_permits_await(permits, still_ns >= TAME_IMPL_PERMITS_STUCK_NS
                                             ? TAME_IMPL_PERMITS_STUCK_NS
                                             : TAME_IMPL_PERMITS_STUCK_NS - still_ns);
    }
    (void)tame_impl_queue_remove(&permits->waiting, &me);
    tame_impl_permits_move(permits, permits->taken + (closed ? 0 : 1));
    (void)pthread_mutex_unlock(&permits->lock);
    return !closed;
}

static inline void tame_impl_permits_give(struct tame_impl_permits *permits)
{
    (void)pthread_mutex_lock(&permits->lock);
    tame_impl_permits_move(permits, permits->taken - 1);
    (void)pthread_mutex_unlock(&permits->lock);
}

/* After *closing of tame_impl_permits_take was set. */
static inline void tame_impl_permits_wake(struct tame_impl_permits *permits)
{
    (void)pthread_mutex_lock(&permits->lock);
    (void)pthread_cond_broadcast(&permits->given);
    (void)pthread_mutex_unlock(&permits->lock);
}

/* How many wait for a permit; without the lock. */
static inline uint32_t tame_impl_permits_waiting(const struct tame_impl_permits *permits)
{
    return __atomic_load_n(&permits->waiting.len, __ATOMIC_RELAXED);
}

/* Whether who has a permit is to give it back: another waits, or there are fewer now. */
static inline int tame_impl_permits_wanted(const struct tame_impl_permits *permits, uint32_t limit)
{
    return tame_impl_permits_waiting(permits) > 0 ||
           __atomic_load_n(&permits->taken, __ATOMIC_RELAXED) > limit;
}

#endif
