/* tame/slice.h without a VM, on a clock that the steps themselves turn on: so every time is exact.
 */
#include "../../test/c/check.h"
#include <tame/slice.h>

#define SLICE_NS UINT64_C(100000)
#define MAX_STEPS 10000

/* The job: `left` units, each of which takes `unit_ps` of the clock, and each step `step_ns`
 * besides. */
struct fake {
    uint64_t left;
    uint64_t unit_ps, step_ns;
    uint64_t slow_after; /* units; from then on each takes slow_unit_ps. 0: never */
    uint64_t slow_unit_ps;
    int stop_after; /* steps; 0: never */
    int *stop;
    uint64_t stop_steps; /* the most that the slice may make; 0: any number */

    int steps;
    size_t asked[MAX_STEPS];
    uint64_t took_ns[MAX_STEPS];
    uint64_t done;
};

static uint64_t now_ps;

static uint64_t fake_clock(void)
{
    return now_ps / 1000;
}

static enum tame_status fake_step(struct tame_call *call, void *state, size_t units)
{
    struct fake *f = (struct fake *)state;
    const uint64_t count = units < f->left ? units : f->left;
    const uint64_t before_ps = now_ps;
    uint64_t fast = count;

    (void)call;
    if (units == 0) { /* would go on for ever */
        CHECK_EQ(units, 1);
        return TAME_DONE;
    }
    if (f->slow_after > 0)
        fast = f->done >= f->slow_after          ? 0
               : f->done + count > f->slow_after ? f->slow_after - f->done
                                                 : count;
    now_ps += fast * f->unit_ps + (count - fast) * f->slow_unit_ps + f->step_ns * 1000;
    f->left -= count;
    f->done += count;
    if (f->steps < MAX_STEPS) {
        f->asked[f->steps] = units;
        f->took_ns[f->steps] = (now_ps - before_ps) / 1000;
    }
    f->steps++;
    if (f->steps == f->stop_after)
        __atomic_store_n(f->stop, 1, __ATOMIC_RELAXED);
    return f->left == 0 ? TAME_DONE : TAME_MORE;
}

/* A slice as it comes out, with the rate that it leaves. */
struct ran {
    enum tame_status status;
    uint64_t used_ns, units, steps;
    double units_per_ns;
};

static int never;

static struct ran run_from(struct fake *f, struct tame_impl_pace *pace, uint64_t slice_ns,
                           uint64_t deadline_ns)
{
    const struct tame_impl_until until = {.start_ns = 0,
                                          .slice_ns = slice_ns,
                                          .deadline_ns = deadline_ns,
                                          .steps = f->stop_steps > 0 ? f->stop_steps : UINT64_MAX,
                                          .watched = f->stop != NULL ? f->stop : &never,
                                          .is = 0,
                                          .clock = fake_clock};
    const struct tame_impl_slice slice = tame_impl_slice_run(fake_step, NULL, f, pace, &until);

    return (struct ran){slice.status, slice.used_ns, slice.units, slice.steps, pace->units_per_ns};
}

/* The first slice of a call, where calls before it left this rate. */
static struct ran run(struct fake *f, double units_per_ns)
{
    struct tame_impl_pace pace = {.units_per_ns = units_per_ns, .last_units = 0};

    now_ps = 0;
    return run_from(f, &pace, SLICE_NS, UINT64_MAX);
}

static struct fake job(uint64_t units, uint64_t unit_ps)
{
    struct fake f = {0};

    f.left = units;
    f.unit_ps = unit_ps;
    return f;
}

static uint64_t longest_step_ns(const struct fake *f)
{
    uint64_t longest = 0;

    for (int i = 0; i < f->steps && i < MAX_STEPS; i++)
        longest = f->took_ns[i] > longest ? f->took_ns[i] : longest;
    return longest;
}

static void an_unknown_rate_starts_with_one_unit(void)
{
    struct fake f = job(1000000000, 100);

    (void)run(&f, 0);
    CHECK_EQ(f.asked[0], 1);
}

/* Half a microsecond is 500 units here. */
static void a_call_at_a_known_rate_begins_with_half_a_microsecond_of_work(void)
{
    struct fake f = job(1000000000, 1000);

    (void)run(&f, 1.0);
    CHECK_EQ(f.asked[0], 500);
    CHECK_EQ(f.asked[1], 2000);
    CHECK_EQ(f.asked[2], 8000);
    CHECK_EQ(f.asked[3], TAME_CLOCK_CHECK_NS);
}

/* What is 9 us of work at the rate that is known takes three steps. */
static void a_short_call_at_a_known_rate_needs_few_steps(void)
{
    struct fake f = job(9000, 1000);

    CHECK_EQ(run(&f, 1.0).status, TAME_DONE);
    CHECK_EQ(f.steps, 3);
}

