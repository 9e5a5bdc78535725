/* tame/cycles.h with a counter and a clock that the test moves, and then with the machine's own. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include <stdlib.h>
#include <string.h>
#include <tame/cycles.h>
#include <tame/os.h>

#define MS UINT64_C(1000000)

/* The machine: 3 ticks are a ns, unless a test says otherwise. */
static uint64_t clock_ns, ticks, clock_readings, lost_ns;
static double ticks_per_ns;

static void passes(uint64_t ns)
{
    clock_ns += ns;
    ticks += (uint64_t)((double)ns * ticks_per_ns);
}

static uint64_t read_clock(void)
{
    const uint64_t read_ns = clock_ns;

    clock_readings++;
    passes(20 + lost_ns); /* the thread loses its core before it reads the counter */
    return read_ns;
}

static uint64_t read_ticks(void)
{
    return ticks;
}

static struct tame_impl_cycles cycles;
static struct tame_impl_thread_clock one, two;

static uint64_t now(struct tame_impl_thread_clock *thread)
{
    return tame_impl_thread_clock_at(thread, &cycles, ticks);
}

/* Asks for the time; whether it is what the clock said then, 20 ns ago. */
static int reads_the_clock(struct tame_impl_thread_clock *thread)
{
    const uint64_t said = now(thread);

    return said == clock_ns - 20;
}

static void begin(void)
{
    clock_ns = 1000 * MS;
    ticks = 77;
    ticks_per_ns = 3;
    clock_readings = lost_ns = 0;
    memset(&cycles, 0, sizeof cycles);
    memset(&one, 0, sizeof one);
    memset(&two, 0, sizeof two);
    cycles.clock = read_clock;
    cycles.ticks = read_ticks;
}

/* The counter is in use, and thread `one` has read the clock just now. */
static void learn(void)
{
    begin();
    tame_impl_cycles_start(&cycles);
    passes(11 * MS);
    (void)now(&one);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
    passes(2 * MS);
    (void)now(&one);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
    clock_readings = 0;
}

static void a_counter_that_is_not_steady_is_not_read(void)
{
    begin();
    for (int i = 0; i < 100; i++, passes(MS))
        CHECK_EQ(reads_the_clock(&one), 1);
    CHECK_EQ(clock_readings, 100);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_NONE);
}

static void it_is_watched_before_it_is_believed(void)
{
    begin();
    tame_impl_cycles_start(&cycles);
    for (int i = 0; i < 9; i++) {
        passes(MS);
        CHECK_EQ(reads_the_clock(&one), 1);
        CHECK_EQ(cycles.good_for, 0);
    }
    passes(MS);
    (void)now(&one);
    CHECK_EQ(cycles.good_for > 0, 1);
}

/* Within a millisecond the clock is not read, and the counter is behind it by a thousandth. */
static void between_two_readings_of_the_clock_the_counter_tells(void)
{
    learn();
    for (int us = 0; us < 990; us += 10, passes(10000)) {
        const uint64_t said = now(&one);

        CHECK_EQ(said <= clock_ns, 1);
        CHECK_EQ(said + 1100 >= clock_ns, 1);
    }
    CHECK_EQ(clock_readings, 0);
    passes(100000);
    CHECK_EQ(reads_the_clock(&one), 1);
    CHECK_EQ(clock_readings, 1);
}

static void a_thread_that_has_not_read_the_clock_reads_it(void)
{
    learn();
    CHECK_EQ(reads_the_clock(&two), 1);
    CHECK_EQ(clock_readings, 1);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
}

static void after_a_pause_of_any_length_the_clock_tells(void)
{
    learn();
    for (uint64_t pause_ns = MS; pause_ns < UINT64_C(1) << 60; pause_ns *= 2) {
        passes(pause_ns);
        CHECK_EQ(reads_the_clock(&one), 1);
    }
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
}

/* On another core, or after the machine slept. */
static void a_counter_that_went_backwards_is_used_no_more(void)
{
    for (uint64_t back = 1; back < UINT64_C(30000000); back *= 3) {
        uint64_t said;

        learn();
        passes(500000);
        said = now(&one);
        passes(1000);
        ticks -= 1500000 + 3060 + back;
        CHECK_EQ(now(&one) >= said, 1);
        CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_OFF);
        CHECK_EQ(cycles.good_for, 0);
        passes(12345);
        CHECK_EQ(reads_the_clock(&one), 1);
    }
}

/* By less than the time since the clock was read: nobody sees it, and the time stands still. */
static void a_counter_that_lags_on_another_core_does_not_turn_time_back(void)
{
    uint64_t said;

    learn();
    passes(500000);
    said = now(&one);
    ticks -= 3 * 400000;
    CHECK_EQ(now(&one), said);
    passes(390000);
    CHECK_EQ(now(&one), said);
    passes(20000);
    CHECK_EQ(now(&one) > said, 1);
}

/* The machine was moved to another, whose counter is faster or slower. */
static void another_speed_is_seen_at_the_next_reading_of_the_clock(void)
{
    const double speeds[] = {0.3, 1.5, 2.9, 3.1, 6, 30};

    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        uint64_t said;

        learn();
        ticks_per_ns = speeds[i];
        said = now(&one);
        for (int us = 0; us < 11000; us += 10) {
            passes(10000);
            CHECK_EQ(now(&one) >= said, 1);
            said = now(&one);
        }
        CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_OFF);
        CHECK_EQ(reads_the_clock(&one), 1);
    }
}

