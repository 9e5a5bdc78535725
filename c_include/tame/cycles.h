/* tame/cycles.h - the time by the processor's own counter, where that is steady.
 *
 * Part of tame.h; usable alone. Plain C. To read the system's clock costs 23 to 30 ns, the counter
 * alone 10; a job that is done at once is measured by two readings. So between two readings of the
 * clock by one thread, a millisecond apart at most, the counter says how much time has passed. What
 * it says is never ahead of the clock: it counts a thousandth too slowly, with intent.
 *
 * It is used where the processor promises that it is steady and the system's own clock is made of
 * it. How fast it runs is learned from the clock, in the first hundredth of a second after
 * tame_impl_cycles_start and beside all else; and each later reading of the clock checks it. One that
 * is wrong once, because the machine slept or was moved to another, is used no more. */
#ifndef TAME_CYCLES_H
#define TAME_CYCLES_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "clock.h"

/* The counter. The processor may read it some instructions early or late: that is some ns. */
static inline uint64_t tame_impl_ticks(void)
{
#if defined(__x86_64__)
    return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    uint64_t ticks;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
#else
    return 0;
#endif
}

/* Whether the counter runs at one speed, whatever the processor does, and on all cores alike. `source`
 * is what the system makes its clock of (tame_impl_os_clock_source). */
static inline int tame_impl_ticks_are_steady(const char *source)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;

    return strcmp(source, "tsc") == 0 && __get_cpuid(0x80000007, &a, &b, &c, &d) &&
           (d >> 8 & 1) != 0;
#elif defined(__aarch64__)
    return strcmp(source, "arch_sys_counter") == 0;
#else
    (void)source;
    return 0;
#endif
}

/* ---- what all threads know ---- */

enum tame_impl_cycles_state {
    TAME_IMPL_CYCLES_NONE,
    TAME_IMPL_CYCLES_LEARNS,
    TAME_IMPL_CYCLES_USED,
    TAME_IMPL_CYCLES_OFF /* for good */
};

/* The counter and the clock at one moment. */
struct tame_impl_moment {
    uint64_t ns;     /* 0: none */
    uint64_t ticks;  /* after the clock was read */
    uint64_t within; /* how many passed while it was read */
};

struct tame_impl_cycles {
    int state;            /* atomic; enum tame_impl_cycles_state */
    uint64_t good_for;    /* atomic; ticks of TAME_IMPL_CYCLES_NS; 0: the counter is not used */
    uint64_t ns_per_2_32; /* atomic; ns of 2^32 ticks */
    struct tame_impl_moment first; /* since when it learns */
    tame_clock clock, ticks;
};

static struct tame_impl_cycles tame_impl_cycles = {
    TAME_IMPL_CYCLES_NONE, 0, 0, {0, 0, 0}, tame_now_ns, tame_impl_ticks};

/* How long the counter is believed until the clock is read again; and how long it is watched before
 * it is believed at all. */
#define TAME_IMPL_CYCLES_NS UINT64_C(1000000)
#define TAME_IMPL_CYCLES_LEARN_NS UINT64_C(10000000)

static inline struct tame_impl_moment tame_impl_moment_now(const struct tame_impl_cycles *cycles)
{
    const uint64_t before = cycles->ticks();
    struct tame_impl_moment moment;

    moment.ns = cycles->clock();
    moment.ticks = cycles->ticks();
    moment.within = moment.ticks - before;
    return moment;
}

/* Begins to learn how fast the counter is. Before any thread asks for the time: tame/charge.h does so
 * when the library is loaded. */
static inline void tame_impl_cycles_start(struct tame_impl_cycles *cycles)
{
    if (__atomic_load_n(&cycles->state, __ATOMIC_RELAXED) != TAME_IMPL_CYCLES_NONE)
        return; /* the library is loaded anew */
    cycles->first = tame_impl_moment_now(cycles);
    __atomic_store_n(&cycles->state, TAME_IMPL_CYCLES_LEARNS, __ATOMIC_RELEASE);
}

static inline void tame_impl_cycles_stop(struct tame_impl_cycles *cycles)
{
    __atomic_store_n(&cycles->good_for, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&cycles->state, TAME_IMPL_CYCLES_OFF, __ATOMIC_RELAXED);
}

/* Whether two moments are so far apart that it does not matter how long their readings took: less than
 * one part of `parts`. A thread may lose its core between the clock and the counter. */
static inline int tame_impl_moments_tell(const struct tame_impl_moment *from,
                                         const struct tame_impl_moment *to, uint64_t parts)
{
    const uint64_t part = (to->ticks - from->ticks) / parts;

    return from->ns > 0 && from->within < part && to->within < part;
}

