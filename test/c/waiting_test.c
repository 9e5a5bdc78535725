/* The model of waiting (waiting.h), under a clock of the test's own. */
#include "check.h"
#include "waiting.h"

enum { US = 1000, MS = 1000000 };

/* ---- what one side decides ---- */

static void estimates_fall_faster_than_they_rise(void)
{
    uint32_t known = 0;

    waiting_learn(&known, 8000, 100000);
    CHECK_EQ(known, 1000);
    waiting_learn(&known, UINT64_MAX, 100000);
    CHECK_EQ(known, 1000 + 99000 / 8);
    waiting_learn(&known, 0, 100000);
    CHECK_EQ(known < 6700, 1);
    for (int i = 0; i < 40; i++)
        waiting_learn(&known, 0, 100000);
    CHECK_EQ(known, 0);
    for (int i = 0; i < 1000; i++)
        waiting_learn(&known, 7, 100000);
    CHECK_EQ(known, 7);
    for (int i = 0; i < 1000; i++)
        waiting_learn(&known, UINT64_MAX, 100000);
    CHECK_EQ(known, 100000);
}

static enum waiting_how begins(struct waiting_vm *vm, int woke, uint64_t now_ns)
{
    return waiting_begin(vm, 5, waiting_spin_ns(20 * US, 0), woke, 0, now_ns);
}

static void a_caller_spins_for_what_is_short(void)
{
    struct waiting_vm vm = {.work_ns = {0}};

    CHECK_EQ(begins(&vm, 0, 0), WAITING_SPIN);
    CHECK_EQ(begins(&vm, 1, 0), WAITING_POLL);
    for (int i = 0; i < 50; i++)
        waiting_replied(&vm, 5, 100 * US, 0);
    CHECK_EQ(begins(&vm, 0, 0), WAITING_POLL);
    for (int i = 0; i < 50; i++)
        waiting_replied(&vm, 5, 10 * MS, 0);
    CHECK_EQ(begins(&vm, 0, 0), WAITING_RECEIVE);
    /* Another function is another matter, also that of the host's next library; the same number
     * modulo WAITING_FUNCTIONS is not. */
    CHECK_EQ(waiting_begin(&vm, 5 + (1 << 14), 20 * US, 0, 0, 0), WAITING_SPIN);
    CHECK_EQ(waiting_begin(&vm, 6, 20 * US, 0, 0, 0), WAITING_SPIN);
    CHECK_EQ(waiting_begin(&vm, 5 + WAITING_FUNCTIONS, 20 * US, 0, 0, 0), WAITING_RECEIVE);
    /* A function that was slow and is fast again. */
    int calls = 0;
    for (; begins(&vm, 0, 0) != WAITING_SPIN; calls++)
        waiting_replied(&vm, 5, 2 * US, 0);
    CHECK_EQ(calls <= 8, 1);
}

static void a_caller_in_company_polls(void)
{
    struct waiting_scheduler scheduler = {.caller = 1};
    struct waiting_vm vm = {.work_ns = {0}};
    uint64_t now_ns = 5 * (uint64_t)MS;

    for (int i = 0; i < 50; i++)
        waiting_replied(&vm, 5, 2 * US, 0);
    CHECK_EQ(waiting_begin(&vm, 5, 20 * US, 0, 0, 0), WAITING_SPIN);
    CHECK_EQ(waiting_begin(&vm, 5, 20 * US, 0, 1, 0), WAITING_POLL);
    /* To yield would take longer than the call. */
    for (int i = 0; i < 50; i++)
        waiting_replied(&vm, 5, US / 5, 0);
    CHECK_EQ(waiting_begin(&vm, 5, 20 * US, 0, 1, 0), WAITING_SPIN);

    /* Alone, and with one who called long ago. */
    CHECK_EQ(waiting_called(&scheduler, 1, now_ns), 0);
    CHECK_EQ(waiting_called(&scheduler, 1, now_ns += US), 0);
    CHECK_EQ(waiting_called(&scheduler, 2, now_ns += WAITING_COMPANY_NS), 0);
    /* In turns. */
    CHECK_EQ(waiting_called(&scheduler, 1, now_ns += US), 1);
    CHECK_EQ(waiting_called(&scheduler, 2, now_ns += US), 1);
    CHECK_EQ(scheduler.visits, 5);
}

