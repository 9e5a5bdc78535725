/* The functions of the API on monitors. */
#include "life/monitor.h"
#include "life/object.h"

int enif_monitor_process(ErlNifEnv *env, void *object, const ErlNifPid *pid, ErlNifMonitor *monitor)
{
    struct resource *resource = resource_of(object);

    (void)env;
    if (resource->type->init.down == NULL)
        return -1;
    if (!is_local_pid(pid->pid))
        return 1; /* enif_set_pid_undefined */
    return monitor_start(resource, *pid, monitor) ? 0 : 1;
}

int enif_demonitor_process(ErlNifEnv *env, void *object, const ErlNifMonitor *monitor)
{
    (void)env;
    return monitor_stop(resource_of(object), monitor_id(monitor)) ? 0 : 1;
}

int enif_compare_monitors(const ErlNifMonitor *a, const ErlNifMonitor *b)
{
    uint64_t x = monitor_id(a), y = monitor_id(b);

    return x < y ? -1 : x > y;
}

ERL_NIF_TERM enif_make_monitor_term(ErlNifEnv *env, const ErlNifMonitor *monitor)
{
    term ref = monitor_ref(env, monitor);

    return ref == TERM_NONE ? enif_make_badarg(env) : ref;
}