/* Two threads may do so at once: what they learn is the same, but for a ten-thousandth. A counter
 * slower than 10 MHz says too little, and faster than 10 GHz there is none. */
static inline void tame_impl_cycles_learn(struct tame_impl_cycles *cycles,
                                          const struct tame_impl_moment *now)
{
    const struct tame_impl_moment *first = &cycles->first;
    double ns_per_tick;

    if (now->ns - first->ns < TAME_IMPL_CYCLES_LEARN_NS)
        return;
    ns_per_tick = (double)(now->ns - first->ns) / (double)(now->ticks - first->ticks);
    if (now->ticks <= first->ticks || ns_per_tick < 0.1 || ns_per_tick > 100) {
        tame_impl_cycles_stop(cycles);
        return;
    }
    if (!tame_impl_moments_tell(first, now, 10000))
        return;
    __atomic_store_n(&cycles->ns_per_2_32, (uint64_t)(0.999 * 4294967296.0 * ns_per_tick),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&cycles->good_for, (uint64_t)((double)TAME_IMPL_CYCLES_NS / ns_per_tick),
                     __ATOMIC_RELEASE);
    __atomic_store_n(&cycles->state, TAME_IMPL_CYCLES_USED, __ATOMIC_RELEASE);
}

/* Between two moments as much time has to have passed by the counter as by the clock, but for a
 * hundredth. */
static inline void tame_impl_cycles_check(struct tame_impl_cycles *cycles,
                                          const struct tame_impl_moment *from,
                                          const struct tame_impl_moment *now)
{
    const double ns_per_tick =
        (double)__atomic_load_n(&cycles->ns_per_2_32, __ATOMIC_RELAXED) / 4294967296.0;
    const double ns = (double)(now->ns - from->ns);
    const double by_ticks_ns = ns_per_tick * (double)(now->ticks - from->ticks);

    if (now->ticks < from->ticks || (tame_impl_moments_tell(from, now, 1000) &&
                                     (by_ticks_ns < 0.99 * ns || by_ticks_ns > 1.01 * ns)))
        tame_impl_cycles_stop(cycles);
}

/* ---- the clock of a thread ---- */

/* Zeroed at first. */
struct tame_impl_thread_clock {
    struct tame_impl_moment
        at;           /* when the clock was read last; none while only the clock is used */
    uint64_t last_ns; /* what was said last: the time goes forwards, on whatever core */
};

static inline uint64_t tame_impl_thread_clock_say(struct tame_impl_thread_clock *thread,
                                                  uint64_t ns)
{
    if (thread->last_ns < ns)
        thread->last_ns = ns;
    return thread->last_ns;
}

/* Reads the system's clock: a thousand times a second, or each time where the counter is not used. */
static __attribute__((noinline, unused)) uint64_t
tame_impl_thread_clock_read(struct tame_impl_thread_clock *thread, struct tame_impl_cycles *cycles)
{
    const int state = __atomic_load_n(&cycles->state, __ATOMIC_ACQUIRE);
    struct tame_impl_moment now;

    if (state != TAME_IMPL_CYCLES_LEARNS && state != TAME_IMPL_CYCLES_USED)
        return tame_impl_thread_clock_say(thread, cycles->clock());
    now = tame_impl_moment_now(cycles);
    if (state == TAME_IMPL_CYCLES_LEARNS)
        tame_impl_cycles_learn(cycles, &now);
    else if (thread->at.ns > 0)
        tame_impl_cycles_check(cycles, &thread->at, &now);
    thread->at = now;
    return tame_impl_thread_clock_say(thread, now.ns);
}

/* The time in ns when the counter stood at `ticks`. */
static inline uint64_t tame_impl_thread_clock_at(struct tame_impl_thread_clock *thread,
                                                 struct tame_impl_cycles *cycles, uint64_t ticks)
{
    const uint64_t since = ticks - thread->at.ticks;

    if (since >= __atomic_load_n(&cycles->good_for, __ATOMIC_ACQUIRE)) /* or less than nothing */
        return tame_impl_thread_clock_read(thread, cycles);
    return tame_impl_thread_clock_say(
        thread,
        thread->at.ns + (since * __atomic_load_n(&cycles->ns_per_2_32, __ATOMIC_RELAXED) >> 32));
}

/* The time in ns by a thread's own clock: no earlier than it said before, and behind the system's clock
 * by some microseconds at most. */
static inline uint64_t tame_impl_thread_clock_ns(struct tame_impl_thread_clock *thread)
{
    struct tame_impl_cycles *cycles = &tame_impl_cycles;

    return __atomic_load_n(&cycles->good_for, __ATOMIC_RELAXED) == 0
               ? tame_impl_thread_clock_read(thread, cycles)
               : tame_impl_thread_clock_at(thread, cycles, tame_impl_ticks());
}

#endif
