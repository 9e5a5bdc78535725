/* The functions of the API on resources. */
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "binary.h"
#include "call.h"
#include "env.h"
#include "host.h"
#include "monitor.h"
#include "resource.h"
#include "worker.h"

/* ---- terms ---------------------------------------------------------------------------- */

term resource_term(ErlNifEnv *env, struct resource *resource)
{
    struct box_resource *box = env_alloc(env, sizeof *box);

    *box = (struct box_resource){box_header(BOX_RESOURCE, 0), resource};
    env_keep(env, &resource->shared);
    return make_boxed(box);
}

term resource_or_ref(ErlNifEnv *env, const uint32_t *words, size_t len)
{
    struct resource *resource = lease_find(words, len);

    if (resource == NULL)
        return term_ref(env, words, len);
    term made = resource_term(env, resource);
    shared_drop(&resource->shared);
    if (env->call != NULL)
        resource->seen_in = env->call->number;
    return made;
}

void resource_ref_words(term t, struct box_ref *ref)
{
    if (is_kind(t, BOX_REF)) {
        *ref = *(struct box_ref *)box_of(t);
    } else {
        struct lease_use use = lease_use(((struct box_resource *)box_of(t))->resource, 0);
        ref->len = use.words_len;
        memcpy(ref->words, use.words, sizeof ref->words);
    }
}

/* ---- types ---------------------------------------------------------------------------- */

static struct resource_type *find_type(const char *name)
{
    struct resource_type *type = host.library.types;

    while (type != NULL && strcmp(type->name, name) != 0)
        type = type->next;
    return type;
}

/* members: how many callbacks of init are set, in their order in the struct; the rest is NULL. */
static ErlNifResourceType *open_type(const char *name, const ErlNifResourceTypeInit *init,
                                     int members, ErlNifResourceFlags flags,
                                     ErlNifResourceFlags *tried)
{
    struct resource_type *type = find_type(name);
    ErlNifResourceFlags did = type == NULL ? ERL_NIF_RT_CREATE : ERL_NIF_RT_TAKEOVER;

    if (!host.library.loading || (flags & did) == 0) {
        if (tried != NULL)
            *tried = flags;
        return NULL;
    }
    if (type == NULL) {
        type = host_calloc(sizeof *type + strlen(name) + 1);
        strcpy(type->name, name);
        type->next = host.library.types;
        host.library.types = type;
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
    return (ErlNifResourceType *)type;
}

ErlNifResourceType *enif_open_resource_type(ErlNifEnv *env, const char *module, const char *name,
                                            void (*dtor)(ErlNifEnv *, void *),
                                            ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit init = {.dtor = dtor};

    (void)env;
    (void)module; /* must be NULL, says the manual; the VM asserts it in debug builds only */
    return open_type(name, &init, 1, flags, tried);
}

ErlNifResourceType *enif_open_resource_type_x(ErlNifEnv *env, const char *name,
                                              const ErlNifResourceTypeInit *init,
                                              ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    (void)env;
    return open_type(name, init, 3, flags, tried);
}

ErlNifResourceType *enif_init_resource_type(ErlNifEnv *env, const char *name,
                                            const ErlNifResourceTypeInit *init,
                                            ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    (void)env;
    return open_type(name, init, init->members, flags, tried);
}

/* ---- objects -------------------------------------------------------------------------- */

struct release_job {
    struct job job;
    struct resource *resource;
};

static void run_release(struct job *job)
{
    struct resource *resource = ((struct release_job *)job)->resource;
    ErlNifEnv env;

    monitor_forget(resource);
    if (resource->type->init.dtor == NULL) {
        free(resource);
        free(job);
        return;
    }
    env_init(&env, ENV_CALLBACK);
    resource->type->init.dtor(&env, resource->data);
    env_destroy(&env);
    free(resource);
    free(job);
}

/* A destructor never runs inside of the call that let go of its object, in the VM neither; and
 * not in the thread that reads the control port, which must not block. */
static void release(struct shared *shared)
{
    struct resource *resource = (struct resource *)shared;

    if (resource->type->init.dtor == NULL && resource->type->init.down == NULL) {
        free(resource);
        return;
    }
    struct release_job *release_job = host_malloc(sizeof *release_job);
    release_job->job.run = run_release;
    release_job->resource = resource;
    worker_do_after_call(&release_job->job);
}

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    struct resource *resource = size > PTRDIFF_MAX / 2 ? NULL : malloc(sizeof *resource + size);

    if (resource == NULL)
        return NULL;
    *resource = (struct resource){
        .shared = {1, release}, .type = (struct resource_type *)type, .size = size};
    return resource->data;
}

void enif_release_resource(void *object)
{
    shared_drop(&resource_of(object)->shared);
}

void enif_keep_resource(void *object)
{
    shared_keep(&resource_of(object)->shared);
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

/* The resource that a term names. NULL: none. A binary of enif_make_resource_binary does too, and
 * so do its copies; a part of it does from OTP 27 on, when it is too large to be a copy. */
static struct resource *named_by(term t)
{
    if (is_kind(t, BOX_RESOURCE))
        return ((struct box_resource *)box_of(t))->resource;
    if (!is_kind(t, BOX_BINARY))
        return NULL;
    struct box_binary *binary = box_of(t);
    if (binary->owner == NULL || binary->owner->release != release ||
        (box_size(t) == BINARY_PART &&
         (host.otp_release < 27 || binary->size <= BINARY_SHARE_BYTES)))
        return NULL;
    return (struct resource *)binary->owner;
}

int enif_get_resource(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifResourceType *type, void **object)
{
    struct resource *resource = named_by(t);

    (void)env;
    if (resource == NULL || resource->type != (struct resource_type *)type)
        return 0;
    *object = resource->data;
    return 1;
}

/* Only types of this very library can be found: the others live in other processes. */
int enif_dynamic_resource_call(ErlNifEnv *env, ERL_NIF_TERM module, ERL_NIF_TERM name,
                               ERL_NIF_TERM t, void *call_data)
{
    struct resource *resource = named_by(t);

    if (!is_atom(module) || !is_atom(name) || resource == NULL || host.library.entry == NULL ||
        strcmp((char *)atom_of(module)->name, host.library.entry->name) != 0)
        return 1;
    if (resource->type != find_type((char *)atom_of(name)->name) ||
        resource->type->init.dyncall == NULL)
        return 1;
    resource->type->init.dyncall(env, resource->data, call_data);
    return 0;
}
