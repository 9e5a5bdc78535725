/* tame/context.h - resources of the author's: contexts that outlive a call, and may be claimed.
 *
 * Part of tame.h, which has the manual. A job that claims a context holds it alone until its cleanup;
 * others wait in receive, first come first served. */
#ifndef TAME_CONTEXT_H
#define TAME_CONTEXT_H

#include "core.h"

/* A type of resource: TAME_RESOURCE defines it. */
struct tame_resource {
    const char *name;
    size_t size;
    void (*impl_destroy)(ErlNifEnv *env, void *object);
};

/* In front of the author's struct; its distance stands in the word before that. */
struct tame_impl_context {
    struct tame_impl_instance *instance; /* NULL: no context, but what keeps its type (hold.h) */
    struct tame_impl_queue waiting;      /* each entry is a hold on its run */
    int claimed; /* both are guarded by the lock of the instance that made it */
};

static inline void *tame_impl_context_object(struct tame_impl_context *context)
{
    return tame_impl_align((char *)(context + 1) + sizeof(size_t));
}

static inline struct tame_impl_context *tame_impl_context_of(void *object)
{
    size_t distance;

    memcpy(&distance, (char *)object - sizeof distance, sizeof distance);
    return (struct tame_impl_context *)(void *)((char *)object - distance);
}

static inline void tame_impl_context_end(struct tame_impl_context *context)
{
    __atomic_fetch_sub(&context->instance->lineage->contexts, 1, __ATOMIC_RELAXED);
    tame_impl_instance_release(context->instance);
}

/* Defines the resource type NAME, of STRUCT. DESTROY is a function of STRUCT *, which frees what
 * hangs on it, on any thread. */
#define TAME_RESOURCE(NAME, STRUCT, DESTROY)                                    \
    static inline void tame_impl_destroy_##NAME(ErlNifEnv *env, void *object)   \
    {                                                                           \
        struct tame_impl_context *context = (struct tame_impl_context *)object; \
        (void)env;                                                              \
        if (context->instance == NULL)                                          \
            return;                                                             \
        DESTROY((STRUCT *)tame_impl_context_object(context));                   \
        tame_impl_context_end(context);                                         \
    }                                                                           \
    static const struct tame_resource NAME = {#NAME, sizeof(STRUCT), tame_impl_destroy_##NAME}

/* The type as this instance opened it; NULL when the library does not list it. It is known by its
 * name, too: in a header of several files each of them has a type of its own. */
static inline ErlNifResourceType *tame_impl_type(ErlNifEnv *env, const struct tame_resource *type)
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);

    for (int i = 0; i < instance->types_len; i++)
        if (instance->listed[i] == type || strcmp(instance->listed[i]->name, type->name) == 0)
            return instance->types[i];
    return NULL;
}

/* A new resource, zeroed, aligned to 16 bytes, which the caller owns until tame_resource_term or
 * tame_resource_release; NULL without memory, or of a type that is not listed in the library. */
static inline void *tame_resource_new(ErlNifEnv *env, const struct tame_resource *type)
{
    ErlNifResourceType *of = tame_impl_type(env, type);
    const size_t size =
        sizeof(struct tame_impl_context) + sizeof(size_t) + TAME_IMPL_ALIGNMENT + type->size;
    struct tame_impl_context *context =
        of == NULL ? NULL : (struct tame_impl_context *)enif_alloc_resource(of, size);
    size_t distance;
    char *object;

    if (context == NULL)
        return NULL;
    memset(context, 0, size);
    context->instance = tame_impl_instance_keep((struct tame_impl_instance *)enif_priv_data(env));
    __atomic_fetch_add(&context->instance->lineage->contexts, 1, __ATOMIC_RELAXED);
    object = (char *)tame_impl_context_object(context);
    distance = (size_t)(object - (char *)context);
    memcpy(object - sizeof distance, &distance, sizeof distance);
    return object;
}

/* The term of a new resource, which owns it from then on. */
static inline ERL_NIF_TERM tame_resource_term(ErlNifEnv *env, void *object)
{
    struct tame_impl_context *context = tame_impl_context_of(object);
    const ERL_NIF_TERM term = enif_make_resource(env, context);

    enif_release_resource(context);
    return term;
}

/* Holds the resource as its terms do, until tame_resource_release. A context that uses another
 * resource keeps it. On any thread. */
static inline void tame_resource_keep(void *object)
{
    enif_keep_resource(tame_impl_context_of(object));
}

/* The end of one hold: that of tame_resource_keep, or the maker's when it makes no term. On any
 * thread. */
static inline void tame_resource_release(void *object)
{
    enif_release_resource(tame_impl_context_of(object));
}

static inline struct tame_impl_context *tame_impl_context_get(ErlNifEnv *env, ERL_NIF_TERM term,
                                                              const struct tame_resource *type)
{
    ErlNifResourceType *of = tame_impl_type(env, type);
    void *object;

    if (of == NULL || !enif_get_resource(env, term, of, &object))
        return NULL;
    return (struct tame_impl_context *)object;
}

/* The struct of a resource; NULL when the term is none of this type. It lives as long as the term. A
 * job may hold the resource at the same time: what its steps write needs a claim to be read. */
static inline void *tame_resource_get(ErlNifEnv *env, ERL_NIF_TERM term,
                                      const struct tame_resource *type)
{
    struct tame_impl_context *context = tame_impl_context_get(env, term, type);

    return context == NULL ? NULL : tame_impl_context_object(context);
}

/* Claims argument `arg` (counted from 0), a resource of this type, for this call alone, until its
 * cleanup. Returns its struct, which stays where it is. NULL: return TAME_FAILED from init. The
 * argument is none, which raises badarg; or another call has it, and then init is called again when
 * it is this call's turn. One claim for each call, before anything else in init. */
static inline void *tame_claim(struct tame_call *call, int arg, const struct tame_resource *type)
{
    struct tame_impl_context *context;

    if (!tame_impl_is_argument(call, arg))
        return NULL;
    context = tame_impl_context_get(call->env, call->argv[arg], type);
    if (context == NULL) {
        (void)tame_badarg(call, arg + 1,
                          "must be a resource of this function's type, made in this VM");
        return NULL;
    }
    if (call->impl_context != NULL && call->impl_context != context) {
        (void)tame_impl_fault(call, "second_claim");
        return NULL;
    }
    if (!call->impl_holds) {
        enif_mutex_lock(context->instance->lock);
        call->impl_holds = !context->claimed;
        context->claimed = 1;
        enif_mutex_unlock(context->instance->lock);
    }
    if (call->impl_context == NULL)
        enif_keep_resource(context); /* the run's, until it leaves the context */
    call->impl_context = context;
    if (!call->impl_holds) {
        (void)tame_impl_fail(call, TAME_IMPL_CLAIM, 0, NULL, 0);
        return NULL;
    }
    return tame_impl_context_object(context);
}

#endif
