/* The jobs of a whole library, called from many threads: gate, contexts, pool, threads, streams,
 * deadlines and deaths, without a VM (fake_nif.h). The sanitizers look on: the thread sanitizer sees
 * each state, each context and each queue that two threads touch without an order between them. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include "../../test/c/fake_nif.h"
#include <tame.h>

#define CALLERS 8
#define MAX_RUNNING 2
#define THINGS 2

/* ---- the library ---------------------------------------------------------------------------------- */

static int inits, cleanups, destroyed, alone_broken, over;

struct thing {
    uint64_t value; /* of who claims it: no lock, and not atomic */
    int holders;
};

static void thing_destroy(struct thing *thing)
{
    (void)thing;
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}

TAME_RESOURCE(thing, struct thing, thing_destroy);

/* (Thing | none, Units, Bytes) -> Units + the sum of the bytes. */
struct sum {
    struct thing *thing;
    struct tame_input bytes;
    uint64_t *memory; /* owned */
    unsigned left;
    uint64_t total;
    int gated;
};

static int running; /* of the gated pool's row */

static enum tame_status begin(struct tame_call *call, struct sum *sum)
{
    __atomic_add_fetch(&inits, 1, __ATOMIC_SEQ_CST);
    if (!enif_is_atom(call->env, call->argv[0])) {
        sum->thing = tame_claim(call, 0, &thing);
        if (sum->thing == NULL)
            return TAME_FAILED;
        if (__atomic_add_fetch(&sum->thing->holders, 1, __ATOMIC_SEQ_CST) != 1)
            __atomic_store_n(&alone_broken, 1, __ATOMIC_SEQ_CST);
    }
    sum->memory = malloc(sizeof *sum->memory);
    if (sum->memory == NULL || !enif_get_uint(call->env, call->argv[1], &sum->left))
        return tame_badarg(call, 2, "must be a number");
    *sum->memory = sum->left;
    return tame_input_binary(call, 2, &sum->bytes) ? tame_ok(call, TAME_UNKNOWN)
                                                   : tame_badarg(call, 3, "must be a binary");
}

static enum tame_status sum_init(struct tame_call *call, void *state)
{
    return begin(call, state);
}

static enum tame_status gated_init(struct tame_call *call, void *state)
{
    ((struct sum *)state)->gated = 1;
    if (__atomic_add_fetch(&running, 1, __ATOMIC_SEQ_CST) > MAX_RUNNING)
        __atomic_store_n(&over, 1, __ATOMIC_SEQ_CST);
    return begin(call, state);
}

static enum tame_status sum_step(struct tame_call *call, void *state, size_t units)
{
    struct sum *sum = state;

    (void)call;
    for (; units > 0 && sum->left > 0; units--, sum->left--) {
        const uint64_t until_ns = tame_now_ns() + 1000;

        while (tame_now_ns() < until_ns) {
        }
        sum->total++;
        if (sum->thing != NULL)
            sum->thing->value++;
    }
    if (sum->left > 0)
        return TAME_MORE;
    for (size_t i = 0; i < sum->bytes.size; i++)
        sum->total += sum->bytes.data[i];
    return TAME_DONE;
}

/* A part for each unit. */
static enum tame_status parts_step(struct tame_call *call, void *state, size_t units)
{
    struct sum *sum = state;

    (void)units;
    if (sum->left == 0)
        return TAME_DONE;
    sum->left--;
    return tame_emit(call, enif_make_tuple1(call->env, enif_make_uint(call->env, ++sum->total)));
}

static ERL_NIF_TERM sum_result(struct tame_call *call, void *state)
{
    struct sum *sum = state;

    return enif_make_uint(call->env, (unsigned)(sum->total + *sum->memory - *sum->memory));
}

static void sum_cleanup(void *state)
{
    struct sum *sum = state;

    if (sum->thing != NULL)
        __atomic_sub_fetch(&sum->thing->holders, 1, __ATOMIC_SEQ_CST);
    if (sum->gated)
        __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
    free(sum->memory);
    __atomic_add_fetch(&cleanups, 1, __ATOMIC_SEQ_CST);
}

static const struct tame_job sum = {.state_size = sizeof(struct sum),
                                    .init = sum_init,
                                    .step = sum_step,
                                    .result = sum_result,
                                    .cleanup = sum_cleanup};

static const struct tame_job gated = {.state_size = sizeof(struct sum),
                                      .init = gated_init,
                                      .step = sum_step,
                                      .result = sum_result,
                                      .cleanup = sum_cleanup,
                                      .max_running = MAX_RUNNING,
                                      .max_waiting = 4};

static const struct tame_job parts = {.state_size = sizeof(struct sum),
                                      .init = sum_init,
                                      .step = parts_step,
                                      .result = sum_result,
                                      .cleanup = sum_cleanup};

