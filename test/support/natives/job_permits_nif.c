/* The NIFs of Tame.JobPermits.First and .Second (test/support/job_permits.ex): jobs that sleep in the
 * pool. How many of both libraries are in a step at once is counted in the file that the environment
 * variable TAME_PERMITS_COUNTERS names. */
#define TAME_MAX_THREADS 2
#include <tame.h>

#include "mapped.h"

/* As test/support/job_permits.ex reads them. */
struct counters {
    uint64_t working, most;
    uint64_t release; /* set from outside: the steps of `blocked` may end */
};

static struct counters *counters;

__attribute__((constructor)) static void open_counters(void)
{
    static struct counters nowhere;

    counters = mapped("TAME_PERMITS_COUNTERS", &nowhere, sizeof nowhere);
}

static void begin(void)
{
    const uint64_t now = __atomic_add_fetch(&counters->working, 1, __ATOMIC_SEQ_CST);
    uint64_t before = __atomic_load_n(&counters->most, __ATOMIC_SEQ_CST);

    while (now > before && !__atomic_compare_exchange_n(&counters->most, &before, now, 0,
                                                        __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

static void end(void)
{
    __atomic_sub_fetch(&counters->working, 1, __ATOMIC_SEQ_CST);
}

struct nap {
    uint64_t left;
};

static enum tame_status nap_init(struct tame_call *call, void *state)
{
    struct nap *nap = state;
    ErlNifUInt64 steps;

    if (!enif_get_uint64(call->env, call->argv[0], &steps))
        return tame_badarg(call, 1, "must be a number of steps");
    nap->left = steps;
    return tame_ok(call, TAME_UNKNOWN);
}

/* A millisecond in each step. */
static enum tame_status nap_step(struct tame_call *call, void *state, size_t units)
{
    struct nap *nap = state;

    (void)call;
    (void)units;
    begin();
    usleep(1000);
    end();
    if (nap->left > 0)
        nap->left--;
    return nap->left == 0 ? TAME_DONE : TAME_MORE;
}

static enum tame_status blocked_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    begin();
    while (!__atomic_load_n(&counters->release, __ATOMIC_SEQ_CST))
        usleep(200);
    end();
    return TAME_DONE;
}

static ERL_NIF_TERM nap_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "rested");
}

static const struct tame_job nap = {
    .state_size = sizeof(struct nap), .init = nap_init, .step = nap_step, .result = nap_result};
static const struct tame_job blocked = {
    .state_size = sizeof(struct nap), .init = nap_init, .step = blocked_step, .result = nap_result};

#define FUNCTIONS(JOB, NIF)                 \
    JOB(nap_nif, 1, nap, TAME_POOL)         \
    JOB(blocked_nif, 1, blocked, TAME_POOL) \
    JOB(apart_nif, 1, blocked, TAME_THREAD)

#ifdef SECOND
TAME_NIF_INIT(Elixir.Tame.JobPermits.Second, FUNCTIONS)
#else
TAME_NIF_INIT(Elixir.Tame.JobPermits.First, FUNCTIONS)
#endif
