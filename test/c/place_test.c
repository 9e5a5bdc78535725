/* tame/place.h: the decisions, as functions of facts. */
#include "../../test/c/check.h"
#include <tame/place.h>

#define MS UINT64_C(1000000)

static void a_slice_shrinks_with_the_crowd_and_not_below_what_is_cheap(void)
{
    CHECK_EQ(tame_impl_place_slice_ns(100000, 0, 2), 100000);
    CHECK_EQ(tame_impl_place_slice_ns(100000, 2, 2), 100000);
    CHECK_EQ(tame_impl_place_slice_ns(100000, 4, 2), 50000);
    CHECK_EQ(tame_impl_place_slice_ns(100000, 10, 2), 20000);
    CHECK_EQ(tame_impl_place_slice_ns(100000, 20, 2), 15000);
    CHECK_EQ(tame_impl_place_slice_ns(100000, 10000, 2), 15000);
    /* An author who wants less gets less. */
    CHECK_EQ(tame_impl_place_slice_ns(10000, 10000, 2), 10000);
}

static void auto_leaves_when_its_budget_is_used(void)
{
    CHECK_EQ(tame_impl_place_leaves(99 * MS, 0, 0, 100 * MS), 0);
    CHECK_EQ(tame_impl_place_leaves(100 * MS, 0, 0, 100 * MS), 1);
    CHECK_EQ(tame_impl_place_leaves(100 * MS, 5, 5, 100 * MS), 1);
}

static void auto_leaves_when_it_is_known_to_need_more(void)
{
    CHECK_EQ(tame_impl_place_leaves(1 * MS, 10, 999, 100 * MS), 0);
    CHECK_EQ(tame_impl_place_leaves(1 * MS, 10, 1001, 100 * MS), 1);
    /* Less than a hundredth of the budget says nothing. */
    CHECK_EQ(tame_impl_place_leaves(1 * MS - 1, 1, 1000000, 100 * MS), 0);
}

static void an_unknown_total_leaves_by_what_it_used(void)
{
    uint64_t used_ns = 0;
    int slices = 0;

    for (; !tame_impl_place_leaves(used_ns, 1000 * used_ns, 0, 100 * MS); slices++)
        used_ns += 100000;
    CHECK_EQ(slices, 1000);
}

static void the_budget_is_shared_by_the_crowd(void)
{
    CHECK_EQ(tame_impl_place_budget_ns(1, 2), 100 * MS);
    CHECK_EQ(tame_impl_place_budget_ns(2, 2), 100 * MS);
    CHECK_EQ(tame_impl_place_budget_ns(200, 2), 1 * MS);
}

static void a_run_gives_way_after_its_share_to_those_that_have_not_begun(void)
{
    CHECK_EQ(tame_impl_place_gives_way(1000 * MS, 0, 0, 0), 0);
    CHECK_EQ(tame_impl_place_gives_way(9 * MS, 0, 1, 0), 0);
    CHECK_EQ(tame_impl_place_gives_way(10 * MS, 0, 1, 0), 1);
    CHECK_EQ(tame_impl_place_gives_way(2 * MS, 1, 1, 0), 1);
    CHECK_EQ(tame_impl_place_gives_way(1 * MS, 1, 1, 0), 0);
}

static void old_runs_take_turns(void)
{
    CHECK_EQ(tame_impl_place_gives_way(9 * MS, 1, 0, 1), 0);
    CHECK_EQ(tame_impl_place_gives_way(10 * MS, 1, 0, 1), 1);
    CHECK_EQ(tame_impl_place_gives_way(10 * MS, 0, 0, 1), 1);
    CHECK_EQ(tame_impl_place_gives_way(1000 * MS, 1, 0, 0), 0);
}

static void the_young_come_first_and_the_old_come_too(void)
{
    uint32_t in_a_row = 0;
    int old = 0;

    CHECK_EQ(tame_impl_place_takes_old(0, 1, 0), 1);
    CHECK_EQ(tame_impl_place_takes_old(1, 0, 1000), 0);
    for (int i = 0; i < 170; i++) {
        const int takes_old = tame_impl_place_takes_old(1, 1, in_a_row);

        in_a_row = takes_old ? 0 : in_a_row + 1;
        old += takes_old;
    }
    CHECK_EQ(old, 10);
}

static void there_are_as_many_workers_as_schedulers_and_cpus_that_may_be_used(void)
{
    CHECK_EQ(tame_impl_place_workers(64, 0, 0), 64);
    CHECK_EQ(tame_impl_place_workers(64, 2, 0), 2);
    CHECK_EQ(tame_impl_place_workers(64, 64, 2), 2);
    CHECK_EQ(tame_impl_place_workers(64, 4, 8), 4);
    CHECK_EQ(tame_impl_place_workers(1, 0, 4), 1);
    CHECK_EQ(tame_impl_place_workers(0, 0, 0), 1);
}

static void a_thread_keeps_its_core_when_a_deadline_is_near(void)
{
    CHECK_EQ(tame_impl_place_gives_core(MS, UINT64_MAX), 1);
    CHECK_EQ(tame_impl_place_gives_core(MS, 22 * MS), 1);
    CHECK_EQ(tame_impl_place_gives_core(MS, 21 * MS), 0);
    CHECK_EQ(tame_impl_place_gives_core(30 * MS, 21 * MS), 0);
}

int main(void)
{
    RUN(a_slice_shrinks_with_the_crowd_and_not_below_what_is_cheap);
    RUN(auto_leaves_when_its_budget_is_used);
    RUN(auto_leaves_when_it_is_known_to_need_more);
    RUN(an_unknown_total_leaves_by_what_it_used);
    RUN(the_budget_is_shared_by_the_crowd);
    RUN(a_run_gives_way_after_its_share_to_those_that_have_not_begun);
    RUN(old_runs_take_turns);
    RUN(the_young_come_first_and_the_old_come_too);
    RUN(a_thread_keeps_its_core_when_a_deadline_is_near);
    RUN(there_are_as_many_workers_as_schedulers_and_cpus_that_may_be_used);
    return check_report();
}
