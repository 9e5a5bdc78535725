/* The NIFs of Tame.JobLibrary (test/support/job_library.ex): what a real library needs of tame.h,
 * each in the smallest job that shows it. */
#include <tame.h>

#include "placements.h"

/* ---- terms in steps ---- */

/* (List, 0 | Fault) -> the sum of a list of integers; the list that is left is the first root. */
struct sum {
    int64_t total;
    int thread_types; /* a bit for each kind that a step ran on */
};

enum { ON_NORMAL = 1, ON_DIRTY = 2, ON_OTHER = 4 };

static int thread_kind(void)
{
    switch (enif_thread_type()) {
    case ERL_NIF_THR_NORMAL_SCHEDULER:
        return ON_NORMAL;
    case ERL_NIF_THR_DIRTY_CPU_SCHEDULER:
    case ERL_NIF_THR_DIRTY_IO_SCHEDULER:
        return ON_DIRTY;
    default:
        return ON_OTHER;
    }
}

static enum tame_status sum_init(struct tame_call *call, void *state)
{
    (void)state;
    call->root[0] = call->argv[0];
    return enif_is_list(call->env, call->argv[0]) ? tame_ok(call, TAME_UNKNOWN)
                                                  : tame_badarg(call, 1, "must be a list");
}

static enum tame_status sum_step(struct tame_call *call, void *state, size_t units)
{
    struct sum *sum = state;
    ERL_NIF_TERM head;
    ErlNifSInt64 value;

    sum->thread_types |= thread_kind();
    for (; units > 0; units--) {
        if (!enif_get_list_cell(call->env, call->root[0], &head, &call->root[0]))
            return enif_is_empty_list(call->env, call->root[0])
                       ? TAME_DONE
                       : tame_badarg(call, 1, "must be a proper list");
        if (!enif_get_int64(call->env, head, &value))
            return tame_fail(
                call, enif_make_tuple2(call->env, enif_make_atom(call->env, "no_integer"), head));
        sum->total += value;
    }
    return TAME_MORE;
}

static ERL_NIF_TERM sum_result(struct tame_call *call, void *state)
{
    struct sum *sum = state;

    return enif_make_tuple2(call->env, enif_make_int64(call->env, sum->total),
                            enif_make_int(call->env, sum->thread_types));
}

static const struct tame_job sum = {.state_size = sizeof(struct sum),
                                    .init = sum_init,
                                    .step = sum_step,
                                    .result = sum_result,
                                    .terms = 1};

/* The same in one uncut NIF, to compare. */
static ERL_NIF_TERM sum_uncut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM head, tail = argv[0];
    ErlNifSInt64 value;
    int64_t total = 0;

    (void)argc;
    while (enif_get_list_cell(env, tail, &head, &tail))
        total += enif_get_int64(env, head, &value) ? value : 0;
    return enif_make_int64(env, total);
}

/* ---- a result in steps, failures, and work of any kind ---- */

/* (Us, Length, What) -> [Length, ..., 1], built in steps after Us of work. What: fail and badarg are
 * said by a step, wrong and again are mistakes. */
struct count {
    uint64_t left_us;
    unsigned length, built;
    int thread_types;
    char what[16];
};

static enum tame_status count_init(struct tame_call *call, void *state)
{
    struct count *count = state;
    ErlNifUInt64 us;

    if (!enif_get_uint64(call->env, call->argv[0], &us) ||
        !enif_get_uint(call->env, call->argv[1], &count->length) ||
        !enif_get_atom(call->env, call->argv[2], count->what, sizeof count->what, ERL_NIF_LATIN1))
        return tame_badarg(call, 1, "must be microseconds");
    if (strcmp(count->what, "late") == 0) {
        const uint64_t until_ns =
            tame_impl_cpu_ns() + us * 1000; /* work, on however busy a machine */

        while (tame_impl_cpu_ns() < until_ns) {
        }
        return tame_badarg(call, 1, "is refused late");
    }
    count->left_us = us;
    return tame_ok(call, strcmp(count->what, "unknown") == 0 ? TAME_UNKNOWN : us);
}

