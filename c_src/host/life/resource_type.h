/* The types of resources that libraries have opened, found by module and name.
 *
 * A type belongs to the library that opened it last; while it has a callback of that library, it
 * keeps it. A library that no call begins in any more (resource_types_disown) takes its types out of
 * the list: they cannot be found any more. When the last call that runs has ended, which may make
 * objects until then, it leaves them to their objects (resource_types_leave), and they end with
 * the last. The VM frees them at once, under the call.
 */
#ifndef TAME_HOST_RESOURCE_TYPE_H
#define TAME_HOST_RESOURCE_TYPE_H

#include "life/library.h"

struct resource_type {
    struct shared
        shared; /* each object's, and the list's, or that of the library which disowned it */
    struct resource_type *next; /* in either */
    struct library *owner;      /* kept when keeps_owner; NULL: none any more */
    int keeps_owner;            /* it has a callback, and the owner has been loaded */
    int is_watching;            /* it has or had a callback `down`: its objects may have monitors */
    ErlNifResourceTypeInit init; /* what its type has not is NULL */
    char *module;                /* behind name, in the same memory */
    char name[];
};

/* A type's callbacks, and their library, kept for the caller until it calls
 * resource_callbacks_done. */
struct resource_callbacks {
    ErlNifResourceTypeInit init;
    struct library *owner; /* NULL: there is no callback */
    int is_watching;
};

struct resource_callbacks resource_callbacks(struct resource_type *type);
void resource_callbacks_done(const struct resource_callbacks *callbacks);

/* The type of this name and the library's module, opened anew or taken over while the library
 * loads. members: how many callbacks of init are set, in their order in the struct; the rest is
 * NULL. Returns NULL when flags do not allow it; *tried is what was done, or else flags. */
struct resource_type *resource_type_open(struct library *library, const char *name,
                                         const ErlNifResourceTypeInit *init, int members,
                                         ErlNifResourceFlags flags, ErlNifResourceFlags *tried);

/* The library has loaded: what it took over is its own from now on. */
void resource_types_commit(struct library *library);

/* It has not: all is as it was. */
void resource_types_roll_back(void);

/* The library is not to be used any more, but by calls that run and by objects. */
void resource_types_disown(struct library *library);

/* Nor by calls. */
void resource_types_leave(struct library *library);

/* The list, for a thread beside which none changes it. */
const struct resource_type *resource_types_first(void);

/* Whether a library owns a type. */
int resource_types_has(const struct library *library);

#endif