/* A turn that begins now, takes turn_ns, and has `visits` of other callers in it. */
static void turns(struct waiting_scheduler *scheduler, uint64_t turn_ns, uint64_t visits,
                  uint64_t *now_ns)
{
    const uint64_t since_ns = *now_ns, before = scheduler->visits;

    *now_ns += turn_ns;
    scheduler->visits += visits;
    waiting_looked(scheduler, since_ns, before, *now_ns);
}

/* For how long callers in turn spin from now on. */
static uint64_t spins_ns(struct waiting_scheduler *scheduler, uint64_t *now_ns)
{
    const uint64_t start_ns = *now_ns;

    for (int i = 0; i < 100000; i++, *now_ns += US)
        if (waiting_called(scheduler, (uint64_t)(7 + i % 2), *now_ns) && i > 0)
            return *now_ns - US - start_ns;
    return UINT64_MAX;
}

static void callers_spin_after_bad_turns(void)
{
    struct waiting_scheduler scheduler = {.caller = 1};
    uint64_t now_ns = 5 * (uint64_t)MS;

    /* Long, but with many visits in it; or bad once, which all callers see. */
    turns(&scheduler, 128 * US, 64, &now_ns);
    CHECK_EQ(spins_ns(&scheduler, &now_ns), 0);
    for (int i = 0; i < 16; i++)
        waiting_looked(&scheduler, now_ns - MS + i * US, scheduler.visits - 16, now_ns + i * US);
    now_ns += 16 * US;
    CHECK_EQ(spins_ns(&scheduler, &now_ns), 0);
    turns(&scheduler, 20 * US, 16, &now_ns);
    turns(&scheduler, MS, 16, &now_ns);
    CHECK_EQ(spins_ns(&scheduler, &now_ns), 0);
    /* Twice in a row. */
    turns(&scheduler, MS, 16, &now_ns);
    CHECK_EQ(spins_ns(&scheduler, &now_ns) / MS, WAITING_BAD_TURNS - 1);
    /* One that is bad is enough then, for as long as none is good. */
    turns(&scheduler, 60 * US, 4, &now_ns);
    CHECK_EQ(spins_ns(&scheduler, &now_ns) / (60 * US), WAITING_BAD_TURNS - 1);
    turns(&scheduler, 4 * US, 4, &now_ns);
    turns(&scheduler, 60 * US, 4, &now_ns);
    CHECK_EQ(spins_ns(&scheduler, &now_ns), 0);
    /* Who was suspended for long is no reason to spin for longer. */
    turns(&scheduler, 3600 * 1000 * (uint64_t)MS, 4, &now_ns);
    CHECK_EQ(waiting_called(&scheduler, 9, now_ns), 0);
    CHECK_EQ(waiting_called(&scheduler, 10, now_ns += WAITING_BAD_MAX_NS), 0);
    CHECK_EQ(waiting_called(&scheduler, 11, now_ns), 1);
}

static void a_core_that_is_lost_by_chance_is_no_crowd(void)
{
    struct waiting_vm vm = {.work_ns = {0}};
    uint64_t now_ns = 5 * (uint64_t)MS;

    for (int i = 0; i < 20; i++) {
        waiting_lost_core(&vm.crowd, now_ns, now_ns);
        CHECK_EQ(begins(&vm, 0, now_ns), WAITING_SPIN);
        now_ns += WAITING_AGAIN_NS + 1;
    }
    waiting_lost_core(&vm.crowd, now_ns, now_ns);
    /* 64 callers who waited then have lost it once, not 64 times. */
    for (int i = 1; i < 64; i++)
        waiting_lost_core(&vm.crowd, now_ns - i * US, now_ns + i * US);
    CHECK_EQ(begins(&vm, 0, now_ns + 64 * US), WAITING_SPIN);
    waiting_lost_core(&vm.crowd, now_ns + WAITING_AGAIN_NS, now_ns + WAITING_AGAIN_NS);
    CHECK_EQ(begins(&vm, 0, now_ns + WAITING_AGAIN_NS), WAITING_RECEIVE);
}