static enum tame_status count_step(struct tame_call *call, void *state, size_t units)
{
    struct count *count = state;
    const int in_one = strcmp(count->what, "slow") == 0;
    const uint64_t us = units < count->left_us && !in_one ? units : count->left_us;
    const uint64_t until_ns = tame_now_ns() + us * 1000;

    count->thread_types |= thread_kind();
    if (strcmp(count->what, "idle") == 0)
        return TAME_MORE;
    while (tame_now_ns() < until_ns) {
    }
    count->left_us -= us;
    if (count->left_us > 0)
        return TAME_MORE;
    if (strcmp(count->what, "fail") == 0)
        return tame_fail(call, enif_make_tuple2(call->env, enif_make_atom(call->env, "corrupt"),
                                                enif_make_int(call->env, 7)));
    if (strcmp(count->what, "badarg") == 0)
        return tame_badarg(call, 2, "is corrupt");
    if (strcmp(count->what, "nothing") == 0)
        return TAME_FAILED;
    return TAME_DONE;
}

static enum tame_status count_build(struct tame_call *call, void *state, size_t units)
{
    struct count *count = state;

    for (; units > 0 && count->built < count->length; units--)
        call->root[0] = enif_make_list_cell(call->env, enif_make_uint(call->env, ++count->built),
                                            call->root[0]);
    return count->built == count->length ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM count_result(struct tame_call *call, void *state)
{
    struct count *count = state;

    return enif_make_tuple2(call->env, call->root[0],
                            enif_make_int(call->env, count->thread_types));
}

static const struct tame_job count = {.state_size = sizeof(struct count),
                                      .init = count_init,
                                      .step = count_step,
                                      .build = count_build,
                                      .result = count_result};

/* The same as one that uses terms. */
static const struct tame_job count_terms = {.state_size = sizeof(struct count),
                                            .init = count_init,
                                            .step = count_step,
                                            .build = count_build,
                                            .result = count_result,
                                            .terms = 1};

/* (Units, Pause) -> ok: each unit is so many pauses of the CPU, which take about 40 ns. */
struct cost {
    uint64_t left;
    unsigned pauses;
};

static enum tame_status cost_init(struct tame_call *call, void *state)
{
    struct cost *cost = state;
    ErlNifUInt64 units;

    if (!enif_get_uint64(call->env, call->argv[0], &units) ||
        !enif_get_uint(call->env, call->argv[1], &cost->pauses))
        return tame_badarg(call, 1, "must be units");
    cost->left = units;
    return tame_ok(call, units);
}

static enum tame_status cost_step(struct tame_call *call, void *state, size_t units)
{
    struct cost *cost = state;
    static volatile uint64_t sink;

    (void)call;
    for (; units > 0 && cost->left > 0; units--, cost->left--)
        for (unsigned i = 0; i < cost->pauses; i++)
            sink = sink * UINT64_C(6364136223846793005) + 1;
    return cost->left == 0 ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM cost_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "ok");
}

static const struct tame_job cost = {
    .state_size = sizeof(struct cost), .init = cost_init, .step = cost_step, .result = cost_result};

/* ---- streams ---- */

/* (From, To): emits From, ..., To, each in a tuple, after 10 us of work. */
struct parts {
    unsigned at, to;
};

static int cleaned_parts;

static enum tame_status parts_init(struct tame_call *call, void *state)
{
    struct parts *parts = state;

    if (!enif_get_uint(call->env, call->argv[0], &parts->at) ||
        !enif_get_uint(call->env, call->argv[1], &parts->to))
        return tame_badarg(call, 1, "must be a number");
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status parts_step(struct tame_call *call, void *state, size_t units)
{
    struct parts *parts = state;
    const uint64_t until_ns = tame_now_ns() + 10000;

    (void)units;
    if (parts->at > parts->to)
        return TAME_DONE;
    while (tame_now_ns() < until_ns) {
    }
    return tame_emit(call, enif_make_tuple1(call->env, enif_make_uint(call->env, parts->at++)));
}

static ERL_NIF_TERM parts_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "end");
}

static void parts_cleanup(void *state)
{
    (void)state;
    __atomic_add_fetch(&cleaned_parts, 1, __ATOMIC_RELAXED);
}

static const struct tame_job parts = {.state_size = sizeof(struct parts),
                                      .init = parts_init,
                                      .step = parts_step,
                                      .result = parts_result,
                                      .cleanup = parts_cleanup};

