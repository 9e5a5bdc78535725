/* sums.h - terms in steps. Part of job_library_nif.c. */
#ifndef JOB_LIBRARY_SUMS_H
#define JOB_LIBRARY_SUMS_H

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

#endif
