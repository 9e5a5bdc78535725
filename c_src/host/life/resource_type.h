/* The types of resources that the library has opened. */
#ifndef TAME_HOST_RESOURCE_TYPE_H
#define TAME_HOST_RESOURCE_TYPE_H

#include "memory/nif.h"

struct resource_type {
    struct resource_type *next;
    ErlNifResourceTypeInit init; /* what its type has not is NULL */
    char name[];
};

/* The type of this name, opened anew or taken over while the library loads. members: how many
 * callbacks of init are set, in their order in the struct; the rest is NULL. Returns NULL when
 * flags do not allow it; *tried is what was done, or else flags. */
struct resource_type *resource_type_open(const char *name, const ErlNifResourceTypeInit *init,
                                         int members, ErlNifResourceFlags flags,
                                         ErlNifResourceFlags *tried);

/* NULL: there is none of this name. */
struct resource_type *resource_type_find(const char *name);

#endif