static void a_thread_that_loses_its_core_while_it_reads_teaches_nothing(void)
{
    begin();
    tame_impl_cycles_start(&cycles);
    passes(20 * MS);
    lost_ns = 5 * MS;
    (void)now(&one);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_LEARNS);
    lost_ns = 0;
    passes(20 * MS);
    (void)now(&one);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
    CHECK_EQ(cycles.good_for > 29 * MS / 10 && cycles.good_for < 31 * MS / 10, 1);
    lost_ns = 5 * MS;
    passes(2 * MS);
    (void)now(&one);
    lost_ns = 0;
    passes(2 * MS);
    (void)now(&one);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
}

static void a_speed_that_no_processor_has_is_not_believed(void)
{
    const double speeds[] = {0, 0.005, 20};

    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        begin();
        ticks_per_ns = speeds[i];
        tame_impl_cycles_start(&cycles);
        passes(20 * MS);
        (void)now(&one);
        CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_OFF);
    }
}

static void a_library_that_is_loaded_anew_does_not_begin_anew(void)
{
    learn();
    tame_impl_cycles_start(&cycles);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
    a_counter_that_went_backwards_is_used_no_more();
    tame_impl_cycles_start(&cycles);
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_OFF);
}

/* Whatever two threads ask, and when: each one's time goes forwards, is not ahead of the clock, and
 * behind it by a microsecond and some; the clock is read once a millisecond. The system corrects its
 * clock meanwhile. */
static void any_two_threads_know_the_time(void)
{
    unsigned seed = 1;
    uint64_t said[2] = {0, 0}, began_ns;

    learn();
    began_ns = clock_ns;
    for (int i = 0; i < 200000; i++) {
        const int who = rand_r(&seed) % 2;
        uint64_t ns;

        ticks_per_ns = 3 + (rand_r(&seed) % 3 - 1) * 0.0015;
        passes((uint64_t)(rand_r(&seed) % (i % 100 == 0 ? 5000000 : 20000)));
        ns = now(who == 0 ? &one : &two);
        CHECK_EQ(ns >= said[who], 1);
        CHECK_EQ(ns <= clock_ns, 1);
        CHECK_EQ(ns + 2000 >= clock_ns, 1);
        said[who] = ns;
    }
    CHECK_EQ(cycles.state, TAME_IMPL_CYCLES_USED);
    CHECK_EQ(clock_readings < 2 + 2 * (clock_ns - began_ns) / MS, 1);
}

/* ---- the machine's own ---- */

static void the_system_has_to_make_its_clock_of_it(void)
{
    const char *const others[] = {"", "hpet", "kvm-clock", "acpi_pm", "tsc-early", "jiffies"};

    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        CHECK_EQ(tame_impl_ticks_are_steady(others[i]), 0);
}

/* Whether or not the counter is used here, the time is that of the clock. */
static void the_machines_own_time_is_that_of_its_clock(void)
{
    struct tame_impl_thread_clock mine = {{0, 0, 0}, 0};
    uint64_t last = 0, end_ns;
    char source[64];
    int steady;

    tame_impl_os_clock_source("", source, (int)sizeof source);
    steady = tame_impl_ticks_are_steady(source);
    if (steady)
        tame_impl_cycles_start(&tame_impl_cycles);
    else
        printf("cycles_test: the counter of this machine is not used\n");
    end_ns = tame_now_ns() + 50 * MS;
    for (;;) {
        const uint64_t before_ns = tame_now_ns(), ns = tame_impl_thread_clock_ns(&mine),
                       after_ns = tame_now_ns();

        if (before_ns > end_ns)
            break;
        CHECK_EQ(ns >= last, 1);
        /* But for where the thread lost its core within a reading. */
        if (after_ns - before_ns < 10000) {
            CHECK_EQ(ns <= after_ns + 100000, 1);
            CHECK_EQ(ns + 20 * MS >= before_ns, 1);
        }
        last = ns;
    }
    CHECK_EQ(tame_impl_cycles.state != TAME_IMPL_CYCLES_NONE, steady);
}

int main(void)
{
    RUN(a_counter_that_is_not_steady_is_not_read);
    RUN(it_is_watched_before_it_is_believed);
    RUN(between_two_readings_of_the_clock_the_counter_tells);
    RUN(a_thread_that_has_not_read_the_clock_reads_it);
    RUN(after_a_pause_of_any_length_the_clock_tells);
    RUN(a_counter_that_went_backwards_is_used_no_more);
    RUN(a_counter_that_lags_on_another_core_does_not_turn_time_back);
    RUN(another_speed_is_seen_at_the_next_reading_of_the_clock);
    RUN(a_thread_that_loses_its_core_while_it_reads_teaches_nothing);
    RUN(a_speed_that_no_processor_has_is_not_believed);
    RUN(a_library_that_is_loaded_anew_does_not_begin_anew);
    RUN(any_two_threads_know_the_time);
    RUN(the_system_has_to_make_its_clock_of_it);
    RUN(the_machines_own_time_is_that_of_its_clock);
    return check_report();
}