static void a_crowd_ends_spinning_for_a_while(void)
{
    struct waiting_vm vm = {.work_ns = {0}};
    uint64_t now_ns = 5 * (uint64_t)MS, last_ns = 0;

    waiting_lost_core(&vm.crowd, now_ns, now_ns);
    for (int i = 0; i < 20; i++) {
        uint64_t end_ns = now_ns;

        waiting_lost_core(&vm.crowd, now_ns, now_ns);
        while (begins(&vm, 0, end_ns) == WAITING_RECEIVE)
            end_ns += MS / 4;
        CHECK_EQ(end_ns - now_ns >= last_ns, 1);
        CHECK_EQ(end_ns - now_ns <= WAITING_CROWDED_MAX_NS, 1);
        last_ns = end_ns - now_ns;
        now_ns = end_ns;
    }
    CHECK_EQ(last_ns, WAITING_CROWDED_MAX_NS);
    for (int i = 0; i < 30; i++)
        waiting_uncrowded(&vm.crowd);
    waiting_lost_core(&vm.crowd, now_ns, now_ns);
    CHECK_EQ(begins(&vm, 0, now_ns), WAITING_RECEIVE);
    CHECK_EQ(begins(&vm, 0, now_ns + WAITING_CROWDED_NS), WAITING_SPIN);
    /* Polling in vain for a long call says nothing of others. */
    vm.crowd = (struct waiting_crowd){.lost_ns = now_ns};
    waiting_polled_out(&vm, MS, now_ns, now_ns);
    CHECK_EQ(begins(&vm, 0, now_ns), WAITING_SPIN);
    waiting_polled_out(&vm, US, now_ns, now_ns);
    CHECK_EQ(begins(&vm, 0, now_ns), WAITING_RECEIVE);
}

static void a_caller_gives_its_core_away_where_it_is_not_missed(void)
{
    struct waiting_vm vm = {.work_ns = {0}};
    struct waiting_scheduler scheduler = {.caller = 1};
    uint64_t now_ns = 5 * (uint64_t)MS, looked_ns, visits;

    CHECK_EQ(waiting_gives_core(&vm, WAITING_DEEP - 1, now_ns), 0);
    CHECK_EQ(waiting_gives_core(&vm, WAITING_DEEP, now_ns), 1);
    /* What others had of it, twice in a row, is no reason to spin. */
    for (int i = 0; i < 2; i++) {
        looked_ns = now_ns;
        visits = scheduler.visits;
        waiting_got_core(&vm, &scheduler, now_ns, now_ns + 300 * US);
        now_ns += 302 * US;
        waiting_looked(&scheduler, looked_ns, visits, now_ns);
    }
    CHECK_EQ(spins_ns(&scheduler, &now_ns), 0);
    /* It does not come back soon: once is chance. */
    waiting_got_core(&vm, &scheduler, now_ns, now_ns + 4 * MS);
    now_ns += 4 * MS;
    CHECK_EQ(waiting_gives_core(&vm, WAITING_DEEP, now_ns), 1);
    waiting_got_core(&vm, &scheduler, now_ns, now_ns + 4 * MS);
    now_ns += 4 * MS;
    CHECK_EQ(waiting_gives_core(&vm, WAITING_DEEP, now_ns), 0);
    CHECK_EQ(waiting_gives_core(&vm, WAITING_DEEP, now_ns + WAITING_CROWDED_NS), 1);
    /* Callers spin as before: it was given away, not lost. */
    CHECK_EQ(begins(&vm, 0, now_ns), WAITING_SPIN);
}

