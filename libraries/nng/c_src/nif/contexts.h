/* nif/contexts.h - contexts as resources. */
#ifndef TAME_NNG_NIF_CONTEXTS_H
#define TAME_NNG_NIF_CONTEXTS_H

#include "message.h"

struct tn_nif_context {
    struct tn_context context; /* first */
    void *resource;            /* an operation on its way keeps it */
    int traits;
    /* Of an operation: who is told. */
    ErlNifPid pid;
    ErlNifEnv *env;
    ERL_NIF_TERM ref;
};

/* The resource; its memory may go before the context's. */
struct tn_nif_context_hold {
    struct tn_nif_context *context;
    void *kept; /* a resource that keeps the type of messages (message.h) */
    struct tame_impl_leash *leash;
    struct tame_impl_watched watched; /* of the owner's end */
};

static ErlNifResourceType *tn_nif_contexts, *tn_nif_context_watch;
static struct tame_impl_watches *tn_nif_context_watches; /* as long as there is an OS process */

static void tn_nif_context_told(struct tn_context *base, int error, nng_msg *message)
{
    struct tn_nif_context *context = (struct tn_nif_context *)base;
    ErlNifEnv *env = context->env;
    const ErlNifPid pid = context->pid;
    const ERL_NIF_TERM ref = context->ref;
    void *resource = context->resource;
    ERL_NIF_TERM result = tn_atom(env, "ok");

    if (error != 0)
        result = tn_failed(env, error);
    else if (message != NULL)
        result = tn_ok(env, tn_message_bytes(env, message));
    tn_context_let_go(base);
    (void)enif_send(NULL, &pid, env, enif_make_tuple3(env, tn_atom(env, "tame_nng"), ref, result));
    enif_free_env(env);
    enif_release_resource(resource);
}

static void tn_nif_context_freed(struct tn_context *base)
{
    enif_free(base);
}

static void tn_nif_context_destroy(ErlNifEnv *env, void *object)
{
    struct tn_nif_context_hold *hold = (struct tn_nif_context_hold *)object;

    (void)env;
    if (hold->leash != NULL)
        tame_impl_leash_off(hold->leash);
    tame_impl_leash_unwatch(&hold->watched);
    if (hold->context != NULL)
        tn_context_close_last(&hold->context->context);
    if (hold->kept != NULL)
        enif_release_resource(hold->kept);
}

/* Its owner has ended. */
static void tn_nif_context_lost(ErlNifEnv *env, void *object, const ErlNifPid *pid)
{
    (void)env;
    (void)pid;
    tn_context_close(&((struct tn_nif_context_hold *)object)->context->context);
}

static void tn_nif_context_leash_told(ErlNifEnv *env, void *leash, const ErlNifPid *pid)
{
    tame_impl_leash_told(env, (struct tame_impl_leash *)leash, pid, tn_nif_context_lost);
}

static void tn_nif_context_down(ErlNifEnv *env, void *watch, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid;
    (void)monitor;
    tame_impl_watch_down(env, (struct tame_impl_watch *)watch, tn_nif_context_leash_told);
}

static inline int tn_nif_contexts_load(ErlNifEnv *env)
{
    const ErlNifResourceFlags flags =
        (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER);
    ErlNifResourceTypeInit callbacks;

    /* The number is that of the struct's layout. */
    memset(&callbacks, 0, sizeof callbacks);
    callbacks.dtor = tn_nif_context_destroy;
    tn_nif_contexts = enif_open_resource_type_x(env, "tame_nng_context_2", &callbacks, flags, NULL);
    callbacks.dtor = tame_impl_watch_destroy;
    callbacks.down = tn_nif_context_down;
    tn_nif_context_watch =
        enif_open_resource_type_x(env, "tame_nng_context_watch_2", &callbacks, flags, NULL);
    if (tn_nif_context_watches == NULL) /* it may be loaded anew in the same mapping */
        tn_nif_context_watches = tame_impl_watches_new();
    return tn_nif_contexts == NULL || tn_nif_context_watch == NULL ||
           tn_nif_context_watches == NULL;
}

/* While the number is in use the socket does not end. Returns nng's error. */
static inline int tn_nif_context_new(ErlNifEnv *env, struct tn_context *context,
                                     struct tn_nif *handle)
{
    int error;

    if (tame_fd_use(&handle->fd) < 0)
        return NNG_ECLOSED;
    error = tn_context_open(context, &handle->end->end, &handle->socket);
    tame_fd_unuse(env, &handle->fd);
    return error;
}

