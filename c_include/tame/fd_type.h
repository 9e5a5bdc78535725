/* tame/fd_type.h - a type of descriptors: its callbacks in the VM, a new one, its term.
 *
 * Part of tame/fd.h, which has the manual. */
#ifndef TAME_FD_TYPE_H
#define TAME_FD_TYPE_H

#include <stdio.h>

#include "fd_end.h"
#include "fd_line.h"

/* dtor, stop, down; of newer versions also how many, and what is not used. */
#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION >= 16
#define TAME_IMPL_FD_CALLBACKS(DTOR, STOP, DOWN) \
    {                                            \
        DTOR, STOP, DOWN, 3, NULL                \
    }
#define TAME_IMPL_FD_OPEN_TYPE(env, name, callbacks, flags) \
    enif_init_resource_type(env, name, callbacks, flags, NULL)
#else
#define TAME_IMPL_FD_CALLBACKS(DTOR, STOP, DOWN) \
    {                                            \
        DTOR, STOP, DOWN                         \
    }
#define TAME_IMPL_FD_OPEN_TYPE(env, name, callbacks, flags) \
    enif_open_resource_type_x(env, name, callbacks, flags, NULL)
#endif

/* Defines the type NAME of descriptors, whose STRUCT begins with a struct tame_fd called fd. After
 * STRUCT the members of struct tame_fd_hooks, each by its name. */