static void a_step_is_at_most_four_times_the_one_before(void)
{
    const uint64_t unit_ps[] = {0, 1, 100, 1000, 100000};

    for (size_t i = 0; i < sizeof unit_ps / sizeof *unit_ps; i++) {
        struct fake f = job(1000000000, unit_ps[i]);

        (void)run(&f, 0);
        CHECK_EQ(f.steps > 1, 1);
        for (int s = 1; s < f.steps && s < MAX_STEPS; s++)
            CHECK_EQ(f.asked[s] <= 4 * f.asked[s - 1], 1);
    }
}

static void a_slice_ends_within_its_time_and_one_step(void)
{
    const uint64_t unit_ps[] = {10, 333, 1000, 77777, 1000000};

    for (size_t i = 0; i < sizeof unit_ps / sizeof *unit_ps; i++) {
        struct fake f = job(UINT64_C(1) << 40, unit_ps[i]);
        const struct ran slice = run(&f, 0);

        CHECK_EQ(slice.status, TAME_MORE);
        CHECK_EQ(slice.used_ns >= SLICE_NS, 1);
        CHECK_EQ(slice.used_ns <= SLICE_NS + longest_step_ns(&f), 1);
        /* A step of a steady job is one look long, but for what rounding does. */
        CHECK_EQ(longest_step_ns(&f) <= TAME_CLOCK_CHECK_NS + unit_ps[i] / 1000 + 1, 1);
    }
}

static void the_steps_follow_a_rate_that_falls_tenfold(void)
{
    struct fake f = job(UINT64_C(1) << 40, 1000);
    int slow_steps = 0;

    f.slow_after = 30500; /* the end of a step */
    f.slow_unit_ps = 10000;
    (void)run(&f, 1.0);
    /* At most one step of the wrong size; all others are a look long. */
    for (int s = 0; s < f.steps; s++)
        slow_steps += f.took_ns[s] > TAME_CLOCK_CHECK_NS + 100;
    CHECK_EQ(slow_steps, 1);
    CHECK_EQ(longest_step_ns(&f) <= 10 * TAME_CLOCK_CHECK_NS, 1);
}

/* A first unit that had to fetch a page must not leave steps of one unit, too short to be measured,
 * for the rest of the slice. */
static void one_slow_unit_does_not_slow_the_rest(void)
{
    struct fake f = job(50000, 10000000);

    f.slow_after = 1; /* "slow" is the fast part here: 1 ns, and 30 ns for each step */
    f.slow_unit_ps = 1000;
    f.step_ns = 30;
    CHECK_EQ(run(&f, 0).status, TAME_DONE);
    CHECK_EQ(f.steps < 30, 1);
}

static void the_next_slice_begins_where_this_one_ended(void)
{
    struct fake f = job(UINT64_C(1) << 40, 2000);
    struct tame_impl_pace pace = {0, 0};

    now_ps = 0;
    (void)run_from(&f, &pace, SLICE_NS, UINT64_MAX);
    CHECK_EQ(pace.units_per_ns > 0.45 && pace.units_per_ns < 0.55, 1);
    f.steps = 0;
    now_ps = 0;
    (void)run_from(&f, &pace, SLICE_NS, UINT64_MAX);
    CHECK_EQ(
        f.asked[0] > TAME_CLOCK_CHECK_NS * 9 / 20 && f.asked[0] < TAME_CLOCK_CHECK_NS * 11 / 20, 1);
}

static void the_units_are_those_asked_for(void)
{
    struct fake f = job(1000000, 1000);
    uint64_t asked = 0;
    const struct ran slice = run(&f, 0);

    for (int s = 0; s < f.steps; s++)
        asked += f.asked[s];
    CHECK_EQ(slice.units, asked);
    CHECK_EQ(f.done, asked);
}

static void a_step_that_is_done_ends_the_slice(void)
{
    struct fake f = job(1, 1000);
    const struct ran slice = run(&f, 0);

    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(f.steps, 1);
    CHECK_EQ(slice.used_ns, 1);
}

/* At most what it was asked for was done, so the rate is no higher than that. */
static void the_last_step_bounds_the_rate_from_above(void)
{
    struct fake f = job(1, 5000000);
    const struct ran slice = run(&f, 7.0);

    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(f.asked[0], 3500);
    CHECK_EQ(slice.units_per_ns == 3500.0 / 5000, 1);
}

/* It may have done less, so it does not lift the rate. */
static void the_last_step_does_not_lift_the_rate(void)
{
    struct fake f = job(1, 600000);
    const struct ran slice = run(&f, 0.1);

    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(slice.units_per_ns <= 0.1, 1);
}

