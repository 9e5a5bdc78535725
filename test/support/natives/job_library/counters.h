/* counters.h - contexts, hooks, plain NIFs. Part of job_library_nif.c. */
#ifndef JOB_LIBRARY_COUNTERS_H
#define JOB_LIBRARY_COUNTERS_H

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

#endif