/* (Handle) -> {ok, Context} | {error, Reason} */
static ERL_NIF_TERM tn_nif_context_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif *handle = tn_get(env, argv[0]);
    struct tn_nif_context_hold *hold;
    struct tn_nif_context *context;
    ErlNifPid self;
    ERL_NIF_TERM term;
    int error;

    (void)argc;
    if (handle == NULL)
        return enif_make_badarg(env);
    /* The resource's; the reaper frees it. */
    context = (struct tn_nif_context *)enif_alloc(sizeof *context);
    hold = (struct tn_nif_context_hold *)enif_alloc_resource(tn_nif_contexts, sizeof *hold);
    if (hold != NULL) {
        memset(hold, 0, sizeof *hold);
        hold->kept = tn_message_hold(NULL);
        hold->leash = tame_impl_leash_new(hold);
    }
    error = context == NULL || hold == NULL || hold->kept == NULL || hold->leash == NULL
                ? NNG_ENOMEM
                : 0;
    if (error == 0) {
        memset(context, 0, sizeof *context);
        context->context.told = tn_nif_context_told;
        context->context.freed = tn_nif_context_freed;
        context->resource = hold;
        context->traits = handle->socket.protocol->traits;
        error = tn_nif_context_new(env, &context->context, handle);
    }
    if (error != 0) {
        if (context != NULL)
            enif_free(context);
        if (hold != NULL)
            enif_release_resource(hold);
        return tn_failed(env, error);
    }
    hold->context = context;
    term = enif_make_resource(env, hold);
    (void)tame_impl_leash_watch(env, tn_nif_context_watches, tn_nif_context_watch,
                                enif_self(env, &self), &hold->watched, hold->leash);
    enif_release_resource(hold);
    return tn_ok(env, term);
}

static inline struct tn_nif_context *tn_nif_context_get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *object;

    return enif_get_resource(env, term, tn_nif_contexts, &object)
               ? ((struct tn_nif_context_hold *)object)->context
               : NULL;
}

/* wait: {tame_nng, Ref, Result} comes, whatever happens. The message is taken. */
static inline ERL_NIF_TERM tn_nif_context_start(ErlNifEnv *env, struct tn_nif_context *context,
                                                nng_msg *message, int64_t deadline,
                                                ERL_NIF_TERM ref)
{
    int error = tn_context_take(&context->context);

    if (error == 0) {
        context->env = enif_alloc_env(); /* the callback frees it */
        if (context->env == NULL) {
            tn_context_let_go(&context->context);
            tn_context_leave(&context->context);
            error = NNG_ENOMEM;
        }
    }
    if (error != 0) {
        if (message != NULL)
            nng_msg_free(message);
        return tn_failed(env, error);
    }
    context->ref = enif_make_copy(context->env, ref);
    (void)enif_self(env, &context->pid);
    enif_keep_resource(context->resource);
    tn_context_start(&context->context, message, deadline,
                     (int64_t)enif_monotonic_time(ERL_NIF_MSEC));
    return tn_atom(env, "wait");
}

/* A time of the VM's monotonic clock, ms; or infinity. Whether it is one. */
static inline int tn_nif_deadline(ErlNifEnv *env, ERL_NIF_TERM term, int64_t *deadline)
{
    ErlNifSInt64 ms;

    *deadline = TN_NO_DEADLINE;
    if (enif_is_identical(term, tn_atom(env, "infinity")))
        return 1;
    if (!enif_get_int64(env, term, &ms))
        return 0;
    *deadline = ms;
    return 1;
}

/* (Context, Deadline, Ref) -> wait | {error, Reason} */
static ERL_NIF_TERM tn_nif_context_recv(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif_context *context = tn_nif_context_get(env, argv[0]);
    int64_t deadline;

    (void)argc;
    if (context == NULL || !tn_nif_deadline(env, argv[1], &deadline) || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);
    if (!(context->traits & TN_RECEIVES))
        return tn_error(env, "enotsup");
    return tn_nif_context_start(env, context, NULL, deadline, argv[2]);
}

/* (Context, [Binary], Deadline, Ref) -> wait | {error, Reason} */
static ERL_NIF_TERM tn_nif_context_send(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif_context *context = tn_nif_context_get(env, argv[0]);
    size_t bytes, parts;
    nng_msg *message;
    int64_t deadline;

    if (context == NULL || !tn_nif_deadline(env, argv[2], &deadline) ||
        !enif_is_ref(env, argv[3]) || !tn_parts_measure(env, argv[1], &bytes, &parts))
        return enif_make_badarg(env);
    if (!(context->traits & TN_SENDS))
        return tn_error(env, "enotsup");
    if ((bytes > TN_SLICE_BYTES || parts > TN_SLICE_PARTS) && !tn_is_dirty())
        return enif_schedule_nif(env, "context_send", ERL_NIF_DIRTY_JOB_CPU_BOUND,
                                 tn_nif_context_send, argc, argv);
    message = tn_message_make(env, argv[1], bytes);
    if (message == NULL)
        return tn_error(env, "enomem");
    return tn_nif_context_start(env, context, message, deadline, argv[3]);
}

/* (Context, Bytes) -> Reply, as TN_SET of control.h has them. */
static ERL_NIF_TERM tn_nif_context_set(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif_context *context = tn_nif_context_get(env, argv[0]);
    unsigned char reply[TN_REPLY_MAX];
    ErlNifBinary bytes;
    ERL_NIF_TERM term;
    size_t size;

    (void)argc;
    if (context == NULL || !enif_inspect_binary(env, argv[1], &bytes))
        return enif_make_badarg(env);
    size = tn_reply_done(reply, tn_context_set(&context->context, bytes.data, bytes.size));
    memcpy(enif_make_new_binary(env, size, &term), reply, size);
    return term;
}

/* (Context) -> ok */
static ERL_NIF_TERM tn_nif_context_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tn_nif_context *context = tn_nif_context_get(env, argv[0]);

    (void)argc;
    if (context == NULL)
        return enif_make_badarg(env);
    tn_context_close(&context->context);
    return tn_atom(env, "ok");
}

#endif
