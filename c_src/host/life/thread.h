/* What the API must know of the thread it runs on. */
#ifndef TAME_HOST_THREAD_H
#define TAME_HOST_THREAD_H

#include "memory/nif.h"

struct host_thread {
    int type;                      /* ERL_NIF_THR_... */
    const ErlNifFunc *function;    /* that the VM called and that runs now; NULL: none */
    ErlNifEnv *call_env;           /* its call's; NULL: no NIF runs here */
    struct env_chunk *spare_chunk; /* a chunk of the last call, for the next one */
    term receiver;       /* that was alive when this thread last sent it something; 0: none */
    int64_t receiver_ns; /* when that was, on the VM's clock */
    int in_call;
    int refused_thread;      /* in this call the library was refused one: thread_count.h */
    struct task *after_call; /* put off until it ends: worker.h */
};

extern _Thread_local struct host_thread host_thread;

#endif
