/* counts.h - a result in steps, failures, and work of any kind. Part of job_library_nif.c. */
#ifndef JOB_LIBRARY_COUNTS_H
#define JOB_LIBRARY_COUNTS_H

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

/* (Units, Pause) -> ok: each unit is Pause pauses of the CPU, which take about 40 ns. */
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

#endif
