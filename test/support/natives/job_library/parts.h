/* parts.h - streams. Part of job_library_nif.c. */
#ifndef JOB_LIBRARY_PARTS_H
#define JOB_LIBRARY_PARTS_H

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

/* (Us): emits one part, and works for as long then, 10 us in each step; of 0 us it says that it has emitted
 * one. */
struct late {
    unsigned begun, left_us;
};

static enum tame_status late_init(struct tame_call *call, void *state)
{
    struct late *late = state;

    if (!enif_get_uint(call->env, call->argv[0], &late->left_us))
        return tame_badarg(call, 1, "must be microseconds");
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status late_step(struct tame_call *call, void *state, size_t units)
{
    struct late *late = state;
    const uint64_t until_ns = tame_now_ns() + 10000;

    (void)units;
    if (!late->begun++)
        return late->left_us > 0 ? tame_emit(call, enif_make_atom(call->env, "begun")) : TAME_PART;
    while (tame_now_ns() < until_ns) {
    }
    late->left_us -= late->left_us < 10 ? late->left_us : 10;
    return late->left_us > 0 ? TAME_MORE : TAME_DONE;
}

static const struct tame_job late = {.state_size = sizeof(struct late),
                                     .init = late_init,
                                     .step = late_step,
                                     .result = parts_result};

static ERL_NIF_TERM cleaned(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_int(env, __atomic_load_n(&cleaned_parts, __ATOMIC_RELAXED));
}

#endif
