/* nif_process.c - processes and ports of the VM, asked and sent to without waiting for them. */
#include "nif_functions.h"
#include "nif_ring.h"

ERL_NIF_TERM nif_is_alive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (PidOrPort) -> boolean(); of another node: false. erlang:is_process_alive/1 and
     * erlang:port_info/2 wait until a process or port that is busy answers them. */
    ErlNifPid pid;
    ErlNifPort port;
    int alive = 0;

    (void)argc;
    if (enif_get_local_pid(env, argv[0], &pid))
        alive = enif_is_process_alive(env, &pid);
    else if (enif_get_local_port(env, argv[0], &port))
        alive = enif_is_port_alive(env, &port);
    return enif_make_atom(env, alive ? "true" : "false");
}

ERL_NIF_TERM nif_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Pid, Message) -> ok; on a dirty CPU scheduler, where a message is copied that would hold
     * another for too long */
    ErlNifEnv *message; /* ours; enif_send empties it */
    ErlNifPid pid;

    (void)argc;
    if (!enif_get_local_pid(env, argv[0], &pid))
        return enif_make_badarg(env);
    message = enif_alloc_env();
    if (message == NULL)
        return raise_enomem(env);
    (void)enif_send(env, &pid, message, enif_make_copy(message, argv[1]));
    enif_free_env(message);
    return library_of(env)->am_ok;
}