static const struct tame_resource *const resources[] = {&thing, NULL};

#define FUNCTIONS(JOB, NIF)                              \
    JOB(auto_nif, 3, sum, TAME_AUTO)                     \
    JOB(yielding_nif, 3, sum, TAME_YIELDING)             \
    JOB(dirty_cpu_nif, 3, sum, TAME_DIRTY_CPU)           \
    JOB(yielding_dirty_nif, 3, sum, TAME_YIELDING_DIRTY) \
    JOB(thread_nif, 3, sum, TAME_THREAD)                 \
    JOB(pool_nif, 3, sum, TAME_POOL)                     \
    JOB(gated_nif, 3, gated, TAME_YIELDING_DIRTY)        \
    JOB(parts_nif, 3, parts, TAME_POOL)

#define ROWS 8
#define THREAD 4
#define POOL 5
#define PARTS 7

TAME_NIF_INIT(jobs_test, FUNCTIONS, .resources = resources)

/* ---- a call, as tame_job_call makes it ------------------------------------------------------------ */

enum outcome { DIED, DEADLINE, FAILED, RIGHT, STOPPED, WRONG, OUTCOMES };

static ERL_NIF_TERM make_reference(void)
{
    static uint64_t last;

    return FAKE_TERM(FAKE_REF, __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED));
}

static ERL_NIF_TERM verb(ErlNifEnv *env, ERL_NIF_TERM run, ERL_NIF_TERM what, ERL_NIF_TERM list)
{
    const ERL_NIF_TERM argv[] = {run, what, list};

    return fake_call(env, 0, tame_impl_verb, 3, argv);
}

static int is_kind(ErlNifEnv *env, ERL_NIF_TERM kind, const char *name)
{
    return kind == enif_make_atom(env, name);
}

/* From what the NIF returned to how the call ended. `parts`: of a stream, how many are wanted. */
static enum outcome follow(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM list, unsigned expected,
                           unsigned wanted, uint64_t wait_ns)
{
    const uint64_t until_ns = tame_now_ns() + wait_ns;
    const ERL_NIF_TERM *tuple, *part, *told;
    ERL_NIF_TERM reference = 0;
    unsigned value, parts_come = 0;
    int len;

    for (;;) {
        if (term == 0)
            return DIED;
        if (!enif_get_tuple(env, term, &len, &tuple))
            return enif_get_uint(env, term, &value) && value == expected ? RIGHT : WRONG;
        if (is_kind(env, tuple[1], "error"))
            return FAILED;
        if (is_kind(env, tuple[1], "online")) {
            if (verb(env, enif_make_uint(env, 4), enif_make_atom(env, "online"),
                     FAKE_TERM(FAKE_NIL, 0)) == 0)
                return DIED;
            term = enif_make_tuple3(env, tuple[0], enif_make_atom(env, "run"), tuple[2]);
            continue;
        }
        if (is_kind(env, tuple[1], "part")) {
            (void)enif_get_tuple(env, tuple[2], &len, &part);
            (void)enif_get_tuple(env, part[0], &len, &told);
            if (!enif_get_uint(env, told[0], &value) || value != ++parts_come)
                return WRONG;
            if (parts_come == wanted)
                return verb(env, part[1], enif_make_atom(env, "stop"), list) == 0 ? DIED : STOPPED;
            term = enif_make_tuple3(env, tuple[0], enif_make_atom(env, "run"), part[1]);
            continue;
        }
        if (is_kind(env, tuple[1], "run")) {
            reference = make_reference();
            term = verb(env, tuple[2], reference, list);
            continue;
        }
        if (!is_kind(env, tuple[1], "wait"))
            return WRONG;
        if (fake_receive(env->process, reference,
                         tame_now_ns() < until_ns ? until_ns - tame_now_ns() : 0)) {
            term = enif_make_tuple3(env, tuple[0], enif_make_atom(env, "run"), tuple[2]);
            continue;
        }
        if (fake_looks(env->process, 0))
            return DIED;
        term = verb(env, tuple[2], enif_make_atom(env, "stop"), list);
        if (term == 0)
            return DIED;
        (void)enif_get_tuple(env, term, &len, &tuple);
        if (is_kind(env, tuple[2], "true") &&
            !fake_receive(env->process, reference, UINT64_MAX / 4))
            return DIED;
        return DEADLINE;
    }
}

/* ---- many callers --------------------------------------------------------------------------------- */

static ErlNifEntry *entry;
static struct thing *things[THINGS];
static int outcomes[OUTCOMES], messages_left;
static int trouble = 1; /* callers die, and meet deadlines */
static int calls = 400, only_row = -1;
static unsigned apart_us; /* between the first calls of the callers */

struct caller {
    unsigned seed;
    struct fake_process *process; /* the one that calls now; for the killer, under the lock */
    pthread_mutex_t lock;
    int over;
};

