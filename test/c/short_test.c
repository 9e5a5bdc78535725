/* Short calls of a whole library, on a clock that the steps themselves turn on, without a VM (fake_nif.h):
 * which of them are measured, what they are charged, and what becomes of one that is not short. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include "../../test/c/fake_nif.h"
#include <tame/cycles.h>

/* The counter is the steps' clock, too; what asks for the time reads the clock. */
static uint64_t fake_ticks(void);
#define tame_impl_ticks fake_ticks
#include <tame.h>

#define MAX_ASKED 100

static uint64_t now_ns = 1000000;
static unsigned readings;
static uint64_t unit_ns, init_ns;
static int inits, cleanups, results, steps;
static size_t asked[MAX_ASKED];

static uint64_t fake_clock(void)
{
    readings++;
    return now_ns;
}

static uint64_t fake_ticks(void)
{
    return now_ns;
}

/* (Units) -> Units; 0 is refused, and from 1000 on a step fails. */
struct count {
    unsigned units, left;
};

static enum tame_status count_init(struct tame_call *call, void *state)
{
    struct count *count = state;

    inits++;
    now_ns += init_ns;
    if (!enif_get_uint(call->env, call->argv[0], &count->units) || count->units == 0)
        return tame_badarg(call, 1, "must be a number from 1");
    count->left = count->units;
    return tame_ok(call, count->units);
}

static enum tame_status count_step(struct tame_call *call, void *state, size_t units)
{
    struct count *count = state;
    const unsigned some = units < count->left ? (unsigned)units : count->left;

    if (steps < MAX_ASKED)
        asked[steps] = units;
    steps++;
    now_ns += some * unit_ns;
    count->left -= some;
    if (count->units >= 1000)
        return tame_fail(call, enif_make_atom(call->env, "too_many"));
    return count->left > 0 ? TAME_MORE : TAME_DONE;
}

static ERL_NIF_TERM count_result(struct tame_call *call, void *state)
{
    results++;
    return enif_make_uint(call->env, ((struct count *)state)->units);
}

static void count_cleanup(void *state)
{
    (void)state;
    cleanups++;
}

/* (Units) -> the parts Units, Units - 1 ... 1 */
static enum tame_status parts_step(struct tame_call *call, void *state, size_t units)
{
    struct count *count = state;

    (void)units;
    now_ns += unit_ns;
    if (count->units == 1)
        return TAME_DONE;
    return tame_emit(call, enif_make_uint(call->env, count->units--));
}

static const struct tame_job count = {.state_size = sizeof(struct count),
                                      .init = count_init,
                                      .step = count_step,
                                      .result = count_result,
                                      .cleanup = count_cleanup};

static const struct tame_job parts = {.state_size = sizeof(struct count),
                                      .init = count_init,
                                      .step = parts_step,
                                      .result = count_result,
                                      .cleanup = count_cleanup};

#define FUNCTIONS(JOB, NIF)             \
    JOB(count_nif, 1, count, TAME_AUTO) \
    JOB(parts_nif, 1, parts, TAME_YIELDING)

#define PARTS 1

TAME_NIF_INIT(short_test, FUNCTIONS)

static ErlNifEntry *entry;

/* What the function returns; the term lives in *env. */
static ERL_NIF_TERM call(ErlNifEnv **env, int row, unsigned units)
{
    ERL_NIF_TERM argv[1];

    *env = enif_alloc_env();
    (*env)->process = fake_process_begin();
    argv[0] = enif_make_uint(*env, units);
    return fake_call(*env, 0, entry->funcs[row].fptr, 1, argv);
}

static void end(ErlNifEnv *env)
{
    fake_kill(env->process);
    (void)fake_looks(env->process, 0);
    enif_free_env(env);
}

static void count_to(unsigned units)
{
    ErlNifEnv *env;
    unsigned value = 0;
    const ERL_NIF_TERM term = call(&env, 0, units);

    CHECK_EQ(enif_get_uint(env, term, &value), 1);
    CHECK_EQ(value, units);
    end(env);
}

static uint64_t charged_ns(void)
{
    return (uint64_t)fake_percents * TAME_IMPL_PERCENT_NS + tame_impl_mine.owed_ns;
}

