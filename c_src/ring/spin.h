/* spin.h - looking for something without sleeping, for a bounded time and only where it pays. */
#ifndef TAME_RING_SPIN_H
#define TAME_RING_SPIN_H

#include <stdint.h>
#include <time.h>

static inline uint64_t ring_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static inline void ring_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#define RING_SPIN_LOOKS 32 /* between two looks at the clock: 0.2 to 1.5 us */

/* Two looks at the clock as far apart as this: we were not running, somebody else wants the core.
 */
#define RING_DESCHEDULED_NS 15000

#endif
