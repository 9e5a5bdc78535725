/* The NIFs of Tame.JobResults (test/support/job_results.ex): one job in every placement whose
 * result is whatever the test asks for. (Us, What, With) keeps a CPU for that number of us, then makes the
 * term. */
#include <tame.h>

#include "placements.h"

struct results {
    uint64_t left_us;
    struct tame_input input; /* `With`, where that is a binary */
};

static enum tame_status results_init(struct tame_call *call, void *state)
{
    struct results *results = state;
    ErlNifUInt64 us;

    if (!enif_get_uint64(call->env, call->argv[0], &us))
        return tame_badarg(call, 1, "must be microseconds");
    results->left_us = us;
    if (enif_is_binary(call->env, call->argv[2]))
        (void)tame_input_binary(call, 2, &results->input);
    return tame_ok(call, us);
}

static enum tame_status results_step(struct tame_call *call, void *state, size_t units)
{
    struct results *results = state;
    const uint64_t us = units < results->left_us ? units : results->left_us;
    const uint64_t until_ns = tame_now_ns() + us * 1000;

    (void)call;
    while (tame_now_ns() < until_ns) {
    }
    results->left_us -= us;
    return results->left_us == 0 ? TAME_DONE : TAME_MORE;
}

static ERL_NIF_TERM numbers(ErlNifEnv *env, const char *what, unsigned count)
{
    ERL_NIF_TERM *terms = enif_alloc(sizeof *terms * (count + 1)); /* freed below */
    ERL_NIF_TERM term;

    for (unsigned i = 0; i < count; i++)
        terms[i] = enif_make_uint(env, i);
    if (strcmp(what, "list") == 0)
        term = enif_make_list_from_array(env, terms, count);
    else if (strcmp(what, "tuple") == 0)
        term = enif_make_tuple_from_array(env, terms, count);
    else if (!enif_make_map_from_arrays(env, terms, terms, count, &term))
        term = enif_make_badarg(env);
    enif_free(terms);
    return term;
}

static ERL_NIF_TERM results_result(struct tame_call *call, void *state)
{
    struct results *results = state;
    ErlNifEnv *env = call->env;
    const ERL_NIF_TERM with = call->argv[2];
    ERL_NIF_TERM term;
    char what[16];
    unsigned count;
    ErlNifPid self;

    if (!enif_get_atom(env, call->argv[1], what, sizeof what, ERL_NIF_LATIN1))
        return enif_make_badarg(env);
    if (strcmp(what, "same") == 0)
        return with;
    if (strcmp(what, "self") == 0)
        return enif_make_pid(env, enif_self(env, &self));
    if (strcmp(what, "raise") == 0)
        return enif_raise_exception(env, with);
    if (strcmp(what, "decoded") == 0)
        return enif_binary_to_term(env, results->input.data, results->input.size, &term, 0) > 0
                   ? term
                   : enif_make_badarg(env);
    if (!enif_get_uint(env, with, &count))
        return enif_make_badarg(env);
    if (strcmp(what, "binary") == 0) {
        unsigned char *bytes = enif_make_new_binary(env, count, &term);

        for (unsigned i = 0; i < count; i++)
            bytes[i] = (unsigned char)i;
        return term;
    }
    return numbers(env, what, count);
}

static const struct tame_job results = {.state_size = sizeof(struct results),
                                        .init = results_init,
                                        .step = results_step,
                                        .result = results_result};

#define FUNCTIONS(JOB, NIF) PLACEMENTS(JOB, 3, results)

TAME_NIF_INIT(Elixir.Tame.JobResults, FUNCTIONS)