/* A library that knows its row: calls of 300 ns. */
static void begin(void)
{
    ErlNifEnv *env = enif_alloc_env();

    tame_impl_cycles_stop(&tame_impl_cycles);
    tame_impl_cycles.clock = fake_clock;
    tame_impl_cycles.good_for = 1000000;
    memset(&tame_impl_mine, 0, sizeof tame_impl_mine);
    entry = nif_init();
    CHECK_EQ(entry->load(env, &fake_priv_data, FAKE_TERM(FAKE_INT, 0)), 0);
    enif_free_env(env);
    unit_ns = 10;
    init_ns = 100;
    for (int i = 0; i < 100; i++)
        count_to(20);
    inits = cleanups = results = steps = 0;
    readings = 0;
}

static void finish(void)
{
    ErlNifEnv *env = enif_alloc_env();

    fake_over = 1;
    (void)fake_destroyer(NULL); /* the runs that have moved */
    CHECK_EQ(inits, cleanups);
    entry->unload(env, fake_priv_data);
    enif_free_env(env);
}

static void one_of_eight_to_fifteen_is_measured(void)
{
    begin();
    for (int i = 0; i < 1600; i++)
        count_to(20);
    CHECK_EQ(steps, 1600);
    CHECK_EQ(readings >= 2 * 100 && readings <= 2 * 180, 1);
    finish();
}

static void all_are_charged(void)
{
    uint64_t before_ns, charged;

    begin();
    before_ns = now_ns;
    charged = charged_ns();
    for (int i = 0; i < 10000; i++)
        count_to(20);
    charged = charged_ns() - charged;
    CHECK_EQ(charged > 95 * (now_ns - before_ns) / 100, 1);
    CHECK_EQ(charged < 105 * (now_ns - before_ns) / 100, 1);
    finish();
}

/* `calls_before` short calls, then 50 long ones: what these 50 are charged. */
static uint64_t charged_of_dear(int calls_before)
{
    uint64_t charged;

    for (int i = 0; i < calls_before; i++)
        count_to(20);
    unit_ns = 20000; /* 400 us a call */
    charged = charged_ns();
    for (int i = 0; i < 50; i++)
        count_to(20);
    return charged_ns() - charged;
}

/* One call passes unseen; and no step is asked for more than before meanwhile. */
static void a_row_whose_calls_become_dear_is_measured(void)
{
    for (int i = 0; i < 20; i++) {
        uint64_t charged;

        begin();
        charged = charged_of_dear(i);
        CHECK_EQ(charged >= 49 * UINT64_C(400000), 1);
        CHECK_EQ(charged < 51 * UINT64_C(401000), 1);
        finish();
    }
}

/* Fifteen, where the counter is not steady. */
static void without_a_counter_some_more_pass_unseen(void)
{
    uint64_t charged;

    begin();
    tame_impl_cycles.good_for = 0;
    charged = charged_of_dear(0);
    CHECK_EQ(charged > 35 * UINT64_C(400000), 1);
    CHECK_EQ(charged < 51 * UINT64_C(401000), 1);
    finish();
}

/* In each order of long and short calls at most one call in 17 is long and passes for a short one. */
static void long_calls_among_short_ones_are_charged(void)
{
    for (int every = 2; every <= 16; every++) {
        uint64_t dear_ns = 0, charged;

        begin();
        charged = charged_ns();
        for (int i = 0; i < 1000; i++) {
            unit_ns = i % every == 0 ? 20000 : 10;
            dear_ns += i % every == 0 ? 400000 : 0;
            count_to(20);
        }
        charged = charged_ns() - charged;
        CHECK_EQ(charged >= dear_ns - 2 * 400000, 1);
        finish();
    }
}

/* The process that makes no call for a while is not charged for that, but measured. */
static void a_call_now_and_then_is_measured(void)
{
    uint64_t charged;

    begin();
    charged = charged_ns();
    for (int i = 0; i < 170; i++) {
        now_ns += 1000000;
        count_to(20);
    }
    charged = charged_ns() - charged;
    CHECK_EQ(readings >= 2 * 150, 1);
    CHECK_EQ(charged < 2 * 170 * 300, 1);
    finish();
}

