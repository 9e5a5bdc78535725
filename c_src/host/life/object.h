/* The objects of resources: how they begin and end. */
#ifndef TAME_HOST_OBJECT_H
#define TAME_HOST_OBJECT_H

#include <stddef.h>

#include "life/resource_type.h"
#include "term/resource.h"

/* Counted once, for the caller. NULL: no memory. */
struct resource *object_new(struct resource_type *type, size_t size);

static inline struct resource *resource_of(void *object)
{
    return (struct resource *)((char *)object - offsetof(struct resource, data));
}

/* The resource that a term names. NULL: none. A binary of enif_make_resource_binary does too, and
 * so do its copies; a part of it does from OTP 27 on, when it is too large to be a copy. */
struct resource *object_named_by(term t);

#endif