static struct caller callers[CALLERS];

static void one_call(struct caller *caller, struct fake_process *process)
{
    const unsigned any = (unsigned)rand_r(&caller->seed) % ROWS;
    const unsigned row = only_row >= 0 ? (unsigned)only_row : any;
    const unsigned units = (unsigned)rand_r(&caller->seed) % 300;
    const unsigned which = (unsigned)rand_r(&caller->seed) % (2 * THINGS);
    const int late = rand_r(&caller->seed) % 6 == 0 && trouble;
    const unsigned char bytes[100] = {1, 2, 3};
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM argv[3], list = FAKE_TERM(FAKE_NIL, 0);
    enum outcome outcome;

    env->process = process;
    argv[0] = which < THINGS && only_row < 0
                  ? enif_make_resource(env, tame_impl_context_of(things[which]))
                  : enif_make_atom(env, "none");
    argv[1] = enif_make_uint(env, row == PARTS ? units % 5 : units);
    argv[2] = fake_make(env, FAKE_BINARY, sizeof bytes, sizeof bytes, bytes);
    for (int i = 2; i >= 0; i--)
        list = enif_make_list_cell(env, argv[i], list);
    outcome =
        follow(env, fake_call(env, entry->funcs[row].flags != 0, entry->funcs[row].fptr, 3, argv),
               list, row == PARTS ? (units % 5) + 0 : units + 6, 1 + units % 4,
               late ? UINT64_C(300000) : UINT64_C(5000000000));
    enif_free_env(env); /* all that the process had */
    __atomic_add_fetch(&outcomes[outcome], 1, __ATOMIC_SEQ_CST);
}

