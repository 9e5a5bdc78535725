/* tame/permits.h: never more than there are, in turn, and nobody stops the others for ever. */
#include "../../test/c/check.h"
#include <tame/permits.h>

#include <unistd.h>

static struct tame_impl_permits permits;
static int closing;

static void begin(void)
{
    closing = 0;
    CHECK_EQ(tame_impl_permits_open(&permits), 1);
}

static void end(void)
{
    CHECK_EQ(permits.waiting.len, 0);
    tame_impl_permits_close(&permits);
}

/* Ten seconds at most: a test that waits for ever tells nothing. */
static void await_waiting(uint32_t count)
{
    for (int tries = 0; tries < 100000 && tame_impl_permits_waiting(&permits) < count; tries++)
        usleep(100);
    CHECK_EQ(tame_impl_permits_waiting(&permits) >= count, 1);
}

#define LIMIT 2
#define THREADS 6
#define TURNS 300

static uint32_t working, most, turns;

static void *take_turns(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        uint32_t now, before;

        if (!tame_impl_permits_take(&permits, LIMIT, &closing))
            return NULL;
        now = __atomic_add_fetch(&working, 1, __ATOMIC_SEQ_CST);
        before = __atomic_load_n(&most, __ATOMIC_SEQ_CST);
        while (now > before && !__atomic_compare_exchange_n(&most, &before, now, 0,
                                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        }
        __atomic_add_fetch(&turns, 1, __ATOMIC_SEQ_CST);
        usleep(20); /* the others come meanwhile, as many as may */
        __atomic_sub_fetch(&working, 1, __ATOMIC_SEQ_CST);
        tame_impl_permits_give(&permits);
    }
    return NULL;
}

static void as_many_work_at_once_as_there_are_permits(void)
{
    pthread_t threads[THREADS];

    begin();
    working = most = turns = 0;
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, take_turns, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
    CHECK_EQ(turns, THREADS * TURNS);
    CHECK_EQ(most, LIMIT);
    CHECK_EQ(permits.taken, 0);
    end();
}

static int order[3], ordered;

static void *take_in_order(void *number)
{
    CHECK_EQ(tame_impl_permits_take(&permits, 1, &closing), 1);
    order[ordered++] = *(int *)number; /* one at a time */
    tame_impl_permits_give(&permits);
    return NULL;
}

static void who_waits_first_is_served_first(void)
{
    int numbers[3] = {0, 1, 2};
    pthread_t threads[3];

    begin();
    ordered = 0;
    CHECK_EQ(tame_impl_permits_take(&permits, 1, &closing), 1);
    CHECK_EQ(tame_impl_permits_wanted(&permits, 1), 0);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(pthread_create(&threads[i], NULL, take_in_order, &numbers[i]), 0);
        await_waiting(i + 1);
        /* So that the first is not taken for one that nobody lets in. */
        (void)pthread_mutex_lock(&permits.lock);
        tame_impl_permits_move(&permits, 1);
        (void)pthread_mutex_unlock(&permits.lock);
    }
    CHECK_EQ(tame_impl_permits_wanted(&permits, 1), 1);
    tame_impl_permits_give(&permits);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(order[i], i);
    }
    end();
}

static void a_permit_that_never_comes_back_stops_nobody(void)
{
    uint64_t start_ns, waited_ns;

    begin();
    for (uint32_t stuck = 0; stuck < LIMIT; stuck++)
        CHECK_EQ(tame_impl_permits_take(&permits, LIMIT, &closing), 1);
    for (int more = 0; more < 2; more++) {
        start_ns = tame_now_ns();
        CHECK_EQ(tame_impl_permits_take(&permits, LIMIT, &closing), 1);
        waited_ns = tame_now_ns() - start_ns;
        CHECK_EQ(waited_ns > TAME_IMPL_PERMITS_STUCK_NS / 2, 1);
        CHECK_EQ(waited_ns < 100 * TAME_IMPL_PERMITS_STUCK_NS, 1);
    }
    /* Now there are too many, and who can gives back. */
    CHECK_EQ(permits.taken, LIMIT + 2);
    CHECK_EQ(tame_impl_permits_wanted(&permits, LIMIT), 1);
    tame_impl_permits_give(&permits);
    tame_impl_permits_give(&permits);
    CHECK_EQ(tame_impl_permits_wanted(&permits, LIMIT), 0);
    end();
}

static int ahead_s;

/* The wall clock as it was before somebody set it back by ahead_s: who waits by it stands still so long. */
int timespec_get(struct timespec *now, int base)
{
    (void)clock_gettime(CLOCK_REALTIME, now);
    now->tv_sec += ahead_s;
    return base;
}

static void a_wall_clock_that_is_set_back_stops_nobody(void)
{
    ahead_s = 15;
    a_permit_that_never_comes_back_stops_nobody();
    ahead_s = 0;
}

static void *take_closing(void *taken)
{
    *(int *)taken = tame_impl_permits_take(&permits, 0, &closing);
    return NULL;
}

static void who_waits_goes_when_its_pool_closes(void)
{
    pthread_t thread;
    int taken = -1;

    begin();
    (void)pthread_mutex_lock(&permits.lock);
    CHECK_EQ(pthread_create(&thread, NULL, take_closing, &taken), 0);
    tame_impl_permits_move(&permits, 0);
    (void)pthread_mutex_unlock(&permits.lock);
    await_waiting(1);
    __atomic_store_n(&closing, 1, __ATOMIC_RELAXED);
    tame_impl_permits_wake(&permits);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    CHECK_EQ(taken, 0);
    CHECK_EQ(permits.taken, 0);
    end();
}

int main(void)
{
    RUN(as_many_work_at_once_as_there_are_permits);
    RUN(who_waits_first_is_served_first);
    RUN(a_permit_that_never_comes_back_stops_nobody);
    RUN(a_wall_clock_that_is_set_back_stops_nobody);
    RUN(who_waits_goes_when_its_pool_closes);
    return check_report();
}
