/* tame/clock.h - the time, and a pause between two readings of something that is about to change.
 *
 * Part of tame.h; usable alone. Plain C. */
#ifndef TAME_CLOCK_H
#define TAME_CLOCK_H

#if !defined(__cplusplus) && (!defined(__STDC_VERSION__) || __STDC_VERSION__ < 201112L)
#error "tame.h is for C11 and newer, and for C++"
#endif

#include <stdint.h>
#include <time.h>

/* -std=c11 hides what POSIX adds to time.h; then it is declared here, as Linux has it. */
#if !defined(CLOCK_MONOTONIC) && defined(__linux__)
int clock_gettime(int, struct timespec *);
#define TAME_IMPL_CLOCK 1
#define TAME_IMPL_CPU_CLOCK 3
#else
#define TAME_IMPL_CLOCK CLOCK_MONOTONIC
#define TAME_IMPL_CPU_CLOCK CLOCK_THREAD_CPUTIME_ID
#endif

/* A clock in ns. */
typedef uint64_t (*tame_clock)(void);

/* Monotonic time in ns. Not enif_monotonic_time, which costs three times as much. */
static inline uint64_t tame_now_ns(void)
{
    struct timespec now;

    clock_gettime(TAME_IMPL_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The CPU time of the calling thread in ns. It costs ten times as much as tame_now_ns. */
static inline uint64_t tame_impl_cpu_ns(void)
{
    struct timespec now;

    clock_gettime(TAME_IMPL_CPU_CLOCK, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* Tells the core that this thread spins. */
static inline void tame_impl_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
