/* tame/charge.h - reductions for the time that native code used.
 *
 * Part of tame.h; usable alone, in any NIF on a normal scheduler. 1 ms is 4000 reductions, a whole
 * timeslice (CONTEXT_REDS of ERTS); enif_consume_timeslice takes whole per cents of it, which are
 * 10 us each. What is left of a per cent stays owed by the thread and is paid by the next call on
 * it: a loop of short calls is charged in full. */
#ifndef TAME_CHARGE_H
#define TAME_CHARGE_H

#include <erl_nif.h>
#include <stdint.h>

#include "clock.h"
#include "cycles.h"
#include "os.h"

#define TAME_IMPL_PERCENT_NS 10000

/* What a scheduler's thread remembers. In one struct: to find where a thread has it costs some ns. */
struct tame_impl_mine {
    uint64_t owed_ns;         /* less than one per cent */
    uint64_t wall_ns, cpu_ns; /* both clocks at the same moment */
    uint32_t unread, wary;    /* tame/short.h: calls that are not measured, and then are */
    uint64_t short_ticks;     /* and when one ended */
    struct tame_impl_thread_clock clock;
};
static __thread struct tame_impl_mine tame_impl_mine;

/* When the system loads the library, be it of jobs, of NIFs that only charge, or a driver: a file is
 * read, which no call should pay for, and no thread asks for the time yet. */
static __attribute__((constructor)) void tame_impl_charge_on_load(void)
{
    char source[64];

    tame_impl_os_clock_source("", source, (int)sizeof source);
    if (tame_impl_ticks_are_steady(source))
        tame_impl_cycles_start(&tame_impl_cycles);
}

/* Charges `used_ns` to the calling process. Returns how much of it, in ns, did not fit into its
 * timeslice any more: 0 when all is paid, and then the process may go on. Paid per cent by per
 * cent (3 ns each), because of a payment larger than what is left of the timeslice
 * enif_consume_timeslice would drop the rest without a word. */
static inline uint64_t tame_charge(ErlNifEnv *env, uint64_t used_ns)
{
    struct tame_impl_mine *mine = &tame_impl_mine;
    uint64_t owed_ns = mine->owed_ns + used_ns;

    while (owed_ns >= TAME_IMPL_PERCENT_NS) {
        owed_ns -= TAME_IMPL_PERCENT_NS;
        if (enif_consume_timeslice(env, 1)) {
            mine->owed_ns = owed_ns % TAME_IMPL_PERCENT_NS;
            return owed_ns - mine->owed_ns;
        }
    }
    mine->owed_ns = owed_ns;
    return 0;
}

/* ---- how much was used ---- */

/* A thread that has lost its core uses no time, however late it is: the system may have run another,
 * or have stopped the VM. The thread's CPU clock knows, but is dear. So it is read when more than a
 * millisecond has passed, and taken from a reading that is no older than that at the beginning. */
#define TAME_IMPL_METER_NS UINT64_C(1000000)

/* The time, as the calling thread measures durations by it: tame_now_ns, or less by microseconds. */
static inline uint64_t tame_impl_meter_now_ns(void)
{
    return tame_impl_thread_clock_ns(&tame_impl_mine.clock);
}

/* At the beginning of what is to be measured. Returns the time. */
static inline uint64_t tame_impl_meter_begin(void)
{
    struct tame_impl_mine *mine = &tame_impl_mine;
    const uint64_t now_ns = tame_impl_thread_clock_ns(&mine->clock);

    if (now_ns - mine->wall_ns > TAME_IMPL_METER_NS) {
        mine->cpu_ns = tame_impl_cpu_ns();
        mine->wall_ns = now_ns;
    }
    return now_ns;
}

/* The time that this thread used from start_ns, a reading of tame_impl_meter_begin, to now_ns, one of
 * tame_impl_meter_now_ns; too much by TAME_IMPL_METER_NS at most, never more than has passed. */
static inline uint64_t tame_impl_meter_used_ns(uint64_t start_ns, uint64_t now_ns)
{
    const uint64_t passed_ns = now_ns > start_ns ? now_ns - start_ns : 0;
    uint64_t cpu_ns;

    if (passed_ns <= TAME_IMPL_METER_NS)
        return passed_ns;
    cpu_ns = tame_impl_cpu_ns() - tame_impl_mine.cpu_ns;
    return cpu_ns < passed_ns ? cpu_ns : passed_ns;
}

#endif
