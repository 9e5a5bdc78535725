/* Keeping a CPU busy for a time, a step at a time. Plain C: no ErlNifEnv but in the types of
 * tame.h.
 *
 * The time is work: as many rounds of arithmetic as this machine does in that time when nothing
 * disturbs it. Nobody looks at the clock to see whether the time is over. So time for which the
 * scheduler or the system gave the CPU to others does not count as done: a spin that was disturbed
 * takes longer, and how much longer is what a contention lab wants to know. */
#ifndef TAME_SPIN_H
#define TAME_SPIN_H

#include <tame/slice.h>

struct spin {
    uint64_t left_us;
    uint64_t rounds_per_us;
    uint64_t value; /* the arithmetic's; kept so that the compiler has to do it */
};

/* Each round needs the one before, so neither vectors nor a second pipeline make it faster: 4 to 5
 * cycles on the machines we know. */
static inline uint64_t spin_rounds(uint64_t value, uint64_t rounds)
{
    for (uint64_t i = 0; i < rounds; i++)
        value = value * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return value;
}

/* A unit is a microsecond's work. */
static inline enum tame_status spin_step(struct tame_call *call, void *state, size_t units)
{
    struct spin *spin = (struct spin *)state;
    const uint64_t count = units < spin->left_us ? units : spin->left_us;

    (void)call;
    for (uint64_t i = 0; i < count; i++)
        spin->value = spin_rounds(spin->value, spin->rounds_per_us);
    spin->left_us -= count;
    return spin->left_us == 0 ? TAME_DONE : TAME_MORE;
}

/* How the rate is measured: the fastest of SPIN_TRIES tries, each of SPIN_TRY_ROUNDS rounds (about 10 us).
 * The fastest, because a disturbance makes a try slower. About 0.3 ms in all. */
#define SPIN_TRIES 32
#define SPIN_TRY_ROUNDS 8192

/* This machine's rounds per us, by `clock`; at least 1. */
static inline uint64_t spin_measure(tame_clock clock)
{
    /* Volatile: what nobody reads the compiler would not compute. */
    volatile uint64_t value = 1;
    uint64_t best_ns = UINT64_MAX;

    for (int i = 0; i < SPIN_TRIES; i++) {
        const uint64_t start_ns = clock();
        uint64_t took_ns;

        value = spin_rounds(value, SPIN_TRY_ROUNDS);
        took_ns = clock() - start_ns;
        if (took_ns > 0 && took_ns < best_ns)
            best_ns = took_ns;
    }
    const uint64_t rounds_per_us = SPIN_TRY_ROUNDS * UINT64_C(1000) / best_ns;
    return rounds_per_us > 0 ? rounds_per_us : 1;
}

#endif
