/* The core of labs/c_src/natives/spin/spin.h: cut at every step size, and the rate it measures. */
#include "../../test/c/check.h"
#include "spin.h"

static void any_step_size_does_the_same_work(void)
{
    const uint64_t rounds = 7, time_us = 40;
    const uint64_t whole = spin_rounds(1, rounds * time_us);

    for (size_t units = 1; units <= time_us + 1; units++) {
        struct spin spin = {.left_us = time_us, .rounds_per_us = rounds, .value = 1};
        size_t steps = 1;

        while (spin_step(NULL, &spin, units) == TAME_MORE)
            steps++;
        CHECK_EQ(spin.value, whole);
        CHECK_EQ(spin.left_us, 0);
        CHECK_EQ(steps, (time_us + units - 1) / units);
    }
}

static void no_time_at_all_is_done_in_one_step_without_work(void)
{
    struct spin spin = {.left_us = 0, .rounds_per_us = 7, .value = 1};

    CHECK_EQ(spin_step(NULL, &spin, 1), TAME_DONE);
    CHECK_EQ(spin.value, 1);
}

static void a_step_of_all_units_there_are_does_what_is_left(void)
{
    struct spin spin = {.left_us = 3, .rounds_per_us = 7, .value = 1};

    CHECK_EQ(spin_step(NULL, &spin, SIZE_MAX), TAME_DONE);
    CHECK_EQ(spin.value, spin_rounds(1, 21));
}

/* A clock on which a try takes 10 us, 20 us, 30 us and so on. */
static uint64_t ever_slower_ns(void)
{
    static uint64_t now_ns, reading;

    if (reading % 2 == 1)
        now_ns += 10000 * (reading / 2 + 1);
    reading++;
    return now_ns;
}

static uint64_t stopped_ns(void)
{
    return 42;
}

static void the_rate_is_that_of_the_fastest_try(void)
{
    CHECK_EQ(spin_measure(ever_slower_ns), SPIN_TRY_ROUNDS / 10);
}

static void a_clock_that_stands_still_gives_a_rate_all_the_same(void)
{
    CHECK_EQ(spin_measure(stopped_ns), 1);
}

int main(void)
{
    RUN(any_step_size_does_the_same_work);
    RUN(no_time_at_all_is_done_in_one_step_without_work);
    RUN(a_step_of_all_units_there_are_does_what_is_left);
    RUN(the_rate_is_that_of_the_fastest_try);
    RUN(a_clock_that_stands_still_gives_a_rate_all_the_same);
    return check_report();
}
