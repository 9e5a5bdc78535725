/* Monitors. */
#include "contract.h"

static ErlNifResourceType *down_type;
static int downs;

struct watch {
    ErlNifPid report_to;
    ErlNifMonitor monitor;
};

static void watched_is_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    struct watch *watch = object;
    ErlNifEnv *message = enif_alloc_env();
    int same = enif_compare_monitors(monitor, &watch->monitor) != 0 ||
               !enif_is_identical(enif_make_monitor_term(message, monitor),
                                  enif_make_monitor_term(message, &watch->monitor));

    __atomic_add_fetch(&downs, 1, __ATOMIC_SEQ_CST);
    enif_send(env, &watch->report_to, message,
              enif_make_tuple3(message, enif_make_atom(message, "down"),
                               enif_make_pid(message, pid), enif_make_int(message, same)));
    enif_free_env(message);
}

int load_monitors(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init = {.down = watched_is_down};

    down_type = enif_open_resource_type_x(env, "down", &init, ERL_NIF_RT_CREATE, NULL);
    return down_type == NULL;
}

/* "Starts monitoring a process from a resource. Returns 0 if the monitor is established, < 0 if no
 * down callback is specified, > 0 if the process is no longer alive." IN: {Pid, ReportTo} */
CASE(monitor)
{
    const term *in;
    int arity;
    ErlNifPid pid, report_to;
    struct watch *watch, *plain;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid) || !enif_get_local_pid(env, in[1], &report_to))
        return enif_make_badarg(env);
    watch = enif_alloc_resource(down_type, sizeof *watch);
    plain = enif_alloc_resource(plain_type, sizeof *plain);
    watch->report_to = report_to;
    int made = enif_monitor_process(env, watch, &pid, &watch->monitor);
    int refused = enif_monitor_process(env, plain, &pid, NULL);
    term handle = enif_make_resource(env, watch);
    enif_release_resource(watch);
    enif_release_resource(plain);
    return enif_make_tuple3(env, enif_make_int(env, made > 0 ? 1 : made),
                            enif_make_int(env, refused < 0), handle);
}

/* "Creates a term identifying the given monitor received from enif_monitor_process." IN: Pid */
CASE(monitor_term)
{
    ErlNifPid pid;
    ErlNifMonitor other;
    struct watch *watch = enif_alloc_resource(down_type, sizeof *watch);
    term handle = enif_make_resource(env, watch), terms[3];

    enif_release_resource(watch);
    if (!enif_get_local_pid(env, IN, &pid) ||
        enif_monitor_process(env, watch, &pid, &watch->monitor) != 0 ||
        enif_monitor_process(env, watch, &pid, &other) != 0)
        return enif_make_badarg(env);
    for (int i = 0; i < 3; i++)
        terms[i] = enif_make_monitor_term(env, i < 2 ? &watch->monitor : &other);
    const term result =
        enif_make_tuple4(env, enif_make_int(env, enif_is_ref(env, terms[0])),
                         enif_make_int(env, enif_compare(terms[0], terms[1])),
                         enif_make_int(env, enif_compare(terms[0], terms[2]) != 0),
                         enif_make_int(env, enif_demonitor_process(env, watch, &watch->monitor) +
                                                enif_demonitor_process(env, watch, &other)));
    (void)handle;
    return result;
}

/* How often the callback has run. */
CASE(monitor_downs)
{
    return enif_make_int(env, downs);
}

/* "Cancels a monitor ... Returns 0 if the monitor was successfully identified and removed; a
 * non-zero value if the monitor could not be identified." IN: handle of monitor */
CASE(demonitor)
{
    void *object;

    if (!enif_get_resource(env, IN, down_type, &object))
        return enif_make_badarg(env);
    struct watch *watch = object;
    int first = enif_demonitor_process(env, watch, &watch->monitor);
    int second = enif_demonitor_process(env, watch, &watch->monitor);
    return enif_make_tuple2(env, enif_make_int(env, first), enif_make_int(env, second != 0));
}

/* Many resources, each of which monitors a process, and then lets go. IN: {Pid, Count}, then {} */
CASE(monitor_many)
{
    static struct watch **watches;
    static int len;
    const term *in;
    ErlNifPid pid;
    int arity, made = 0;

    if (!enif_get_tuple(env, IN, &arity, &in))
        return enif_make_badarg(env);
    if (arity == 2) {
        if (!enif_get_local_pid(env, in[0], &pid) || !enif_get_int(env, in[1], &len))
            return enif_make_badarg(env);
        watches = enif_alloc((size_t)len * sizeof *watches);
        for (int i = 0; i < len; i++) {
            watches[i] = enif_alloc_resource(down_type, sizeof *watches[i]);
            enif_set_pid_undefined(&watches[i]->report_to);
            made += enif_monitor_process(env, watches[i], &pid, &watches[i]->monitor) == 0;
        }
        return enif_make_int(env, made);
    }
    for (int i = 0; i < len; i++)
        enif_release_resource(watches[i]);
    enif_free(watches);
    return enif_make_int(env, len);
}