static void *call_often(void *arg)
{
    struct caller *caller = arg;

    (void)usleep(apart_us * caller->seed);
    for (int i = 0; i < calls; i++) {
        struct fake_process *process = fake_process_begin();

        pthread_mutex_lock(&caller->lock);
        caller->process = process;
        pthread_mutex_unlock(&caller->lock);
        one_call(caller, process);
        pthread_mutex_lock(&caller->lock);
        caller->process = NULL;
        pthread_mutex_unlock(&caller->lock);
        pthread_mutex_lock(&process->lock);
        if (!process->killed)
            __atomic_add_fetch(&messages_left, process->go_len, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&process->lock);
        fake_kill(process); /* its normal end */
        (void)fake_looks(process, 0);
    }
    __atomic_store_n(&caller->over, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void *kill_now_and_then(void *arg)
{
    unsigned seed = 17;
    int over_now;

    (void)arg;
    do {
        struct timespec pause = {.tv_nsec = rand_r(&seed) % 2000000};
        struct caller *caller = &callers[(unsigned)rand_r(&seed) % CALLERS];

        (void)nanosleep(&pause, NULL);
        pthread_mutex_lock(&caller->lock);
        if (caller->process != NULL && trouble)
            fake_kill(caller->process);
        pthread_mutex_unlock(&caller->lock);
        over_now = 1;
        for (int i = 0; i < CALLERS; i++)
            over_now &= __atomic_load_n(&callers[i].over, __ATOMIC_SEQ_CST);
    } while (!over_now);
    return NULL;
}

static pthread_t destroyer;

static void load_library(ErlNifEnv *env)
{
    fake_over = inits = cleanups = 0;
    entry = nif_init();
    CHECK_EQ(entry->load(env, &fake_priv_data, FAKE_TERM(FAKE_INT, 0)), 0);
    (void)pthread_create(&destroyer, NULL, fake_destroyer, NULL);
}

static void unload_library(ErlNifEnv *env)
{
    /* As the VM: no unload before the last resource has gone. */
    for (int ms = 0; ms < 20000 && __atomic_load_n(&fake_resources, __ATOMIC_SEQ_CST) > 0; ms++)
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_EQ(fake_resources, 0);
    entry->unload(env, fake_priv_data);
    pthread_mutex_lock(&fake_resources_lock);
    fake_over = 1;
    pthread_cond_signal(&fake_doomed_came);
    pthread_mutex_unlock(&fake_resources_lock);
    (void)pthread_join(destroyer, NULL);
    enif_free_env(env);
    CHECK_EQ(inits, cleanups);
    CHECK_EQ(fake_envs, 0);
}

static void nothing_is_lost_when_callers_die(void)
{
    pthread_t threads[CALLERS], killer;
    ErlNifEnv *env = enif_alloc_env();

    memset(outcomes, 0, sizeof outcomes);
    destroyed = messages_left = 0;
    load_library(env);
    for (int i = 0; i < THINGS; i++)
        things[i] = tame_resource_new(env, &thing);
    for (int i = 0; i < CALLERS; i++) {
        memset(&callers[i], 0, sizeof callers[i]);
        callers[i].seed = (unsigned)i + 1;
        pthread_mutex_init(&callers[i].lock, NULL);
        (void)pthread_create(&threads[i], NULL, call_often, &callers[i]);
    }
    (void)pthread_create(&killer, NULL, kill_now_and_then, NULL);
    for (int i = 0; i < CALLERS; i++)
        (void)pthread_join(threads[i], NULL);
    (void)pthread_join(killer, NULL);
    for (int i = 0; i < THINGS; i++)
        enif_release_resource(tame_impl_context_of(things[i]));
    unload_library(env);
    CHECK_EQ(destroyed, THINGS);
    CHECK_EQ(alone_broken, 0);
    CHECK_EQ(over, 0);
    CHECK_EQ(messages_left, 0);
    CHECK_EQ(outcomes[WRONG], 0);
}

/* Where nobody dies, nobody is rescued from waiting for ever. */
static void nobody_waits_for_ever(int refuse_threads)
{
    fake_refuse_threads = refuse_threads;
    trouble = 0;
    nothing_is_lost_when_callers_die();
    trouble = 1;
    fake_refuse_threads = 0;
    CHECK_EQ(outcomes[DEADLINE], 0);
}

static void nobody_waits_for_ever_where_the_system_makes_every_second_thread(void)
{
    nobody_waits_for_ever(2);
}

static void nobody_waits_for_ever_where_the_system_makes_no_thread(void)
{
    nobody_waits_for_ever(1);
}

/* A run that comes while the first worker is made, when that has already looked. */
static void a_young_pool_takes_all_that_come(void)
{
    calls = 1;
    only_row = POOL;
    apart_us = 1500;
    fake_late_us = 40000;
    for (int round = 0; round < 5; round++)
        nobody_waits_for_ever(0);
    calls = 400;
    only_row = -1;
    apart_us = 0;
    fake_late_us = 0;
}

/* A call of 10 steps on a thread of ours, up to where it is given to that: the run, and the arguments. */
static ERL_NIF_TERM run_of(ErlNifEnv *env, int row, ERL_NIF_TERM *list)
{
    const ERL_NIF_TERM argv[] = {enif_make_atom(env, "none"), enif_make_uint(env, 10),
                                 fake_make(env, FAKE_BINARY, 1, 1, "\1")};
    const ERL_NIF_TERM *tuple;
    int len;

    *list = FAKE_TERM(FAKE_NIL, 0);
    for (int i = 2; i >= 0; i--)
        *list = enif_make_list_cell(env, argv[i], *list);
    CHECK_EQ(enif_get_tuple(env, fake_call(env, 0, entry->funcs[row].fptr, 3, argv), &len, &tuple),
             1);
    CHECK_EQ(is_kind(env, tuple[1], "run"), 1);
    return tuple[2];
}

static void call_unwatched(int row)
{
    ErlNifEnv *env = enif_alloc_env();
    ERL_NIF_TERM run, list;

    env->process = fake_process_begin();
    /* What a library's first call asks for. */
    (void)verb(env, enif_make_uint(env, 4), enif_make_atom(env, "online"), FAKE_TERM(FAKE_NIL, 0));
    run = run_of(env, row, &list);
    fake_full_type = ((struct tame_impl_instance *)fake_priv_data)->watch_type;
    CHECK_EQ(verb(env, run, make_reference(), list) == FAKE_EXCEPTION, 1);
    fake_full_type = NULL;
    CHECK_EQ(env->reason == enif_make_atom(env, "enomem"), 1);
    CHECK_EQ(inits, cleanups);
    env->raised = 0;
    /* The same process, when there is memory again. */
    run = run_of(env, row, &list);
    CHECK_EQ(
        follow(env,
               enif_make_tuple3(env, enif_make_atom(env, "none"), enif_make_atom(env, "run"), run),
               list, 11, 0, UINT64_C(60000000000)),
        RIGHT);
    fake_kill(env->process);
    (void)fake_looks(env->process, 0);
    enif_free_env(env);
}

static void a_call_raises_enomem_where_there_is_none_for_its_watch(void)
{
    ErlNifEnv *env = enif_alloc_env(), *holding = enif_alloc_env();

    load_library(env);
    /* The library is held, or memory is short for that before. */
    CHECK_EQ(tame_impl_hold_term(holding) != 0, 1);
    call_unwatched(POOL);
    call_unwatched(THREAD);
    enif_free_env(holding);
    unload_library(env);
}

int main(void)
{
    RUN(a_call_raises_enomem_where_there_is_none_for_its_watch);
    RUN(a_young_pool_takes_all_that_come);
    RUN(nothing_is_lost_when_callers_die);
    RUN(nobody_waits_for_ever_where_the_system_makes_every_second_thread);
    RUN(nobody_waits_for_ever_where_the_system_makes_no_thread);
    return check_report();
}