/* Beside a process that never sleeps, which the system gives turns of 4 ms. */
static void who_gives_its_core_to_a_hog_does_so_seldom(void)
{
    struct waiting_vm vm = {.work_ns = {0}};
    struct waiting_scheduler scheduler = {.caller = 1};
    const uint64_t start_ns = 5 * (uint64_t)MS;
    uint64_t now_ns = start_ns, given_ns = 0;

    while (now_ns < start_ns + 4000 * (uint64_t)MS) {
        if (waiting_gives_core(&vm, WAITING_DEEP, now_ns)) {
            waiting_got_core(&vm, &scheduler, now_ns, now_ns + 4 * MS);
            now_ns += 4 * MS;
            given_ns += 4 * MS;
        } else {
            now_ns += 10 * US;
        }
    }
    CHECK_EQ(given_ns * 5 < now_ns - start_ns, 1);
}

/* Nobody takes the call; its caller looks again after each turn. */
static void a_queue_wakes_a_worker_when_it_is_worth_it(void)
{
    const uint64_t turns_us[] = {1, 7, 49, 50, 51, 120, 399};

    for (size_t i = 0; i < sizeof turns_us / sizeof turns_us[0]; i++) {
        const uint64_t submitted_ns = 3 * (uint64_t)MS, turn_ns = turns_us[i] * US;
        uint64_t looked_ns = submitted_ns, now_ns, first_ns = 0;
        int woken = 0;

        for (now_ns = submitted_ns + turn_ns; now_ns - submitted_ns <= WAITING_POLL_NS;
             now_ns += turn_ns) {
            const int wakes = waiting_nudges(submitted_ns, looked_ns, now_ns);

            if (wakes && woken++ == 0)
                first_ns = now_ns;
            looked_ns = now_ns;
        }
        CHECK_EQ(woken, 1);
        CHECK_EQ(first_ns > submitted_ns + WAITING_WAKE_NS, 1);
        CHECK_EQ(first_ns <= submitted_ns + WAITING_WAKE_NS + turn_ns, 1);
    }
}

static void a_worker_spins_while_calls_come_soon(void)
{
    struct waiting_host host = {.pause_ns = 0};

    CHECK_EQ(waiting_taken(&host, 1, US), 1);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 0), WAITING_PAUSE_NS);
    CHECK_EQ(waiting_attend_ns(&host, 1, 0, 0) > WAITING_PAUSE_NS, 1);
    CHECK_EQ(waiting_attend_ns(&host, 0, 1, 0), 0); /* on its caller's CPU */
    CHECK_EQ(waiting_attend_ns(&host, 1, 1, 0), 0);
    /* One long pause is not the end of it; a few are. */
    (void)waiting_taken(&host, 1, 10 * MS);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 0) > 0, 1);
    for (int i = 0; i < 3; i++)
        (void)waiting_taken(&host, 1, 10 * MS);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 0), 0);
    (void)waiting_taken(&host, 1, US);
    (void)waiting_taken(&host, 1, US);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 0) > 0, 1);
    waiting_lost_core(&host.crowd, 7, 7);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 8) > 0, 1);
    waiting_lost_core(&host.crowd, 8, 8);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 9), 0);
}

static void a_worker_leaves_its_callers_cpu_the_second_time(void)
{
    struct waiting_host host = {.pause_ns = 0};

    CHECK_EQ(waiting_leaves(&host, 1), 0);
    CHECK_EQ(waiting_leaves(&host, 2), 1);
    CHECK_EQ(waiting_leaves(&host, 3), 0); /* it could not */
    /* Also where it does not spin, with pauses of 0.1 ms or a little more; not where calls come seldom. */
    for (int i = 0; i < 20; i++)
        (void)waiting_taken(&host, 1, WAITING_PAUSE_NS + 20 * US);
    CHECK_EQ(waiting_attend_ns(&host, 0, 0, 0), 0);
    CHECK_EQ(waiting_leaves(&host, 2), 1);
    for (int i = 0; i < 20; i++)
        (void)waiting_taken(&host, 1, 10 * MS);
    CHECK_EQ(waiting_leaves(&host, 2), 0);
    (void)waiting_taken(&host, 1, US);
    (void)waiting_taken(&host, 1, US);
    (void)waiting_taken(&host, 1, US);
    CHECK_EQ(waiting_leaves(&host, 2), 1);
}