#define TAME_FD(NAME, STRUCT, ...)                                                                 \
    static const struct tame_fd_hooks tame_impl_fd_hooks_##NAME = {__VA_ARGS__};                   \
    static void tame_impl_fd_dtor_##NAME(ErlNifEnv *env, void *object);                            \
    static void tame_impl_fd_stop_##NAME(ErlNifEnv *env, void *object, ErlNifEvent number,         \
                                         int direct);                                              \
    static void tame_impl_fd_down_##NAME(ErlNifEnv *env, void *object, ErlNifPid *pid,             \
                                         ErlNifMonitor *monitor);                                  \
    static struct tame_fd_type NAME = {                                                            \
        #NAME,                                                                                     \
        sizeof(STRUCT) + 0 * sizeof(char[offsetof(STRUCT, fd) == 0 ? 1 : -1]),                     \
        &tame_impl_fd_hooks_##NAME,                                                                \
        TAME_IMPL_FD_CALLBACKS(tame_impl_fd_dtor_##NAME, tame_impl_fd_stop_##NAME, NULL),          \
        TAME_IMPL_FD_CALLBACKS(tame_impl_watch_destroy, NULL, tame_impl_fd_down_##NAME),           \
        NULL,                                                                                      \
        NULL,                                                                                      \
        NULL,                                                                                      \
        0,                                                                                         \
        0,                                                                                         \
        0};                                                                                        \
    static void tame_impl_fd_dtor_##NAME(ErlNifEnv *env, void *object)                             \
    {                                                                                              \
        tame_impl_fd_destroy(env, tame_impl_fd_enter(object, &NAME));                              \
    }                                                                                              \
    static void tame_impl_fd_stop_##NAME(ErlNifEnv *env, void *object, ErlNifEvent number,         \
                                         int direct)                                               \
    {                                                                                              \
        (void)number;                                                                              \
        tame_impl_fd_stopped(env, tame_impl_fd_enter(object, &NAME), !direct);                     \
    }                                                                                              \
    static void tame_impl_fd_lost_##NAME(ErlNifEnv *env, void *object, const ErlNifPid *pid)       \
    {                                                                                              \
        tame_impl_fd_down(env, tame_impl_fd_enter(object, &NAME), pid);                            \
    }                                                                                              \
    static void tame_impl_fd_told_##NAME(ErlNifEnv *env, void *leash, const ErlNifPid *pid)        \
    {                                                                                              \
        tame_impl_leash_told(env, (struct tame_impl_leash *)leash, pid, tame_impl_fd_lost_##NAME); \
    }                                                                                              \
    static void tame_impl_fd_down_##NAME(ErlNifEnv *env, void *watch, ErlNifPid *pid,              \
                                         ErlNifMonitor *monitor)                                   \
    {                                                                                              \
        (void)pid;                                                                                 \
        (void)monitor;                                                                             \
        tame_impl_watch_down(env, (struct tame_impl_watch *)watch, tame_impl_fd_told_##NAME);      \
    }

/* The name of a type of the VM's, which the next instance finds it by. 0, or it does not fit. */
static inline int tame_impl_fd_name(char *name, size_t max, const struct tame_fd_type *type,
                                    const char *what)
{
    const int size = snprintf(name, max, "%s.%s%d.%zu", type->impl_name, what, TAME_IMPL_FD_LAYOUT,
                              type->impl_size);

    return size < 0 || (size_t)size >= max;
}

/* Opens the type: in the load hook, and in the one for upgrades. Returns 0, or the library must not
 * be loaded. */
static inline int tame_fd_load(ErlNifEnv *env, struct tame_fd_type *type)
{
    char name[128];

    if (tame_impl_fd_name(name, sizeof name, type, "fd") != 0)
        return 1;
    type->impl_tag = enif_make_atom(env, "tame_fd");
    type->impl_ready = enif_make_atom(env, "ready");
    type->impl_closed = enif_make_atom(env, "closed");
    type->impl_opened =
        TAME_IMPL_FD_OPEN_TYPE(env, name, &type->impl_callbacks,
                               (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER));
    if (type->impl_opened == NULL || tame_impl_fd_name(name, sizeof name, type, "watch") != 0)
        return 1;
    type->impl_watch_opened =
        TAME_IMPL_FD_OPEN_TYPE(env, name, &type->impl_watch_callbacks,
                               (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER));
    if (type->impl_watches == NULL) /* it may be loaded anew in the same mapping */
        type->impl_watches = tame_impl_watches_new();
    return type->impl_watch_opened == NULL || type->impl_watches == NULL;
}

/* A resource that owns `number`, and is owned by a process; zeroed behind its struct tame_fd. The
 * caller has a hold on it until tame_fd_term or enif_release_resource. NULL without memory, or when
 * the owner is dead: then the number is the caller's still. */
static inline void *tame_fd_new(ErlNifEnv *env, const struct tame_fd_type *type, int number,
                                const ErlNifPid *owner)
{
    struct tame_fd *fd = (struct tame_fd *)enif_alloc_resource(type->impl_opened, type->impl_size);

    if (fd == NULL)
        return NULL;
    memset(fd, 0, type->impl_size);
    fd->impl_type = type;
    fd->impl_number = -1;
    fd->impl_owner = *owner;
    fd->impl_leash = tame_impl_leash_new(fd);
    fd->impl_lock = enif_mutex_create((char *)"tame_fd");
    if (fd->impl_lock != NULL && fd->impl_leash != NULL) {
        /* With the lock: the owner may die at once. */
        enif_mutex_lock(fd->impl_lock);
        fd->impl_owned = tame_impl_fd_watch(env, fd, owner, &fd->impl_watched);
        if (fd->impl_owned)
            fd->impl_number = number;
        enif_mutex_unlock(fd->impl_lock);
        if (fd->impl_number >= 0)
            return fd;
    }
    enif_release_resource(fd);
    return NULL;
}

/* The term of a new resource, which holds it from then on. */
static inline ERL_NIF_TERM tame_fd_term(ErlNifEnv *env, void *object)
{
    const ERL_NIF_TERM term = enif_make_resource(env, object);

    enif_release_resource(object);
    return term;
}

/* The author's struct; NULL when the term is none of this type. It lives as long as the term. */
static inline void *tame_fd_get(ErlNifEnv *env, ERL_NIF_TERM term, const struct tame_fd_type *type)
{
    void *object;

    return enif_get_resource(env, term, type->impl_opened, &object)
               ? tame_impl_fd_enter(object, type)
               : NULL;
}

#endif