static ERL_NIF_TERM cleaned(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_int(env, __atomic_load_n(&cleaned_parts, __ATOMIC_RELAXED));
}

/* ---- iodata in, a growing output ---- */

/* (Iodata) -> the same bytes, each turned round, in one binary. */
struct flip {
    struct tame_iodata in;
    size_t done; /* of the chunk */
    struct tame_output out;
};

static enum tame_status flip_init(struct tame_call *call, void *state)
{
    struct flip *flip = state;

    return tame_input_iodata(call, 0, 0, &flip->in) ? tame_ok(call, TAME_UNKNOWN)
                                                    : tame_badarg(call, 1, "must be iodata");
}

static enum tame_status flip_step(struct tame_call *call, void *state, size_t units)
{
    struct flip *flip = state;

    while (units > 0) {
        const size_t left = flip->in.size - flip->done;
        size_t count = units < left ? units : left, room;
        unsigned char *to;

        if (left == 0) {
            const int next = tame_iodata_next(call, &flip->in);

            if (next <= 0)
                return next == 0 ? TAME_DONE : tame_badarg(call, 1, "must be iodata");
            flip->done = 0;
            units--; /* a chunk of no bytes is work, too */
            continue;
        }
        to = tame_output_room(call, &flip->out, 1, &room);
        if (to == NULL)
            return tame_enomem(call);
        count = room < count ? room : count;
        for (size_t i = 0; i < count; i++)
            to[i] = flip->in.data[flip->done + i] ^ 0xff;
        tame_output_wrote(&flip->out, count);
        flip->done += count;
        units -= count;
    }
    return TAME_MORE;
}

static ERL_NIF_TERM flip_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct flip *)state)->out);
}

static void flip_cleanup(void *state)
{
    tame_output_free(&((struct flip *)state)->out);
}

static const struct tame_job flip = {.state_size = sizeof(struct flip),
                                     .init = flip_init,
                                     .step = flip_step,
                                     .result = flip_result,
                                     .cleanup = flip_cleanup,
                                     .terms = 1};

/* ---- contexts, hooks, plain NIFs ---- */

struct counter {
    uint64_t value;
    int busy;             /* how many steps are in it */
    struct counter *kept; /* or NULL */
};

static int destroyed_counters;

static void counter_destroy(struct counter *counter)
{
    if (counter->kept != NULL)
        tame_resource_release(counter->kept);
    __atomic_add_fetch(&destroyed_counters, 1, __ATOMIC_RELAXED);
}

TAME_RESOURCE(counter, struct counter, counter_destroy);

static ERL_NIF_TERM new_counter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *made = tame_resource_new(env, &counter);

    (void)argc;
    (void)argv;
    return made == NULL ? enif_make_badarg(env) : tame_resource_term(env, made);
}

/* (Counter) -> a counter that keeps that one, and counts from its value */
static ERL_NIF_TERM keep_counter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct counter *made = tame_resource_new(env, &counter);

    (void)argc;
    if (made == NULL)
        return enif_make_badarg(env);
    made->kept = tame_resource_get(env, argv[0], &counter);
    if (made->kept == NULL) {
        tame_resource_release(made);
        return enif_make_badarg(env);
    }
    tame_resource_keep(made->kept);
    return tame_resource_term(env, made);
}

/* (Counter) -> the value of the one that it keeps */
static ERL_NIF_TERM read_kept(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct counter *read = tame_resource_get(env, argv[0], &counter);

    (void)argc;
    return read == NULL || read->kept == NULL ? enif_make_badarg(env)
                                              : enif_make_uint64(env, read->kept->value);
}

static ERL_NIF_TERM read_counter(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct counter *read = tame_resource_get(env, argv[0], &counter);

    (void)argc;
    return read == NULL ? enif_make_badarg(env) : enif_make_uint64(env, read->value);
}

/* () -> {Destroyed, what the load hook made} */
static ERL_NIF_TERM state_of(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const int *data = tame_data(env);

    (void)argc;
    (void)argv;
    return enif_make_tuple2(
        env, enif_make_int(env, __atomic_load_n(&destroyed_counters, __ATOMIC_RELAXED)),
        enif_make_int(env, *data));
}

