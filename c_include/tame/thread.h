/* tame/thread.h - threads of a library's own: how large their stack is.
 *
 * Part of tame.h; usable alone. */
#ifndef TAME_THREAD_H
#define TAME_THREAD_H

#include <erl_nif.h>
#include <stdint.h>

/* The VM gives no thread more, and says nothing when it is asked for more. */
#define TAME_MAX_STACK_KIB (64 * 1024)

/* Starts a thread as enif_thread_create does. `stack_kib` is the size of its stack in KiB, 0: the
 * VM's own choice. Returns 0 when all is well. */
static inline int tame_impl_thread_create(const char *name, ErlNifTid *tid, void *(*run)(void *),
                                          void *arg, uint32_t stack_kib)
{
    ErlNifThreadOpts *opts = NULL;
    int error;

    if (stack_kib > 0) {
        opts = enif_thread_opts_create((char *)name);
        if (opts == NULL)
            return 1;
        /* In kilowords. */
        opts->suggested_stack_size =
            (int)(((uint64_t)stack_kib + sizeof(void *) - 1) / sizeof(void *));
    }
    error = enif_thread_create((char *)name, tid, run, arg, opts);
    if (opts != NULL)
        enif_thread_opts_destroy(opts);
    return error;
}

#endif
