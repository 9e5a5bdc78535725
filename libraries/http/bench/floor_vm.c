/* floor_vm: what floor.h does, on a thread of the VM, which asks a process before it answers: what a server does at least
 * whose handlers are processes. The message is an atom, and the process answers by a NIF that writes a number. */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <stdatomic.h>

#include "floor.h"

static ErlNifPid handler;
static ErlNifEnv *message; /* the thread's, until the VM ends, as the thread and its listener are */
static unsigned asked;     /* the thread's */
static _Atomic unsigned answered;

static void ask(void)
{
    const unsigned mine = ++asked;

    (void)enif_send(NULL, &handler, message, enif_make_atom(message, "asked"));
    enif_clear_env(message);
    while (atomic_load(&answered) != mine)
        ;
}

static ERL_NIF_TERM answer(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
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

/* start(Port) -> Listening. The caller is asked. Once in a VM. */
static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static ErlNifTid thread;
    unsigned port;
    int listener;

    (void)argc;
    if (message != NULL || !enif_get_uint(env, argv[0], &port))
        return enif_make_badarg(env);
    listener = listen_at((unsigned short)port);
    message = enif_alloc_env();
    (void)enif_self(env, &handler);
    if (listener < 0 || message == NULL ||
        enif_thread_create("floor_vm", &thread, life, (void *)(intptr_t)listener, NULL) != 0)
        return enif_make_badarg(env);
    return enif_make_uint(env, port_of(listener));
}

static ErlNifFunc functions[] = {{"start", 1, start, 0}, {"answer", 0, answer, 0}};

ERL_NIF_INIT(Elixir.Tame.HTTP.Bench.FloorVM, functions, NULL, NULL, NULL, NULL)
