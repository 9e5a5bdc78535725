/* The functions of the API on the call that runs: what comes after it, on whose time, whose it is.
 */
#include <string.h>

#include "life/call.h"
#include "life/thread.h"

/* A longer name of a function is refused, as by the VM. */
#define FUNCTION_NAME_MAX 255

ERL_NIF_TERM enif_schedule_nif(ErlNifEnv *env, const char *name, int flags, nif_function *function,
                               int argc, const ERL_NIF_TERM argv[])
{
    if (env->call == NULL || strlen(name) > FUNCTION_NAME_MAX || argc < 0 || argc > 255 ||
        (flags & ~(ERL_NIF_DIRTY_JOB_CPU_BOUND | ERL_NIF_DIRTY_JOB_IO_BOUND)) != 0)
        return enif_make_badarg(env);
    /* argv may lie on the stack of the NIF that is about to return. */
    term *copy = env_alloc(env, (size_t)argc * sizeof *copy);
    if (argc > 0)
        memcpy(copy, argv, (size_t)argc * sizeof *copy);
    env->hop = (struct hop){function, flags, argc, copy};
    return TERM_NONE;
}

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)percent; /* it is the caller who is charged, by the ring */
    return env->call != NULL && host_is_cancelled(env->call);
}

int enif_thread_type(void)
{
    return host_thread.type;
}

ErlNifPid *enif_self(ErlNifEnv *env, ErlNifPid *pid)
{
    if (env == NULL)
        return NULL;

    const term self = env->call == NULL ? env->loader : env->call->caller;

    if (self == TERM_NONE)
        return NULL;
    pid->pid = self;
    return pid;
}

int enif_is_current_process_alive(ErlNifEnv *env)
{
    return env->call != NULL && !host_is_cancelled(env->call);
}