/* Calls that cost a thousand times as much per unit as those that the rate was learnt from. Each is
 * done in one step at the rate that is remembered, so TAME_MORE never measures it. */
static void a_rate_that_is_a_thousand_times_too_high_is_unlearnt(void)
{
    struct tame_impl_pace pace = {.units_per_ns = 1.0, .last_units = 0};
    uint64_t longest_ns = 0;

    for (int calls = 0; calls < 10; calls++) {
        struct fake f = job(9000, 1000000); /* 9 ms, where 9 us are expected */

        now_ps = 0;
        pace.last_units = 0;
        (void)run_from(&f, &pace, SLICE_NS, UINT64_MAX);
        if (longest_step_ns(&f) > longest_ns)
            longest_ns = longest_step_ns(&f);
        if (calls > 0)
            CHECK_EQ(longest_step_ns(&f) <= TAME_CLOCK_CHECK_NS + 1000, 1);
    }
    CHECK_EQ(longest_ns, 500000);
}

static void the_most_steps_end_the_slice(void)
{
    struct fake f = job(UINT64_C(1) << 40, 1);

    f.stop_steps = 5;
    CHECK_EQ(run(&f, 0).steps, 5);
}

static void the_deadline_ends_the_slice_after_the_step(void)
{
    struct fake f = job(UINT64_C(1) << 40, 1000);
    struct tame_impl_pace pace = {.units_per_ns = 1.0, .last_units = 0};
    struct ran slice;

    now_ps = 0;
    slice = run_from(&f, &pace, SLICE_NS, SLICE_NS / 2);
    CHECK_EQ(slice.status, TAME_MORE);
    CHECK_EQ(slice.used_ns >= SLICE_NS / 2 && slice.used_ns < SLICE_NS, 1);
}

static void the_stop_flag_ends_the_slice_after_the_step(void)
{
    int stop = 0;
    struct fake f = job(UINT64_C(1) << 40, 1000);
    struct ran slice;

    f.stop_after = 3;
    f.stop = &stop;
    slice = run(&f, 0);
    CHECK_EQ(slice.status, TAME_MORE);
    CHECK_EQ(f.steps, 3);
}

/* A flag that is set early still allows one step: the driver reads it before it calls. */
static void a_flag_that_is_set_already_costs_one_step(void)
{
    int stop = 1;
    struct fake f = job(UINT64_C(1) << 40, 1000);

    f.stop = &stop;
    (void)run(&f, 0);
    CHECK_EQ(f.steps, 1);
    CHECK_EQ(f.asked[0], 1);
}

static void no_step_is_asked_for_nothing(void)
{
    const uint64_t unit_ps[] = {1, 1000, 3000000, 30000000, 99000000};

    for (size_t i = 0; i < sizeof unit_ps / sizeof *unit_ps; i++) {
        struct fake f = job(UINT64_C(1) << 40, unit_ps[i]);

        (void)run(&f, 0);
        for (int s = 0; s < f.steps && s < MAX_STEPS; s++)
            CHECK_EQ(f.asked[s] >= 1, 1);
    }
}

static void a_step_slower_than_the_slice_is_the_only_one(void)
{
    struct fake f = job(1000, 5 * SLICE_NS * 1000);
    const struct ran slice = run(&f, 0);

    CHECK_EQ(f.steps, 1);
    CHECK_EQ(slice.status, TAME_MORE);
    CHECK_EQ(slice.used_ns, 5 * SLICE_NS);
    f.steps = 0;
    (void)run(&f, slice.units_per_ns);
    CHECK_EQ(f.steps, 1);
    CHECK_EQ(f.asked[0], 1);
}

/* A slow init may have spent it: start_ns is then long ago. */
static void a_slice_that_is_spent_already_does_one_unit(void)
{
    struct fake f = job(1000, 1000000);
    struct tame_impl_pace pace = {0, 0};
    struct ran slice;

    now_ps = 3 * SLICE_NS * 1000;
    slice = run_from(&f, &pace, SLICE_NS, UINT64_MAX);
    CHECK_EQ(f.steps, 1);
    CHECK_EQ(f.asked[0], 1);
    CHECK_EQ(slice.status, TAME_MORE);
    CHECK_EQ(slice.used_ns > 3 * SLICE_NS, 1);
}

static void a_spent_slice_at_a_known_rate_does_one_look_worth_at_most(void)
{
    struct fake f = job(1000, 1000000);
    struct tame_impl_pace pace = {.units_per_ns = 1.0, .last_units = 0};

    now_ps = 3 * SLICE_NS * 1000;
    (void)run_from(&f, &pace, SLICE_NS, UINT64_MAX);
    CHECK_EQ(f.steps, 1);
    CHECK_EQ(f.asked[0] >= 1 && f.asked[0] <= TAME_CLOCK_CHECK_NS, 1);
}

