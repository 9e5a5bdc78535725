/* The NIFs of Tame.JobProbe (test/support/job_probe.ex): one job in every placement that counts
 * what tame.h calls it for, where it can be seen from outside and after the library's unload: in
 * the file that the environment variable TAME_PROBE_COUNTERS names. */
#include <tame.h>

#include "mapped.h"
#include "placements.h"

/* As test/support/job_probe.ex reads them. */
struct counters {
    uint64_t init, step, result, cleanup;
    uint64_t broken;  /* states that were not as they have to be */
    uint64_t release; /* set from outside: the held steps may end */
};

static struct counters *counters;

__attribute__((constructor)) static void open_counters(void)
{
    static struct counters nowhere;

    counters = mapped("TAME_PROBE_COUNTERS", &nowhere, sizeof nowhere);
}

static uint64_t count(uint64_t *counter)
{
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

#define ALIVE UINT64_C(0x616c697665)

struct probe {
    uint64_t left_us;
    uint64_t *memory; /* owned; holds ALIVE until cleanup */
    struct tame_input input;
    int raises;
};

static int is_word(ErlNifEnv *env, ERL_NIF_TERM term, const char *word)
{
    ErlNifBinary binary;

    return enif_inspect_binary(env, term, &binary) && binary.size == strlen(word) &&
           memcmp(binary.data, word, binary.size) == 0;
}

static enum tame_status probe_init(struct tame_call *call, void *state)
{
    struct probe *probe = state;
    ErlNifUInt64 us;

    count(&counters->init);
    if (probe->left_us != 0 || probe->memory != NULL || probe->input.data != NULL)
        count(&counters->broken);
    probe->memory = enif_alloc(1000);
    if (probe->memory == NULL)
        return tame_enomem(call);
    *probe->memory = ALIVE;
    if (is_word(call->env, call->argv[1], "failed"))
        return TAME_FAILED;
    if (is_word(call->env, call->argv[1], "raised")) {
        (void)enif_make_badarg(call->env);
        return TAME_FAILED;
    }
    if (is_word(call->env, call->argv[1], "outside")) {
        struct tame_input outside;

        if (!tame_input_binary(call, 1, &outside))
            return tame_badarg(call, 2, "is what init says after it was refused");
    }
    if (is_word(call->env, call->argv[1], "no argument") &&
        !tame_input_binary(call, -1, &probe->input))
        return tame_badarg(call, 2, "is what init says after it was refused");
    if (is_word(call->env, call->argv[1], "iodata")) {
        struct tame_iodata iodata;

        if (!tame_input_iodata(call, 1, 0, &iodata))
            return tame_badarg(call, 2, "is what init says after it was refused");
    }
    if (is_word(call->env, call->argv[1], "negative"))
        return tame_badarg(call, -1, "must be there");
    if (!enif_get_uint64(call->env, call->argv[0], &us))
        return tame_badarg(call, 1, "must be microseconds");
    if (!tame_input_binary(call, 1, &probe->input))
        return tame_badarg(call, 2, "must be a binary");
    if (is_word(call->env, call->argv[1], "shortened"))
        probe->input.size--;
    probe->left_us = us;
    probe->raises = is_word(call->env, call->argv[1], "raises");
    return tame_ok(call, us);
}

/* A unit keeps the CPU for a microsecond, and reads the input's last byte. */
static enum tame_status probe_step(struct tame_call *call, void *state, size_t units)
{
    struct probe *probe = state;
    const uint64_t us = units < probe->left_us ? units : probe->left_us;
    const uint64_t until_ns = tame_now_ns() + us * 1000;

    (void)call;
    count(&counters->step);
    if (*probe->memory != ALIVE ||
        (probe->input.size > 0 && probe->input.data[probe->input.size - 1] != 's'))
        count(&counters->broken);
    while (tame_now_ns() < until_ns) {
    }
    probe->left_us -= us;
    return probe->left_us == 0 ? TAME_DONE : TAME_MORE;
}

/* One step, however long: a thread that makes it does not give way. */
static enum tame_status held_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    count(&counters->step);
    while (!__atomic_load_n(&counters->release, __ATOMIC_RELAXED))
        usleep(200);
    return TAME_DONE;
}

/* How many results there have been, this one included: the order in which jobs ended. */
static ERL_NIF_TERM probe_result(struct tame_call *call, void *state)
{
    struct probe *probe = state;
    const uint64_t number = count(&counters->result);

    if (*probe->memory != ALIVE ||
        (probe->input.size > 0 && probe->input.data[probe->input.size - 1] != 's'))
        count(&counters->broken);
    if (probe->raises)
        return enif_raise_exception(call->env, enif_make_atom(call->env, "from_result"));
    return enif_make_uint64(call->env, number);
}

static void probe_cleanup(void *state)
{
    struct probe *probe = state;

    count(&counters->cleanup);
    if (*probe->memory != ALIVE)
        count(&counters->broken);
    *probe->memory = 0;
    enif_free(probe->memory);
}

#define PROBE                                                                   \
    .state_size = sizeof(struct probe), .init = probe_init, .step = probe_step, \
    .result = probe_result, .cleanup = probe_cleanup

static const struct tame_job probe = {PROBE};
static const struct tame_job few = {PROBE, .max_waiting = 3};
static const struct tame_job gated = {PROBE, .max_running = 2, .max_waiting = 3};

static const struct tame_job queued = {PROBE, .max_running = 2, .max_waiting = 100000};
static const struct tame_job held = {.state_size = sizeof(struct probe),
                                     .init = probe_init,
                                     .step = held_step,
                                     .result = probe_result,
                                     .cleanup = probe_cleanup};

#define FUNCTIONS(JOB, NIF)                   \
    PLACEMENTS(JOB, 2, probe)                 \
    JOB(held_nif, 2, held, TAME_POOL)         \
    JOB(queued_nif, 2, queued, TAME_YIELDING) \
    JOB(few_nif, 2, few, TAME_POOL)           \
    JOB(gated_nif, 2, gated, TAME_YIELDING)   \
    JOB(gated_pool_nif, 2, gated, TAME_POOL)

TAME_NIF_INIT(Elixir.Tame.JobProbe, FUNCTIONS)
