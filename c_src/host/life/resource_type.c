/* Types of resources, see resource_type.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "life/resource_type.h"
#include "memory/alloc.h"

/* What the library that loads now has opened, the latest first. One loads at a time (load.c). */
struct opened {
    struct opened *next;
    struct resource_type *type;
    ErlNifResourceTypeInit init;
    int is_new;
};

static struct {
    pthread_mutex_t lock; /* for all types and their callbacks */
    struct resource_type *first;
    struct opened *opened;
} types = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int has_callback(const ErlNifResourceTypeInit *init)
{
    return init->dtor != NULL || init->stop != NULL || init->down != NULL || init->dyncall != NULL;
}

/* Its list and its objects have let go of it. */
static void release(struct shared *shared)
{
    struct resource_type *type = (struct resource_type *)shared;

    if (type->keeps_owner)
        shared_drop(&type->owner->shared);
    free(type);
}

static struct resource_type *find(const char *module, const char *name)
{
    struct resource_type *type = types.first;

    while (type != NULL && (strcmp(type->name, name) != 0 || strcmp(type->module, module) != 0))
        type = type->next;
    return type;
}

static struct resource_type *type_new(struct library *library, const char *name,
                                      const ErlNifResourceTypeInit *init)
{
    const char *module = library->module;
    size_t size = strlen(name) + 1;
    struct resource_type *type = host_calloc(sizeof *type + size + strlen(module) + 1);

    *type = (struct resource_type){
        .shared = {1, release}, .next = types.first, .owner = library, .init = *init};
    type->is_watching = init->down != NULL;
    type->module = type->name + size;
    strcpy(type->name, name);
    strcpy(type->module, module);
    types.first = type; /* its share is the list's */
    return type;
}

static void remove_from_list(struct resource_type *type)
{
    struct resource_type **at = &types.first;

    while (*at != type)
        at = &(*at)->next;
    *at = type->next;
}

struct resource_type *resource_type_open(struct library *library, const char *name,
                                         const ErlNifResourceTypeInit *init, int members,
                                         ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit set = {.members = members};
    ErlNifResourceFlags did = flags;
    struct resource_type *type = NULL;

    if (members > 0)
        set.dtor = init->dtor;
    if (members > 1)
        set.stop = init->stop;
    if (members > 2)
        set.down = init->down;
    if (members > 3)
        set.dyncall = init->dyncall;
    pthread_mutex_lock(&types.lock);
    if (library != NULL && library->loading) {
        type = find(library->module, name);
        did = type == NULL ? ERL_NIF_RT_CREATE : ERL_NIF_RT_TAKEOVER;
        if ((flags & did) == 0) {
            type = NULL;
            did = flags;
        } else {
            struct opened *opened = host_malloc(sizeof *opened); /* until commit or roll_back */
            if (did == ERL_NIF_RT_CREATE)
                type = type_new(library, name, &set);
            *opened = (struct opened){types.opened, type, set, did == ERL_NIF_RT_CREATE};
            types.opened = opened;
        }
    }
    pthread_mutex_unlock(&types.lock);
    if (tried != NULL)
        *tried = did;
    return type;
}

/* ---- after load ----------------------------------------------------------------------- */

/* In the order in which they were opened. */
static struct opened *take_opened(void)
{
    struct opened *first = NULL;

    while (types.opened != NULL) {
        struct opened *next = types.opened->next;
        types.opened->next = first;
        first = types.opened;
        types.opened = next;
    }
    return first;
}

static void take_over(struct opened *opened, struct library *library)
{
    struct resource_type *type = opened->type;
    struct library *before = type->keeps_owner ? type->owner : NULL;

    type->init = opened->init;
    type->owner = library;
    type->is_watching |= type->init.down != NULL;
    type->keeps_owner = has_callback(&type->init);
    if (type->keeps_owner)
        shared_keep(&library->shared);
    if (before != NULL)
        shared_drop(&before->shared); /* its unload, if this is the last, comes later */
}

void resource_types_commit(struct library *library)
{
    pthread_mutex_lock(&types.lock);
    for (struct opened *opened = take_opened(), *next; opened != NULL; opened = next) {
        next = opened->next;
        take_over(opened, library);
        free(opened);
    }
    pthread_mutex_unlock(&types.lock);
}

void resource_types_roll_back(void)
{
    pthread_mutex_lock(&types.lock);
    for (struct opened *opened = take_opened(), *next; opened != NULL; opened = next) {
        next = opened->next;
        if (opened->is_new) {
            remove_from_list(opened->type);
            /* An object that load has made would have callbacks of a library that is closed. */
            opened->type->init = (ErlNifResourceTypeInit){0};
            opened->type->owner = NULL;
            shared_drop(&opened->type->shared);
        }
        free(opened);
    }
    pthread_mutex_unlock(&types.lock);
}

void resource_types_disown(struct library *library)
{
    struct resource_type **at = &types.first;

    pthread_mutex_lock(&types.lock);
    while (*at != NULL) {
        struct resource_type *type = *at;
        if (type->owner != library) {
            at = &type->next;
            continue;
        }
        *at = type->next;
        type->next = library->disowned;
        library->disowned = type;
    }
    pthread_mutex_unlock(&types.lock);
}

void resource_types_leave(struct library *library)
{
    pthread_mutex_lock(&types.lock);
    for (struct resource_type *type = library->disowned, *next; type != NULL; type = next) {
        next = type->next;
        if (!type->keeps_owner)
            type->owner = NULL;
        shared_drop(&type->shared);
    }
    library->disowned = NULL;
    pthread_mutex_unlock(&types.lock);
}

/* ---- looking -------------------------------------------------------------------------- */

struct resource_callbacks resource_callbacks(struct resource_type *type)
{
    struct resource_callbacks callbacks = {0};

    pthread_mutex_lock(&types.lock);
    callbacks.init = type->init;
    callbacks.is_watching = type->is_watching;
    if (has_callback(&type->init)) {
        callbacks.owner = type->owner;
        shared_keep(&type->owner->shared);
    }
    pthread_mutex_unlock(&types.lock);
    return callbacks;
}

void resource_callbacks_done(const struct resource_callbacks *callbacks)
{
    if (callbacks->owner != NULL)
        shared_drop(&callbacks->owner->shared);
}

const struct resource_type *resource_types_first(void)
{
    return types.first;
}

int resource_types_has(const struct library *library)
{
    int has = 0;

    pthread_mutex_lock(&types.lock);
    for (struct resource_type *type = types.first; type != NULL; type = type->next)
        has |= type->owner == library;
    pthread_mutex_unlock(&types.lock);
    return has;
}
