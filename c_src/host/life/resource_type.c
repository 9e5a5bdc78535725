/* Types of resources, see resource_type.h. */
#include <string.h>

#include "life/library.h"
#include "life/resource_type.h"
#include "memory/alloc.h"

struct resource_type *resource_type_find(const char *name)
{
    struct resource_type *type = library.types;

    while (type != NULL && strcmp(type->name, name) != 0)
        type = type->next;
    return type;
}

struct resource_type *resource_type_open(const char *name, const ErlNifResourceTypeInit *init,
                                         int members, ErlNifResourceFlags flags,
                                         ErlNifResourceFlags *tried)
{
    struct resource_type *type = resource_type_find(name);
    ErlNifResourceFlags did = type == NULL ? ERL_NIF_RT_CREATE : ERL_NIF_RT_TAKEOVER;

    if (!library.loading || (flags & did) == 0) {
        if (tried != NULL)
            *tried = flags;
        return NULL;
    }
    if (type == NULL) {
        type = host_calloc(sizeof *type + strlen(name) + 1);
        strcpy(type->name, name);
        type->next = library.types;
        library.types = type;
    }
    type->init = (ErlNifResourceTypeInit){.members = members};
    if (members > 0)
        type->init.dtor = init->dtor;
    if (members > 1)
        type->init.stop = init->stop;
    if (members > 2)
        type->init.down = init->down;
    if (members > 3)
        type->init.dyncall = init->dyncall;
    if (tried != NULL)
        *tried = did;
    return type;
}
