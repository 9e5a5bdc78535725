/* Processes, ports, messages, references, unique integers. */
#include "contract.h"
#include <time.h>

/* "Initializes the ErlNifPid variable at *pid to represent the calling process." */
CASE(self)
{
    ErlNifPid pid;

    if (enif_self(env, &pid) == NULL)
        return enif_make_atom(env, "none");
    return enif_make_pid(env, &pid);
}

/* "If term is the pid of a node local process ... returns true"; "enif_is_process_alive". */
CASE(pids)
{
    struct results r = {.len = 0};
    ErlNifPid pid, other;
    ErlNifPort port;

    if (enif_get_local_pid(env, IN, &pid)) {
        add_int(env, &r, 1);
        add_int(env, &r, enif_is_process_alive(env, &pid) != 0);
        add(&r, enif_make_pid(env, &pid));
        add_int(env, &r, enif_is_pid_undefined(&pid) != 0);
        other = pid;
        add_int(env, &r, enif_compare_pids(&pid, &other));
    } else if (enif_get_local_port(env, IN, &port)) {
        add_int(env, &r, 2);
        add_int(env, &r, enif_is_port_alive(env, &port) != 0);
    } else {
        add_int(env, &r, 0);
    }
    enif_set_pid_undefined(&pid);
    add_int(env, &r, enif_is_pid_undefined(&pid) != 0);
    add_int(env, &r, enif_is_current_process_alive(env) != 0);
    return all(env, &r);
}

/* "Looks up a process by its registered name." */
CASE(whereis)
{
    ErlNifPid pid;
    ErlNifPort port;
    int is_pid = enif_whereis_pid(env, IN, &pid), is_port = enif_whereis_port(env, IN, &port);

    return enif_make_tuple3(env, enif_make_int(env, is_pid != 0), enif_make_int(env, is_port != 0),
                            is_pid ? enif_make_pid(env, &pid) : enif_make_atom(env, "none"));
}

/* "Sends a message to a process ... msg_env is invalidated ... can be used again." IN: {Pid, Term}
 */
CASE(send)
{
    const term *in;
    int arity, ok = 1;
    ErlNifPid pid;
    ErlNifEnv *message = enif_alloc_env();

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid))
        return enif_make_badarg(env);
    for (int i = 0; i < 3; i++)
        ok &= enif_send(env, &pid, message,
                        enif_make_tuple2(message, enif_make_int(message, i),
                                         enif_make_copy(message, in[1]))) != 0;
    /* "msg_env NULL: the message is copied" */
    ok &= enif_send(env, &pid, NULL, in[1]) != 0;
    enif_free_env(message);
    return boolean(env, ok);
}

/* IN: {Pid, as of large_term} */
CASE(send_large)
{
    const term *in;
    int arity;
    ErlNifPid pid;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid))
        return enif_make_badarg(env);
    return boolean(env, enif_send(env, &pid, NULL, large_term(env, in[1])));
}

struct sender {
    ErlNifPid pid;
    ErlNifEnv *env;
    term message;
};

static void *send_main(void *arg)
{
    struct sender *sender = arg;

    return enif_send(NULL, &sender->pid, sender->env, sender->message) ? arg : NULL;
}

/* "caller_env NULL: from a thread that is no scheduler" */
CASE(send_from_thread)
{
    const term *in;
    int arity;
    struct sender sender = {.env = enif_alloc_env()};
    ErlNifTid tid;
    void *result = NULL;
    char name[] = "sender";

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &sender.pid))
        return enif_make_badarg(env);
    sender.message = enif_make_copy(sender.env, in[1]);
    int created = enif_thread_create(name, &tid, send_main, &sender, NULL);
    int joined = enif_thread_join(tid, &result);
    enif_free_env(sender.env);
    return boolean(env, created == 0 && joined == 0 && result == &sender);
}

/* For 5 s at most. */
static void *send_until_gone_main(void *arg)
{
    struct sender *sender = arg;
    const struct timespec pause = {.tv_nsec = 1000000};

    for (int i = 0; i < 5000; i++) {
        if (!enif_send(NULL, &sender->pid, NULL, sender->message))
            return arg;
        nanosleep(&pause, NULL);
    }
    return NULL;
}

/* IN: a process that ends. Whether a thread that sends to it is told so. */
CASE(send_until_gone)
{
    struct sender sender = {.message = enif_make_atom(env, "message")};
    ErlNifTid tid;
    void *result = NULL;
    char name[] = "sender";

    if (!enif_get_local_pid(env, IN, &sender.pid))
        return enif_make_badarg(env);
    int created = enif_thread_create(name, &tid, send_until_gone_main, &sender, NULL);
    int joined = enif_thread_join(tid, &result);
    return boolean(env, created == 0 && joined == 0 && result == &sender);
}

/* "Creates a reference like erlang:make_ref/0" : unique. */
CASE(make_refs)
{
    term a = enif_make_ref(env), b = enif_make_ref(env);

    return enif_make_tuple3(env, enif_make_int(env, enif_is_ref(env, a) != 0),
                            enif_make_int(env, enif_is_identical(a, b) != 0),
                            enif_make_int(env, enif_is_identical(a, enif_make_copy(env, a))));
}

/* "Returns a unique integer with the same properties as specified by erlang:unique_integer/1." */
CASE(unique_integers)
{
    struct results r = {.len = 0};
    term last = enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC | ERL_NIF_UNIQUE_POSITIVE);

    add_int(env, &r, enif_compare(last, enif_make_int(env, 0)) > 0);
    for (int i = 0; i < 3; i++) {
        term next =
            enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC | ERL_NIF_UNIQUE_POSITIVE);
        add_int(env, &r, enif_compare(next, last) > 0);
        last = next;
    }
    add_int(env, &r, enif_is_number(env, enif_make_unique_integer(env, 0)) != 0);
    return all(env, &r);
}

/* "Works as erlang:port_command/2, except that it is always asynchronous." IN: {Port, Iodata} */
CASE(port_command)
{
    const term *in;
    int arity;
    ErlNifPort port;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_port(env, in[0], &port))
        return enif_make_badarg(env);
    return enif_make_int(env, enif_port_command(env, &port, NULL, in[1]) != 0);
}
