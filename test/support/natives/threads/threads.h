/* The NIFs of Tame.Threads (test/support/threads.ex): any of a list of uses of enif_*, on any kind
 * of thread: a normal scheduler, a dirty one, a thread of enif_thread_create, and in callbacks.
 *
 * A use (an `op`) gets a term and makes one that the test compares. On a scheduler both belong to
 * the environment of the NIF; elsewhere to one of its own. `caller` is what the manual of erl_nif
 * wants for caller_env there: the NIF's or the callback's environment, NULL on an own thread.
 *
 * A new use goes into the file of its category and into that file's list in ops.h. */
#ifndef THREADS_H
#define THREADS_H

#include <erl_nif.h>
#include "ops.h"

/* The prefix keeps a use apart from the NIFs and from the C library. */
#define OP(name)                                                                           \
    ERL_NIF_TERM op_##name(                                                                \
        ErlNifEnv *caller __attribute__((unused)), ErlNifEnv *env __attribute__((unused)), \
        ERL_NIF_TERM term __attribute__((unused)), const ErlNifPid *pid __attribute__((unused)))

/* Hidden, so that the linker refuses a prototype whose function does not exist. */
#define PROTOTYPE(name) \
    op_##name(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifPid *pid)
__attribute__((visibility("hidden"))) ERL_NIF_TERM OPS(PROTOTYPE);
#undef PROTOTYPE

/* Its destructor says on which thread it runs. The private data is the address of this variable. */
extern ErlNifResourceType *plain_type;

static inline ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

#endif