/* (Counter, Times) -> what the counter showed before: adds one, Times times, a microsecond each. */
struct bump {
    struct counter *counter;
    uint64_t before;
    unsigned left;
};

static enum tame_status bump_init(struct tame_call *call, void *state)
{
    struct bump *bump = state;

    bump->counter = tame_claim(call, 0, &counter);
    if (bump->counter == NULL)
        return TAME_FAILED;
    if (!enif_get_uint(call->env, call->argv[1], &bump->left))
        return tame_badarg(call, 2, "must be a number");
    bump->before = bump->counter->value;
    return tame_ok(call, bump->left);
}

static enum tame_status bump_step(struct tame_call *call, void *state, size_t units)
{
    struct bump *bump = state;

    if (__atomic_add_fetch(&bump->counter->busy, 1, __ATOMIC_SEQ_CST) != 1)
        return tame_fail(call, enif_make_atom(call->env, "not_alone"));
    for (; units > 0 && bump->left > 0; units--, bump->left--) {
        const uint64_t until_ns = tame_now_ns() + 1000;

        while (tame_now_ns() < until_ns) {
        }
        bump->counter->value++; /* nobody else is here */
    }
    __atomic_sub_fetch(&bump->counter->busy, 1, __ATOMIC_SEQ_CST);
    return bump->left == 0 ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM bump_result(struct tame_call *call, void *state)
{
    return enif_make_uint64(call->env, ((struct bump *)state)->before);
}

static const struct tame_job bump = {
    .state_size = sizeof(struct bump), .init = bump_init, .step = bump_step, .result = bump_result};

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    int *made = enif_alloc(sizeof *made); /* owned by the instance, until unload */

    if (made == NULL || !enif_get_int(env, load_info, made) || *made < 0) {
        enif_free(made);
        return 1;
    }
    *data = made;
    return 0;
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env;
    enif_free(data);
}

static const struct tame_resource *const resources[] = {&counter, NULL};

#ifdef KEEPS
#define UPGRADE TAME_UPGRADE_KEEPS
#else
#define UPGRADE TAME_UPGRADE_REFUSED
#endif

#define NAMED(JOB, name, arity, job)                      \
    JOB(name##_auto_nif, arity, job, TAME_AUTO)           \
    JOB(name##_inline_nif, arity, job, TAME_INLINE)       \
    JOB(name##_yielding_nif, arity, job, TAME_YIELDING)   \
    JOB(name##_dirty_cpu_nif, arity, job, TAME_DIRTY_CPU) \
    JOB(name##_dirty_io_nif, arity, job, TAME_DIRTY_IO)   \
    JOB(name##_yielding_dirty_nif, arity, job, TAME_YIELDING_DIRTY)
#define OFF(JOB, name, arity, job)                  \
    JOB(name##_thread_nif, arity, job, TAME_THREAD) \
    JOB(name##_pool_nif, arity, job, TAME_POOL)

#define FUNCTIONS(JOB, NIF)                          \
    NAMED(JOB, sum, 1, sum)                          \
    NAMED(JOB, flip, 1, flip)                        \
    NAMED(JOB, count, 3, count)                      \
    OFF(JOB, count, 3, count)                        \
    JOB(count_terms_nif, 3, count_terms, TAME_AUTO)  \
    NAMED(JOB, cost, 2, cost)                        \
    NAMED(JOB, parts, 2, parts)                      \
    OFF(JOB, parts, 2, parts)                        \
    NAMED(JOB, bump, 2, bump)                        \
    OFF(JOB, bump, 2, bump)                          \
    NIF(sum_uncut, 1, sum_uncut, TAME_INLINE)        \
    NIF(cleaned, 0, cleaned, TAME_INLINE)            \
    NIF(new_counter, 0, new_counter, TAME_DIRTY_CPU) \
    NIF(keep_counter, 1, keep_counter, TAME_INLINE)  \
    NIF(read_kept, 1, read_kept, TAME_INLINE)        \
    NIF(read_counter, 1, read_counter, TAME_INLINE)  \
    NIF(state, 0, state_of, TAME_INLINE)

TAME_NIF_INIT(Elixir.Tame.JobLibrary, FUNCTIONS, .resources = resources, .upgrade = UPGRADE,
              .load = load, .unload = unload)
