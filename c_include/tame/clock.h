/* tame/clock.h - the time, and a pause between two readings of something that is about to change.
 *
 * Part of tame.h; usable alone. Plain C. */
#ifndef TAME_CLOCK_H
#define TAME_CLOCK_H

#include <stdint.h>
#include <time.h>

/* -std=c11 hides what POSIX adds to time.h; then it is declared here, as Linux has it. */
#if !defined(CLOCK_MONOTONIC) && defined(__linux__)
int clock_gettime(int, struct timespec *);
#define TAME_IMPL_CLOCK 1
#else
#define TAME_IMPL_CLOCK CLOCK_MONOTONIC
#endif

/* Monotonic time in ns. Not enif_monotonic_time, which costs three times as much, and not the
 * thread's CPU time, which costs ten times as much and does not see what a neighbour sees. */
typedef uint64_t (*tame_clock)(void);

static inline uint64_t tame_now_ns(void)
{
    struct timespec now;

    clock_gettime(TAME_IMPL_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Tells the core that this thread spins. */
static inline void tame_impl_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