static void calls_that_are_dear_now_and_then_are_charged(void)
{
    uint64_t before_ns, charged;

    begin();
    before_ns = now_ns;
    charged = charged_ns();
    for (int i = 0; i < 1000; i++) {
        unit_ns = i % 2 == 0 ? 10 : 20000;
        count_to(20);
    }
    charged = charged_ns() - charged;
    CHECK_EQ(charged > 90 * (now_ns - before_ns) / 100, 1);
    CHECK_EQ(charged < 110 * (now_ns - before_ns) / 100, 1);
    finish();
}

/* After the first step, which nobody has measured, a quarter of it. */
static void one_that_is_not_done_in_its_first_step_goes_on(void)
{
    int measured = 0;

    begin();
    for (int i = 0; i < 100; i++) {
        steps = 0;
        count_to(900);
        CHECK_EQ(steps > 1, 1);
        CHECK_EQ(asked[0] >= 20 && asked[0] < 900, 1);
        if (asked[1] > asked[0] / 4)
            measured++;
    }
    CHECK_EQ(measured <= 100 / 8 + 1, 1);
    CHECK_EQ(inits, 100);
    CHECK_EQ(results, 100);
    finish();
}

/* A rate that is too low, after a page that had to be fetched, does not stay. */
static void calls_that_take_two_steps_take_one_again(void)
{
    const double rate = 0.038; /* 19 units of 20 */
    struct tame_impl_row_stats *stats;

    begin();
    unit_ns = 5;
    stats = ((struct tame_impl_instance *)fake_priv_data)->row_stats;
    memcpy(&stats->rate, &rate, sizeof rate);
    stats->first_units = 19;
    for (int i = 0; i < 100; i++)
        count_to(20);
    steps = 0;
    for (int i = 0; i < 100; i++)
        count_to(20);
    CHECK_EQ(steps, 100);
    finish();
}

static void kind_is(ErlNifEnv *env, ERL_NIF_TERM term, const char *kind)
{
    const ERL_NIF_TERM *tuple;
    int len;

    CHECK_EQ(enif_get_tuple(env, term, &len, &tuple), 1);
    CHECK_EQ(len == 3 && tuple[1] == enif_make_atom(env, kind), 1);
}

static void what_is_refused_or_fails_ends_once(void)
{
    ErlNifEnv *env;

    begin();
    for (int i = 0; i < 100; i++) {
        const ERL_NIF_TERM term = call(&env, 0, i % 2 == 0 ? 0 : 1000);

        kind_is(env, term, i % 2 == 0 ? "badarg" : "error");
        end(env);
    }
    CHECK_EQ(inits, 100);
    CHECK_EQ(cleanups, 100);
    CHECK_EQ(results, 0);
    finish();
}

/* A row whose streams had no parts. */
static void a_part_is_given(void)
{
    ErlNifEnv *env;

    begin();
    for (int i = 0; i < 100; i++) {
        (void)call(&env, PARTS, 1);
        end(env);
    }
    CHECK_EQ(results, 100);
    for (int i = 0; i < 20; i++) {
        const ERL_NIF_TERM *tuple, *part;
        unsigned value = 0;
        int len;
        const ERL_NIF_TERM term = call(&env, PARTS, 7);

        kind_is(env, term, "part");
        (void)enif_get_tuple(env, term, &len, &tuple);
        (void)enif_get_tuple(env, tuple[2], &len, &part);
        CHECK_EQ(enif_get_uint(env, part[0], &value), 1);
        CHECK_EQ(value, 7);
        end(env);
    }
    finish();
}

int main(void)
{
    RUN(one_of_eight_to_fifteen_is_measured);
    RUN(all_are_charged);
    RUN(a_row_whose_calls_become_dear_is_measured);
    RUN(without_a_counter_some_more_pass_unseen);
    RUN(long_calls_among_short_ones_are_charged);
    RUN(a_call_now_and_then_is_measured);
    RUN(calls_that_are_dear_now_and_then_are_charged);
    RUN(one_that_is_not_done_in_its_first_step_goes_on);
    RUN(calls_that_take_two_steps_take_one_again);
    RUN(what_is_refused_or_fails_ends_once);
    RUN(a_part_is_given);
    return check_report();
}
