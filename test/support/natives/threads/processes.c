/* Processes, ports, resources and events. */
#include "threads.h"
#include <string.h>
#include <unistd.h>

OP(self)
{
    ErlNifPid self;

    return enif_self(env, &self) != NULL ? enif_make_pid(env, &self) : atom(env, "none");
}

OP(whereis)
{
    ErlNifPid found;

    return enif_whereis_pid(caller, atom(env, "init"), &found) ? enif_make_pid(env, &found)
                                                               : atom(env, "refused");
}

OP(alive)
{
    ErlNifPid copy = *pid;

    return atom(env, enif_is_process_alive(caller, &copy) ? "true" : "false");
}

/* {Port, Data}. The one function that takes no NULL for caller_env, says its source, and an
 * environment that is no caller's on an own thread. */
OP(port_command)
{
    const ERL_NIF_TERM *elements;
    int arity;
    ErlNifPort port;

    return enif_get_tuple(env, term, &arity, &elements) && arity == 2 &&
                   enif_get_local_port(env, elements[0], &port) &&
                   enif_port_command(caller != NULL ? caller : env, &port, NULL, elements[1])
               ? atom(env, "sent")
               : atom(env, "refused");
}

OP(port_command_null)
{
    const ERL_NIF_TERM *elements;
    int arity;
    ErlNifPort port;

    return enif_get_tuple(env, term, &arity, &elements) && arity == 2 &&
                   enif_get_local_port(env, elements[0], &port) &&
                   enif_port_command(NULL, &port, NULL, elements[1])
               ? atom(env, "sent")
               : atom(env, "refused");
}

OP(port_alive)
{
    ErlNifPort port;

    return atom(env, enif_get_local_port(env, term, &port) && enif_is_port_alive(caller, &port)
                         ? "true"
                         : "false");
}

/* A resource that is released at once: its destructor tells the test on which thread it runs. */
OP(resource)
{
    void *object = enif_alloc_resource(plain_type, sizeof *pid), *again;
    ErlNifEnv *other = enif_alloc_env(); /* freed below, and the term with it */

    memcpy(object, pid, sizeof *pid);
    if (!enif_get_resource(other, enif_make_resource(other, object), plain_type, &again) ||
        again != object)
        enif_set_pid_undefined((ErlNifPid *)object);
    enif_release_resource(object);
    enif_free_env(other);
    return atom(env, "released");
}

OP(monitor)
{
    void *object = enif_alloc_resource(plain_type, sizeof *pid);
    ErlNifMonitor monitor;
    int monitored, ended;

    enif_set_pid_undefined((ErlNifPid *)object);
    monitored = enif_monitor_process(caller, object, pid, &monitor) == 0;
    ended = monitored && enif_demonitor_process(caller, object, &monitor) == 0;
    enif_release_resource(object);
    return atom(env, ended ? "true" : "false");
}

/* Waits for a pipe that has something to read: {select, Resource, undefined, ready_input} follows.
 */
OP(select_event)
{
    struct plain {
        ErlNifPid pid;
        int fds[2];
    } *plain = enif_alloc_resource(plain_type, sizeof *plain);
    int selected = -1;

    enif_set_pid_undefined(&plain->pid);
    if (pipe(plain->fds) == 0 && write(plain->fds[1], "x", 1) == 1)
        /* The event keeps the resource; the pipe is left to the end of the throw-away VM. */
        selected = enif_select(caller, plain->fds[0], ERL_NIF_SELECT_READ, plain, pid,
                               enif_make_atom(env, "undefined"));
    enif_release_resource(plain);
    return enif_make_int(env, selected);
}
