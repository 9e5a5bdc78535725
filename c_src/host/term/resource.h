/* Resources: objects of the library that Erlang holds by a reference. */
#ifndef TAME_HOST_RESOURCE_H
#define TAME_HOST_RESOURCE_H

#include "term/term.h"

struct resource {
    struct shared shared; /* the library's, environments', and the lease's */
    _Atomic long kept;    /* those of them that are the library's own */
    struct resource_type *type;
    size_t size;
    struct lease *lease;      /* NULL: the VM does not know it */
    struct monitor *monitors; /* those that it has, with the lock of monitor.c */
    _Atomic uint64_t seen_in; /* the last call that had it among its arguments */
    _Alignas(16) unsigned char data[];
};

/* A reference to resource, kept by env. */
term resource_term(ErlNifEnv *env, struct resource *resource);

#endif