/* 100 units in 100 ns, asked in steps of 1, 4, 16, 64 and 256: the last does 15 of 256. */
static void a_job_too_short_to_measure_leaves_a_cautious_guess(void)
{
    struct fake f = job(100, 1000);
    const struct ran slice = run(&f, 0);

    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(f.steps, 5);
    CHECK_EQ(slice.units_per_ns > 0, 1);
    CHECK_EQ(slice.units_per_ns <= 1.0, 1);
}

/* Steps that take no measurable time: the amounts grow without overflow until the job is done. */
static void a_job_too_fast_to_measure_ends(void)
{
    struct fake f = job(UINT64_MAX, 0);
    const struct ran slice = run(&f, 0);

    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(slice.units_per_ns > 0, 1);
    for (int s = 0; s < f.steps; s++)
        CHECK_EQ(f.asked[s] >= 1 && f.asked[s] <= SIZE_MAX / 2, 1);
}

static void a_rate_beyond_size_t_is_cut_to_it(void)
{
    const double rates[] = {1e15, 1e19, 1e30, 1e300};

    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        struct fake f = job(UINT64_C(1) << 62, 0);

        (void)run(&f, rates[i]);
        CHECK_EQ(f.asked[0] >= 1 && f.asked[0] <= SIZE_MAX / 8, 1);
    }
}

/* A rate remembered from warm memory, met by cold memory: the first step is the only wrong one. */
static void a_remembered_rate_that_is_ten_times_too_high_costs_one_step(void)
{
    struct fake f = job(UINT64_C(1) << 40, 10000);
    const struct ran slice = run(&f, 1.0);

    CHECK_EQ(f.took_ns[0], 5000);
    CHECK_EQ(longest_step_ns(&f) <= TAME_CLOCK_CHECK_NS, 1);
    CHECK_EQ(slice.units_per_ns > 0.099 && slice.units_per_ns < 0.101, 1);
}

static void a_slice_without_end_runs_to_the_end(void)
{
    struct fake f = job(50000000, 1000);
    struct tame_impl_pace pace = {0, 0};
    struct ran slice;

    now_ps = 0;
    slice = run_from(&f, &pace, UINT64_MAX / 2, UINT64_MAX);
    CHECK_EQ(slice.status, TAME_DONE);
    CHECK_EQ(slice.used_ns, 50000000);
}

static void the_real_clock_does_not_go_back(void)
{
    uint64_t last = tame_now_ns();

    CHECK_EQ(last > 0, 1);
    for (int i = 0; i < 1000; i++) {
        const uint64_t now = tame_now_ns();

        CHECK_EQ(now >= last, 1);
        last = now;
    }
}

int main(void)
{
    RUN(an_unknown_rate_starts_with_one_unit);
    RUN(a_call_at_a_known_rate_begins_with_half_a_microsecond_of_work);
    RUN(a_short_call_at_a_known_rate_needs_few_steps);
    RUN(a_step_is_at_most_four_times_the_one_before);
    RUN(a_slice_ends_within_its_time_and_one_step);
    RUN(the_steps_follow_a_rate_that_falls_tenfold);
    RUN(one_slow_unit_does_not_slow_the_rest);
    RUN(the_next_slice_begins_where_this_one_ended);
    RUN(the_units_are_those_asked_for);
    RUN(a_step_that_is_done_ends_the_slice);
    RUN(the_last_step_bounds_the_rate_from_above);
    RUN(the_last_step_does_not_lift_the_rate);
    RUN(a_rate_that_is_a_thousand_times_too_high_is_unlearnt);
    RUN(the_most_steps_end_the_slice);
    RUN(the_deadline_ends_the_slice_after_the_step);
    RUN(the_stop_flag_ends_the_slice_after_the_step);
    RUN(a_flag_that_is_set_already_costs_one_step);
    RUN(no_step_is_asked_for_nothing);
    RUN(a_step_slower_than_the_slice_is_the_only_one);
    RUN(a_slice_that_is_spent_already_does_one_unit);
    RUN(a_spent_slice_at_a_known_rate_does_one_look_worth_at_most);
    RUN(a_job_too_short_to_measure_leaves_a_cautious_guess);
    RUN(a_job_too_fast_to_measure_ends);
    RUN(a_rate_beyond_size_t_is_cut_to_it);
    RUN(a_remembered_rate_that_is_ten_times_too_high_costs_one_step);
    RUN(a_slice_without_end_runs_to_the_end);
    RUN(the_real_clock_does_not_go_back);
    return check_report();
}
