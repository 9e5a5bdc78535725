/* bench_jobs: the smallest jobs that show what tame.h promises, and the uncut NIFs that they are
 * compared with. */
#include <string.h>
#include <tame.h>

/* ---- (Units, Rounds) -> ok: each unit is Rounds rounds of arithmetic ---- */

struct cost {
    uint64_t left;
    unsigned rounds;
};

static enum tame_status cost_init(struct tame_call *call, void *state)
{
    struct cost *cost = state;
    ErlNifUInt64 units;

    if (!enif_get_uint64(call->env, call->argv[0], &units))
        return tame_badarg(call, 1, "must be a number of units");
    if (!enif_get_uint(call->env, call->argv[1], &cost->rounds))
        return tame_badarg(call, 2, "must be a number of rounds");
    cost->left = units;
    return tame_ok(call, units);
}

static enum tame_status cost_step(struct tame_call *call, void *state, size_t units)
{
    struct cost *cost = state;
    static volatile uint64_t sink;

    (void)call;
    for (; units > 0 && cost->left > 0; units--, cost->left--)
        for (unsigned i = 0; i < cost->rounds; i++)
            sink = sink * UINT64_C(6364136223846793005) + 1;
    return cost->left == 0 ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM ok_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "ok");
}

static const struct tame_job cost = {
    .state_size = sizeof(struct cost), .init = cost_init, .step = cost_step, .result = ok_result};

/* ---- the sum of a list ---- */

/* Adds at most `cells` of *list. Returns 0 at its end, or at what is no integer. */
static int sum_some(ErlNifEnv *env, ERL_NIF_TERM *list, ErlNifSInt64 *sum, size_t cells)
{
    ERL_NIF_TERM head;
    ErlNifSInt64 value;

    for (; cells > 0; cells--) {
        if (!enif_get_list_cell(env, *list, &head, list) || !enif_get_int64(env, head, &value))
            return 0;
        *sum += value;
    }
    return 1;
}

static enum tame_status sum_init(struct tame_call *call, void *state)
{
    (void)state;
    call->root[0] = call->argv[0];
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status sum_step(struct tame_call *call, void *state, size_t units)
{
    if (sum_some(call->env, &call->root[0], state, units))
        return TAME_MORE;
    return enif_is_empty_list(call->env, call->root[0])
               ? TAME_DONE
               : tame_badarg(call, 1, "must be a list of integers");
}

static ERL_NIF_TERM sum_result(struct tame_call *call, void *state)
{
    return enif_make_int64(call->env, *(ErlNifSInt64 *)state);
}

static const struct tame_job sum = {.state_size = sizeof(ErlNifSInt64),
                                    .init = sum_init,
                                    .step = sum_step,
                                    .result = sum_result,
                                    .terms = 1};

static ERL_NIF_TERM sum_uncut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = argv[0];
    ErlNifSInt64 sum = 0;

    (void)argc;
    (void)sum_some(env, &list, &sum, SIZE_MAX);
    return enif_is_empty_list(env, list) ? enif_make_int64(env, sum) : enif_make_badarg(env);
}

/* ---- a list as result ---- */

static enum tame_status list_init(struct tame_call *call, void *state)
{
    return enif_get_uint(call->env, call->argv[0], state)
               ? tame_ok(call, 1)
               : tame_badarg(call, 1, "must be a length");
}

static enum tame_status no_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    return TAME_DONE;
}

static enum tame_status list_build(struct tame_call *call, void *state, size_t units)
{
    unsigned *left = state;

    for (; units > 0 && *left > 0; units--, --*left)
        call->root[0] =
            enif_make_list_cell(call->env, enif_make_uint(call->env, *left), call->root[0]);
    return *left == 0 ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM list_result(struct tame_call *call, void *state)
{
    (void)state;
    return call->root[0];
}

static const struct tame_job list = {.state_size = sizeof(unsigned),
                                     .init = list_init,
                                     .step = no_step,
                                     .build = list_build,
                                     .result = list_result};

/* ---- one short step, whatever the argument ---- */

static enum tame_status ignore_init(struct tame_call *call, void *state)
{
    (void)state;
    return tame_ok(call, 1);
}

static const struct tame_job ignore = {
    .state_size = 1, .init = ignore_init, .step = no_step, .result = ok_result};

/* ---- a large output, zeroed ---- */

struct zeros {
    struct tame_output out;
    size_t done;
};

static enum tame_status zeros_init(struct tame_call *call, void *state)
{
    struct zeros *zeros = state;
    ErlNifUInt64 size;

    if (!enif_get_uint64(call->env, call->argv[0], &size))
        return tame_badarg(call, 1, "must be a number of bytes");
    return tame_output_new(&zeros->out, size) ? tame_ok(call, size) : tame_enomem(call);
}

static enum tame_status zeros_step(struct tame_call *call, void *state, size_t units)
{
    struct zeros *zeros = state;
    const size_t left = zeros->out.size - zeros->done, count = units < left ? units : left;

    (void)call;
    memset(zeros->out.data + zeros->done, 0, count);
    zeros->done += count;
    return zeros->done == zeros->out.size ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM zeros_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct zeros *)state)->out);
}

static void zeros_cleanup(void *state)
{
    tame_output_free(&((struct zeros *)state)->out);
}

static const struct tame_job zeros = {.state_size = sizeof(struct zeros),
                                      .init = zeros_init,
                                      .step = zeros_step,
                                      .result = zeros_result,
                                      .cleanup = zeros_cleanup};

static ERL_NIF_TERM zeros_uncut(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 size;
    ErlNifBinary out;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &size) || !enif_alloc_binary(size, &out))
        return enif_make_badarg(env);
    memset(out.data, 0, size);
    return enif_make_binary(env, &out); /* the term owns it now */
}

#define FUNCTIONS(JOB, NIF)                            \
    JOB(cost_nif, 2, cost, TAME_AUTO)                  \
    JOB(cost_inline_nif, 2, cost, TAME_INLINE)         \
    JOB(cost_yielding_nif, 2, cost, TAME_YIELDING)     \
    JOB(cost_pool_nif, 2, cost, TAME_POOL)             \
    JOB(sum_nif, 1, sum, TAME_AUTO)                    \
    JOB(list_nif, 1, list, TAME_AUTO)                  \
    JOB(ignore_nif, 1, ignore, TAME_AUTO)              \
    JOB(ignore_yielding_nif, 1, ignore, TAME_YIELDING) \
    JOB(ignore_pool_nif, 1, ignore, TAME_POOL)         \
    JOB(zeros_nif, 1, zeros, TAME_AUTO)                \
    NIF(sum_uncut, 1, sum_uncut, TAME_INLINE)          \
    NIF(zeros_uncut, 1, zeros_uncut, TAME_INLINE)

TAME_NIF_INIT(bench_jobs, FUNCTIONS)
