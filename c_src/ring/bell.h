/* bell.h - the doorbell: how one side of the ring wakes the other.
 *
 * A word in the shared memory that the system lets threads sleep on (os.h). A sleeper takes the word
 * with bell_read, sees that there is nothing to do, and calls bell_wait with it; a bell_ring after
 * the reading ends the wait.
 *
 * The other side may change the word as it likes: it can wake us for nothing or make us miss a
 * ring. So the VM bounds each of its waits (timeout_ms), and who waits must not count on a wake-up
 * having a reason. */
#ifndef TAME_RING_BELL_H
#define TAME_RING_BELL_H

#include <limits.h>
#include <stdint.h>

#include "../os/os.h"

static inline uint32_t bell_read(const uint32_t *bell)
{
    return __atomic_load_n(bell, __ATOMIC_SEQ_CST);
}

static inline void bell_wake(uint32_t *bell, int sleepers)
{
    __atomic_fetch_add(bell, 1, __ATOMIC_SEQ_CST);
    os_wake(bell, sleepers);
}

/* Wakes one sleeper, or the next that calls bell_wait with an older reading. */
static inline void bell_ring(uint32_t *bell)
{
    bell_wake(bell, 1);
}

static inline void bell_ring_all(uint32_t *bell)
{
    bell_wake(bell, INT_MAX);
}

/* Sleeps until the bell rings, if it has not since it was `read`; at most timeout_ms, or without
 * end when that is negative. May return early for no reason. Returns 0 when the time is over. */
static inline int bell_wait(uint32_t *bell, uint32_t read, int timeout_ms)
{
    return os_wait(bell, read, timeout_ms);
}

#endif
