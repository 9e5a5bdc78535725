/* The functions of the API on resources. */
#include <string.h>

#include "life/object.h"
#include "memory/die.h"
#include "memory/env.h"
#include "term/atom.h"

/* ---- types ---------------------------------------------------------------------------- */

ErlNifResourceType *enif_open_resource_type(ErlNifEnv *env, const char *module, const char *name,
                                            void (*dtor)(ErlNifEnv *, void *),
                                            ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit init = {.dtor = dtor};

    (void)module; /* must be NULL, says the manual; the VM asserts it in debug builds only */
    return (ErlNifResourceType *)resource_type_open(env->library, name, &init, 1, flags, tried);
}

ErlNifResourceType *enif_open_resource_type_x(ErlNifEnv *env, const char *name,
                                              const ErlNifResourceTypeInit *init,
                                              ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    return (ErlNifResourceType *)resource_type_open(env->library, name, init, 3, flags, tried);
}

ErlNifResourceType *enif_init_resource_type(ErlNifEnv *env, const char *name,
                                            const ErlNifResourceTypeInit *init,
                                            ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    return (ErlNifResourceType *)resource_type_open(env->library, name, init, init->members, flags,
                                                    tried);
}

/* ---- objects -------------------------------------------------------------------------- */

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    struct resource *resource = object_new((struct resource_type *)type, size);

    return resource == NULL ? NULL : resource->data;
}

/* What others keep is not the library's to release: its destructor would run while Erlang has it. */
void enif_release_resource(void *object)
{
    struct resource *resource = resource_of(object);

    if (resource->kept-- <= 0)
        host_die("the library released a resource of type %s once more than it had kept it",
                 resource->type->name);
    shared_drop(&resource->shared);
}

void enif_keep_resource(void *object)
{
    struct resource *resource = resource_of(object);

    resource->kept++;
    shared_keep(&resource->shared);
}

size_t enif_sizeof_resource(void *object)
{
    return resource_of(object)->size;
}

ERL_NIF_TERM enif_make_resource(ErlNifEnv *env, void *object)
{
    return resource_term(env, resource_of(object));
}

ERL_NIF_TERM enif_make_resource_binary(ErlNifEnv *env, void *object, const void *data, size_t size)
{
    return term_binary(env, data, size, 0, &resource_of(object)->shared);
}

int enif_get_resource(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifResourceType *type, void **object)
{
    struct resource *resource = object_named_by(t);

    (void)env;
    if (resource == NULL || resource->type != (struct resource_type *)type)
        return 0;
    *object = resource->data;
    return 1;
}

/* Of any library of this host: the others live in other processes. */
int enif_dynamic_resource_call(ErlNifEnv *env, ERL_NIF_TERM module, ERL_NIF_TERM name,
                               ERL_NIF_TERM t, void *call_data)
{
    struct resource *resource = object_named_by(t);
    struct resource_callbacks callbacks;

    if (!is_atom(module) || !is_atom(name) || resource == NULL ||
        strcmp((char *)atom_of(module)->name, resource->type->module) != 0 ||
        strcmp((char *)atom_of(name)->name, resource->type->name) != 0)
        return 1;
    callbacks = resource_callbacks(resource->type);
    if (callbacks.init.dyncall != NULL)
        callbacks.init.dyncall(env, resource->data, call_data);
    resource_callbacks_done(&callbacks);
    return callbacks.init.dyncall == NULL;
}
