/* The functions of the API on descriptors. */
#include <limits.h>

#include "life/call.h"
#include "life/object.h"
#include "life/select.h"
#include "os/os.h"
#include "term/atom.h"

static int events_of(enum ErlNifSelectFlags flags)
{
    return ((flags & ERL_NIF_SELECT_READ) ? OS_READY_READ : 0) |
           ((flags & ERL_NIF_SELECT_WRITE) ? OS_READY_WRITE : 0) |
           ((flags & ERL_NIF_SELECT_ERROR) ? OS_READY_ERROR : 0);
}

int enif_select_x(ErlNifEnv *env, ErlNifEvent event, enum ErlNifSelectFlags flags, void *object,
                  const ErlNifPid *pid, ERL_NIF_TERM message, ErlNifEnv *msg_env)
{
    struct resource *resource = resource_of(object);
    struct select_message what = {.message = message,
                                  .is_whole = (flags & ERL_NIF_SELECT_CUSTOM_MSG) != 0};
    int result;

    if (flags & ERL_NIF_SELECT_STOP)
        return select_stop(resource, event);
    if (flags & ERL_NIF_SELECT_CANCEL)
        return select_cancel(resource, event, events_of(flags));
    if (pid != NULL)
        what.to = *pid;
    else if (env != NULL && env->call != NULL)
        what.to.pid = env->call->caller;
    else
        return INT_MIN | ERL_NIF_SELECT_FAILED; /* nobody to be told; the VM would crash */
    result = select_wait_for(resource, event, events_of(flags), &what);
    if (result >= 0 && what.is_whole && msg_env != NULL)
        env_reset(msg_env);
    return result;
}

int enif_select(ErlNifEnv *env, ErlNifEvent event, enum ErlNifSelectFlags flags, void *object,
                const ErlNifPid *pid, ERL_NIF_TERM message)
{
    return enif_select_x(env, event, flags, object, pid, message, NULL);
}
