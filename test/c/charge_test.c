/* tame/charge.h without a VM: enif_consume_timeslice is a fake with a timeslice of 100 per cent. */
#include "../../test/c/check.h"
#include <tame/charge.h>

static int left_percent, calls;

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)env;
    calls++;
    left_percent -= percent;
    return left_percent <= 0;
}

/* Each test begins with a fresh timeslice and nothing owed. */
static void begin(void)
{
    left_percent = 100;
    calls = 0;
    tame_impl_mine.owed_ns = 0;
}

static void less_than_a_per_cent_stays_owed(void)
{
    begin();
    CHECK_EQ(tame_charge(NULL, 9999), 0);
    CHECK_EQ(calls, 0);
    CHECK_EQ(tame_charge(NULL, 1), 0);
    CHECK_EQ(calls, 1);
}

static void a_loop_of_short_calls_is_charged_in_full(void)
{
    begin();
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(tame_charge(NULL, 333), 0);
    CHECK_EQ(calls, 33); /* 333 us */
}

static void what_does_not_fit_is_returned(void)
{
    begin();
    CHECK_EQ(tame_charge(NULL, 3000000), 2000000);
    CHECK_EQ(calls, 100);
}

/* In as many turns as it takes, nothing is lost and nothing is charged twice. */
static void the_turns_add_up_to_the_time_used(void)
{
    uint64_t owed_ns = 12345678;
    int turns = 0;

    begin();
    do {
        left_percent = 100;
        owed_ns = tame_charge(NULL, owed_ns);
        turns++;
    } while (owed_ns > 0);
    CHECK_EQ(turns, 13);
    CHECK_EQ(calls, 1234);
    CHECK_EQ(tame_impl_mine.owed_ns, 5678);
}

static uint64_t busy_until_ns(uint64_t until_ns)
{
    uint64_t now_ns = tame_now_ns();

    while (now_ns < until_ns)
        now_ns = tame_now_ns();
    return now_ns;
}

/* As a thread that the system took off its core, or a VM that was stopped. */
static void time_off_the_core_is_not_used(void)
{
    const uint64_t start_ns = tame_impl_meter_begin();
    const struct timespec pause = {.tv_sec = 0, .tv_nsec = 200000000};

    (void)nanosleep(&pause, NULL);
    CHECK_EQ(tame_impl_meter_used_ns(start_ns, tame_impl_meter_now_ns()) < 50000000, 1);
}

static void time_on_the_core_is_used(void)
{
    const uint64_t start_ns = tame_impl_meter_begin();
    const uint64_t cpu_ns = tame_impl_cpu_ns();
    const uint64_t now_ns = busy_until_ns(start_ns + 20000000);

    CHECK_EQ(tame_impl_meter_used_ns(start_ns, now_ns) + 1000000 >= tame_impl_cpu_ns() - cpu_ns, 1);
    CHECK_EQ(tame_impl_meter_used_ns(start_ns, now_ns) <= now_ns - start_ns, 1);
}

/* Nobody but the header has asked for it. */
static void the_counter_is_used_from_the_load_on(void)
{
    char source[64];
    int steady;

    tame_impl_os_clock_source("", source, (int)sizeof source);
    steady = tame_impl_ticks_are_steady(source);
    if (!steady)
        printf("charge_test: the counter of this machine is not used\n");
    CHECK_EQ(tame_impl_cycles.state != TAME_IMPL_CYCLES_NONE, steady);
    /* Off where the machine's counter was wrong meanwhile. */
    for (const uint64_t end_ns = tame_now_ns() + 2000000000;
         tame_impl_cycles.state == TAME_IMPL_CYCLES_LEARNS && tame_now_ns() < end_ns;)
        (void)tame_impl_meter_begin();
    CHECK_EQ(tame_impl_cycles.state != TAME_IMPL_CYCLES_LEARNS, 1);
}

int main(void)
{
    RUN(less_than_a_per_cent_stays_owed);
    RUN(a_loop_of_short_calls_is_charged_in_full);
    RUN(what_does_not_fit_is_returned);
    RUN(the_turns_add_up_to_the_time_used);
    RUN(time_off_the_core_is_not_used);
    RUN(time_on_the_core_is_used);
    RUN(the_counter_is_used_from_the_load_on);
    return check_report();
}
