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

/* The resource's type, of the module TAME_IMPL_PERMITS_OWNER. The number in its name, which is the
 * layout, changes with what libraries share: the struct below and struct tame_impl_link. */
#define TAME_IMPL_PERMITS_OWNER "tame_permits"
#define TAME_IMPL_PERMITS_TYPE "tame_permits_1"
#define TAME_IMPL_PERMITS_LAYOUT 1

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

/* Returns 0 when the system has none; then there is nothing to close. */
static inline int tame_impl_permits_open(struct tame_impl_permits *permits)
{
    memset(permits, 0, sizeof *permits);
    if (pthread_mutex_init(&permits->lock, NULL) != 0)
        return 0;
    if (pthread_cond_init(&permits->given, NULL) != 0) {
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

/* Until `given` is signalled, but for ns at most by the system's clock. A clock that is put back
 * meanwhile makes it longer. */
static inline void tame_impl_permits_await(struct tame_impl_permits *permits, uint64_t ns)
{
    struct timespec until;
    uint64_t until_ns;

    (void)timespec_get(&until, TIME_UTC);
    until_ns = (uint64_t)until.tv_nsec + ns;
    until.tv_sec += (time_t)(until_ns / UINT64_C(1000000000));
    until.tv_nsec = (long)(until_ns % UINT64_C(1000000000));
    (void)pthread_cond_timedwait(&permits->given, &permits->lock, &until);
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
