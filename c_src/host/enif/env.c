/* The functions of the API on environments and exceptions. */
#include <stdlib.h>

#include "life/library.h"
#include "memory/env.h"
#include "term/atom.h"
#include "term/copy.h"

ErlNifEnv *enif_alloc_env(void)
{
    ErlNifEnv *env = malloc(sizeof *env);

    if (env != NULL)
        env_init(env, ENV_INDEPENDENT);
    return env;
}

void enif_free_env(ErlNifEnv *env)
{
    env_destroy(env);
    free(env);
}

void enif_clear_env(ErlNifEnv *env)
{
    env_reset(env);
}

void *enif_priv_data(ErlNifEnv *env)
{
    return env->library == NULL ? NULL : env->library->priv_data;
}

ERL_NIF_TERM enif_make_copy(ErlNifEnv *env, ERL_NIF_TERM source)
{
    return term_copy(env, source);
}

/* ---- exceptions ----------------------------------------------------------------------- */

ERL_NIF_TERM enif_make_badarg(ErlNifEnv *env)
{
    return enif_raise_exception(env, ATOM(badarg));
}

ERL_NIF_TERM enif_raise_exception(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    env->exception = reason;
    return TERM_NONE;
}

int enif_has_pending_exception(ErlNifEnv *env, ERL_NIF_TERM *reason)
{
    if (env->exception == TERM_NONE)
        return 0;
    if (reason != NULL)
        *reason = env->exception;
    return 1;
}

int enif_is_exception(ErlNifEnv *env, ERL_NIF_TERM t)
{
    /* What enif_schedule_nif returns is no term either, but no exception. */
    return t == TERM_NONE && env->exception != TERM_NONE;
}
