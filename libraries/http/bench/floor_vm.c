/* floor_vm: what floor.h does, on a thread of the VM, which asks a process before it answers: what a server does at least
 * whose handlers are processes. The message is an atom, and the process answers by a NIF that writes a number; or, for one request at a time, by one that
 * sends the answer itself. */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <stdatomic.h>

#include "floor.h"

static ErlNifPid handler;
static ErlNifEnv *message; /* the thread's, until the VM ends, as the thread and its listener are */
static unsigned asked;     /* the thread's */
static _Atomic unsigned answered;
static int sends;             /* the process does */
static struct client *asking; /* the thread's; the process's until it has sent */

static int ask(struct client *client)
{
    const unsigned mine = ++asked;

    asking = client;
    (void)enif_send(NULL, &handler, message, enif_make_atom(message, "asked"));
    enif_clear_env(message);
    if (sends)
        return 0;
    while (atomic_load(&answered) != mine)
        ;
    return 1;
}

static ERL_NIF_TERM answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    if (sends)
        send_said(asking);
    else
        (void)atomic_fetch_add(&answered, 1);
    return enif_make_atom(env, "ok");
}

static void *life(void *listener)
{
    int never[2]; /* nobody writes */

    if (pipe(never) != 0 || answer_all((int)(intptr_t)listener, never[0], ask) != 0)
        perror("floor_vm");
    return NULL;
}

/* begin(Port, Sends) -> Listening. The caller is asked, and sends the answers if Sends is 1. Once in a VM. */
static ERL_NIF_TERM begin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static ErlNifTid thread;
    unsigned port;
    int listener;

    (void)argc;
    if (message != NULL || !enif_get_uint(env, argv[0], &port) ||
        !enif_get_int(env, argv[1], &sends))
        return enif_make_badarg(env);
    listener = listen_at((unsigned short)port);
    message = enif_alloc_env();
    (void)enif_self(env, &handler);
    if (listener < 0 || message == NULL ||
        enif_thread_create("floor_vm", &thread, life, (void *)(intptr_t)listener, NULL) != 0)
        return enif_make_badarg(env);
    return enif_make_uint(env, port_of(listener));
}

static ErlNifFunc functions[] = {{"begin", 2, begin, 0}, {"answer", 0, answer, 0}};

ERL_NIF_INIT(Elixir.Tame.HTTP.Bench.FloorProcess, functions, NULL, NULL, NULL, NULL)