static void a_worker_at_a_long_call_does_not_attend(void)
{
    struct waiting_host host = {.pause_ns = 0};

    for (int i = 0; i < 8; i++)
        waiting_worked(&host, 1, MS);
    CHECK_EQ(waiting_taken(&host, 1, 0), 0);
    CHECK_EQ(waiting_taken(&host, 2, 0), 1);
    for (int i = 0; i < 4; i++)
        waiting_worked(&host, 1, US);
    CHECK_EQ(waiting_taken(&host, 1, 0), 1);
}

/* ---- both sides, with one caller ---- */

/* A machine: what a wake-up and a look at memory take, and what a call and the time between two of
 * them take. Its two sides do what the model says, or always spin, or never. */
enum policy { MODEL, ALWAYS, NEVER };

struct machine {
    enum policy policy;
    struct waiting_vm vm;
    struct waiting_host host;
    uint64_t now_ns, host_idle_ns; /* when the last reply was there */
    int rang;
    uint64_t latency_ns, spun_ns; /* sums: what callers waited, and what both sides spun */
};

enum { LOOK_NS = 200, REAL_WAKE_NS = 30 * US };

/* Whether the host still spins when a request comes. What it has spun for is added up. */
static int host_is_awake(struct machine *machine)
{
    const uint64_t idle_ns = machine->now_ns - machine->host_idle_ns;
    const uint64_t limit_ns =
        machine->policy == ALWAYS ? UINT64_MAX
        : machine->policy == NEVER
            ? 0
            : waiting_attend_ns(&machine->host, machine->rang, 0, machine->host_idle_ns);

    machine->spun_ns += idle_ns < limit_ns ? idle_ns : limit_ns;
    return idle_ns <= limit_ns;
}

static void call(struct machine *machine, uint64_t work_ns)
{
    const uint64_t start_ns = machine->now_ns;
    const int awake = host_is_awake(machine);
    const uint64_t replied_ns = start_ns + (awake ? LOOK_NS : REAL_WAKE_NS) + work_ns;
    const enum waiting_how how = machine->policy == ALWAYS ? WAITING_SPIN
                                 : machine->policy == NEVER
                                     ? WAITING_RECEIVE
                                     : waiting_begin(&machine->vm, 1, 20 * US, !awake, 0, start_ns);
    const uint64_t patience_ns = machine->policy == ALWAYS ? UINT64_MAX
                                 : how == WAITING_SPIN     ? 20 * US + WAITING_POLL_NS
                                 : how == WAITING_POLL     ? WAITING_POLL_NS
                                                           : 0;
    const int saw_it = replied_ns - start_ns <= patience_ns;

    (void)waiting_taken(&machine->host, 1, waiting_pause_ns(&machine->vm, start_ns));
    machine->spun_ns += saw_it ? replied_ns - start_ns : patience_ns;
    machine->host_idle_ns = replied_ns;
    machine->rang = !saw_it;
    machine->now_ns = replied_ns + (saw_it ? LOOK_NS : 2 * REAL_WAKE_NS);
    machine->latency_ns += machine->now_ns - start_ns;
    waiting_replied(&machine->vm, 1, work_ns, machine->now_ns);
}

struct figures {
    uint64_t latency_ns, spun_ns; /* a call */
};

static struct figures calls(enum policy policy, uint64_t work_ns, uint64_t pause_ns, int warm_up)
{
    enum { CALLS = 1000 };
    struct machine machine = {.policy = policy, .now_ns = MS, .host_idle_ns = MS};

