/* Resources: objects of the library that Erlang holds by a reference. */
#ifndef TAME_HOST_RESOURCE_H
#define TAME_HOST_RESOURCE_H

#include "lease.h"
#include "term.h"

struct resource_type {
    struct resource_type *next;
    ErlNifResourceTypeInit init; /* what its type has not is NULL */
    char name[];
};

struct resource {
    struct shared shared; /* the library's, environments', and the lease's */
    struct resource_type *type;
    size_t size;
    struct lease *lease;      /* NULL: the VM does not know it */
    _Atomic uint64_t seen_in; /* the last call that had it among its arguments */
    _Alignas(16) unsigned char data[];
};

/* A reference to resource, kept by env. */
term resource_term(ErlNifEnv *env, struct resource *resource);

/* A reference of this node that came in: one of our resources, or any. */
term resource_or_ref(ErlNifEnv *env, const uint32_t *words, size_t len);

/* The words of a local reference of any kind. */
void resource_ref_words(term t, struct box_ref *ref);

static inline struct resource *resource_of(void *object)
{
    return (struct resource *)((char *)object - offsetof(struct resource, data));
}

#endif
