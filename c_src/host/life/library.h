/* The library that is loaded, and its table of functions. */
#ifndef TAME_HOST_LIBRARY_H
#define TAME_HOST_LIBRARY_H

#include <stddef.h>

#include "memory/nif.h"

struct library {
    void *handle;
    ErlNifEntry *entry;    /* NULL: none is loaded */
    size_t function_bytes; /* from one ErlNifFunc to the next: shorter before NIF version 2.7 */
    void *priv_data;
    int loading; /* load runs: resource types may be opened */
    struct resource_type *types;
    int wants_caller; /* it asks who calls (enif_self): see call.h */
    int sends;        /* it may send messages */
};

extern struct library library;

/* NULL: there is no function of this number. */
const ErlNifFunc *library_function(int index);

/* 0 before NIF version 2.7: there was no such field. */
unsigned library_flags(const ErlNifFunc *function);

#endif
