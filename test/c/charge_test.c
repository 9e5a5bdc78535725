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
    tame_impl_owed_ns = 0;
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
    CHECK_EQ(tame_impl_owed_ns, 5678);
}

int main(void)
{
    RUN(less_than_a_per_cent_stays_owed);
    RUN(a_loop_of_short_calls_is_charged_in_full);
    RUN(what_does_not_fit_is_returned);
    RUN(the_turns_add_up_to_the_time_used);
    return check_report();
}
