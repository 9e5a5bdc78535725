/* A library that is loaded, and its table of functions. A host has one, or several that hand each
 * other pointers.
 *
 * A library lives as long as somebody may run its code: the table that calls find it in (call.h),
 * and each type of resources that has a callback of it (resource_type.h). Then its unload is called,
 * as in the VM, and it is closed.
 */
#ifndef TAME_HOST_LIBRARY_H
#define TAME_HOST_LIBRARY_H

#include <stddef.h>

#include "memory/nif.h"
#include "memory/shared.h"

/* The VM numbers libraries from 0, and functions through all of them: a library's number times
 * LIBRARY_FUNCTIONS_MAX, and the place in its table. */
#define LIBRARIES_MAX 64
#define LIBRARY_FUNCTIONS_MAX (1 << 14)

struct library {
    struct shared shared;
    void *handle;
    ErlNifEntry *entry;
    char *module;          /* entry->name in UTF-8: as the functions' names, it is Latin-1 */
    size_t function_bytes; /* from one ErlNifFunc to the next: shorter before NIF version 2.7 */
    void *priv_data;
    int loading;                    /* load or upgrade runs: resource types may be opened */
    int loaded;                     /* that has succeeded: unload is called at the end */
    int wants_caller;               /* it asks who calls (enif_self): see call.h */
    int sends;                      /* it may send messages */
    int calls;                      /* that run: the lock of call.c's table */
    int is_retired;                 /* no call begins any more: the same lock */
    struct resource_type *disowned; /* its own until the last call has ended (resource_type.h) */
};

/* Counted once, for the caller. The handle is the library's from now on. */
struct library *library_new(void *handle, ErlNifEntry *entry);

/* NULL: there is no function of this index. */
const ErlNifFunc *library_function(const struct library *library, int index);

/* 0 before NIF version 2.7: there was no such field. */
unsigned library_flags(const struct library *library, const ErlNifFunc *function);

#endif