    machine.vm.replied_ns = MS;
    for (int i = 0; i < CALLS + warm_up; i++) {
        if (i == warm_up)
            machine.latency_ns = machine.spun_ns = 0;
        machine.now_ns += pause_ns;
        call(&machine, work_ns);
    }
    return (struct figures){machine.latency_ns / CALLS, machine.spun_ns / CALLS};
}

/* Back to back: as fast as if both always spun. */
static void calls_back_to_back_are_fast(void)
{
    const uint64_t works[] = {500, 5 * US, 18 * US, 60 * US, 150 * US};

    for (size_t i = 0; i < sizeof works / sizeof *works; i++) {
        const struct figures model = calls(MODEL, works[i], US, 10);
        const struct figures best = calls(ALWAYS, works[i], US, 10);

        CHECK_EQ(model.latency_ns <= best.latency_ns + US, 1);
    }
}

/* A ring whose sides both sleep is out of that after a few calls. */
static void both_asleep_is_no_trap(void)
{
    struct machine machine = {.policy = MODEL, .now_ns = MS, .host_idle_ns = MS};
    int slow = 0;

    machine.vm.replied_ns = MS;
    for (int i = 0; i < 100; i++) { /* calls seldom come */
        machine.now_ns += 10 * MS;
        call(&machine, 10 * US);
    }
    CHECK_EQ(waiting_attend_ns(&machine.host, 0, 0, machine.now_ns), 0);
    for (int i = 0; i < 100; i++) {
        const uint64_t before_ns = machine.latency_ns;

        machine.now_ns += US;
        call(&machine, 10 * US);
        slow += machine.latency_ns - before_ns > 12 * US;
    }
    CHECK_EQ(slow <= 4, 1);
}

/* A thousand calls a second: next to nothing is spun for, and no more is waited than for one
 * wake-up. */
static void calls_that_come_seldom_cost_no_core(void)
{
    const struct figures model = calls(MODEL, 5 * US, MS, 100);
    const struct figures never = calls(NEVER, 5 * US, MS, 100);

    CHECK_EQ(model.spun_ns <= 40 * US, 1); /* the caller's polling */
    CHECK_EQ(model.latency_ns < never.latency_ns / 2, 1);
}

/* At any rate, and for any call, it costs at most what one wake-up more would. */
static void nothing_is_much_worse_than_never_spinning(void)
{
    for (uint64_t work_ns = US; work_ns < 100 * MS; work_ns *= 3)
        for (uint64_t pause_ns = US; pause_ns < 100 * MS; pause_ns *= 3) {
            const struct figures model = calls(MODEL, work_ns, pause_ns, 100);
            const struct figures never = calls(NEVER, work_ns, pause_ns, 100);

            CHECK_EQ(model.latency_ns <= never.latency_ns, 1);
            CHECK_EQ(model.spun_ns <= 20 * US + WAITING_POLL_NS + 2 * WAITING_PAUSE_NS, 1);
            if (work_ns > MS && pause_ns > MS)
                CHECK_EQ(model.spun_ns, 0);
        }
}

int main(void)
{
    RUN(estimates_fall_faster_than_they_rise);
    RUN(a_caller_spins_for_what_is_short);
    RUN(a_caller_in_company_polls);
    RUN(callers_spin_after_bad_turns);
    RUN(a_core_that_is_lost_by_chance_is_no_crowd);
    RUN(a_crowd_ends_spinning_for_a_while);
    RUN(a_caller_gives_its_core_away_where_it_is_not_missed);
    RUN(who_gives_its_core_to_a_hog_does_so_seldom);
    RUN(a_queue_wakes_a_worker_when_it_is_worth_it);
    RUN(a_worker_spins_while_calls_come_soon);
    RUN(a_worker_leaves_its_callers_cpu_the_second_time);
    RUN(a_worker_at_a_long_call_does_not_attend);
    RUN(calls_back_to_back_are_fast);
    RUN(both_asleep_is_no_trap);
    RUN(calls_that_come_seldom_cost_no_core);
    RUN(nothing_is_much_worse_than_never_spinning);
    return check_report();
}
