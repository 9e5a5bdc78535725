/* tame/fd_line.h - what there is of a descriptor, and who waits for a direction of it.
 *
 * Part of tame/fd.h, which has the manual. With the descriptor's lock held, all of it. */
#ifndef TAME_FD_LINE_H
#define TAME_FD_LINE_H

#include <erl_nif.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "fd_queue.h"
#include "watch.h"

enum tame_fd_direction { TAME_FD_READ, TAME_FD_WRITE };

enum tame_fd_answer {
    TAME_FD_GO,        /* it is this call's turn; end it by tame_fd_done or tame_fd_wait */
    TAME_FD_WAIT,      /* a message comes */
    TAME_FD_BUSY,      /* others are first, and no reference was given to wait with */
    TAME_FD_DONE,      /* done; no message comes */
    TAME_FD_SENT,      /* the message is there, or on its way */
    TAME_FD_CLOSED,    /* the descriptor is closed or closing */
    TAME_FD_FAILED,    /* the VM refuses to wait for it here; nobody waits */
    TAME_FD_NOT_OWNER, /* only the owner gives it away */
    TAME_FD_NO_PROCESS /* the new owner is dead */
};

/* A direction. */
struct tame_impl_fd_line {
    struct tame_impl_fd_queue queue;
    struct tame_impl_fd_waiter *spare; /* the last that was done; it stays watched */
    int held;                          /* by a call between begin and done */
    int armed;                         /* the first, by enif_select */
    int told;                          /* the first, by a message of ours */
};

enum tame_impl_fd_state { TAME_IMPL_FD_OPEN, TAME_IMPL_FD_CLOSING, TAME_IMPL_FD_CLOSED };

/* The first member of the author's struct. */
struct tame_fd {
    const struct tame_fd_type *impl_type; /* atomic: of the library that ran last */
    ErlNifMutex *impl_lock;               /* guards all below */
    int impl_number;                      /* atomic; -1 when it is closed */
    int impl_state;                       /* atomic; enum tame_impl_fd_state */
    int impl_users;                       /* calls that hold a direction or use the number */
    int impl_selected;                    /* the VM knows the number: STOP is due */
    int impl_owned;
    ErlNifPid impl_owner;
    struct tame_impl_watched impl_watched; /* of the owner's end */
    struct tame_impl_leash *impl_leash;
    struct tame_impl_fd_line impl_lines[2];
    struct tame_impl_fd_waiter *impl_closer; /* atomic; who is told that it is closed */
};

/* What a type of descriptor does besides. Each may be NULL. */
struct tame_fd_hooks {
    void (*close)(struct tame_fd *fd, int number);   /* in the place of close(2) */
    void (*destroy)(struct tame_fd *fd);             /* frees what hangs on the author's struct */
    void (*lost)(ErlNifEnv *env, struct tame_fd *fd, /* who waited has died, and is no owner */
                 enum tame_fd_direction direction);
};

struct tame_fd_type {
    const char *impl_name;
    size_t impl_size;
    const struct tame_fd_hooks *impl_hooks;
    ErlNifResourceTypeInit impl_callbacks, impl_watch_callbacks;
    ErlNifResourceType *impl_opened, *impl_watch_opened;
    struct tame_impl_watches *impl_watches; /* the library's, as long as there is an OS process */
    /* Of tame_fd_load: the VM hashes a name and takes a lock to find its atom. */
    ERL_NIF_TERM impl_tag, impl_ready, impl_closed;
};

/* Changes with struct tame_fd: a library that was built with another does not take descriptors over. */
#define TAME_IMPL_FD_LAYOUT 3

static inline int tame_impl_fd_is_open(const struct tame_fd *fd)
{
    return __atomic_load_n(&fd->impl_state, __ATOMIC_ACQUIRE) == TAME_IMPL_FD_OPEN;
}

static inline const struct tame_fd_type *tame_impl_fd_type(const struct tame_fd *fd)
{
    return __atomic_load_n(&fd->impl_type, __ATOMIC_RELAXED);
}

static inline ERL_NIF_TERM tame_impl_fd_message(ErlNifEnv *env, struct tame_fd *fd,
                                                ERL_NIF_TERM ref, ERL_NIF_TERM what)
{
    return enif_make_tuple3(env, tame_impl_fd_type(fd)->impl_tag,
                            ref == 0 ? enif_make_resource(env, fd) : ref, what);
}

/* On any thread. A waiter that is dead hears nothing. */
static inline void tame_impl_fd_tell(ErlNifEnv *env, struct tame_fd *fd,
                                     struct tame_impl_fd_waiter *waiter, ERL_NIF_TERM what)
{
    ErlNifEnv *caller = enif_thread_type() == ERL_NIF_THR_UNDEFINED ? NULL : env;
    ErlNifEnv *of_message = waiter->ref == 0 ? enif_alloc_env() : waiter->env;

    (void)enif_send(caller, &waiter->pid, of_message,
                    tame_impl_fd_message(of_message, fd, waiter->ref, what));
    if (waiter->ref == 0)
        enif_free_env(of_message);
}

static inline void tame_impl_fd_waiter_free(struct tame_impl_fd_waiter *waiter)
{
    if (waiter == NULL)
        return;
    tame_impl_leash_unwatch(&waiter->watched);
    if (waiter->env != NULL)
        enif_free_env(waiter->env);
    enif_free(waiter);
}

/* Owned by a line or as the closer, until tame_impl_fd_waiter_free; NULL without memory. */
static inline struct tame_impl_fd_waiter *tame_impl_fd_waiter_new(void)
{
    struct tame_impl_fd_waiter *waiter =
        (struct tame_impl_fd_waiter *)enif_alloc(sizeof(struct tame_impl_fd_waiter));

    if (waiter != NULL)
        memset(waiter, 0, sizeof *waiter);
    return waiter;
}

/* Keeps the reference for the message. Whether there was memory. */
static inline int tame_impl_fd_waiter_set(struct tame_impl_fd_waiter *waiter, const ErlNifPid *pid,
                                          ERL_NIF_TERM ref)
{
    waiter->pid = *pid;
    waiter->ref = 0;
    if (waiter->env != NULL)
        enif_clear_env(waiter->env);
    if (ref == 0)
        return 1;
    if (waiter->env == NULL)
        waiter->env = enif_alloc_env();
    if (waiter->env == NULL)
        return 0;
    waiter->ref = enif_make_copy(waiter->env, ref);
    return 1;
}

static inline int tame_impl_fd_is_owner(const struct tame_fd *fd, const ErlNifPid *pid)
{
    return fd->impl_owned && enif_compare_pids(&fd->impl_owner, pid) == 0;
}

/* Whether the descriptor will be told of the process's end. */
static inline int tame_impl_fd_watch(ErlNifEnv *env, struct tame_fd *fd, const ErlNifPid *pid,
                                     struct tame_impl_watched *watched)
{
    const struct tame_fd_type *type = tame_impl_fd_type(fd);

    return tame_impl_leash_watch(env, type->impl_watches, type->impl_watch_opened, pid, watched,
                                 fd->impl_leash);
}

/* The same of a waiter, where it is not the owner's. */
static inline int tame_impl_fd_watch_waiter(ErlNifEnv *env, struct tame_fd *fd,
                                            struct tame_impl_fd_waiter *waiter)
{
    return waiter->watched.part != NULL || tame_impl_fd_is_owner(fd, &waiter->pid) ||
           tame_impl_fd_watch(env, fd, &waiter->pid, &waiter->watched);
}

/* The line's spare waiter, or a new one, with this pid and reference; NULL without memory, or when the
 * process is dead. */
static inline struct tame_impl_fd_waiter *
tame_impl_fd_waiter_take(ErlNifEnv *env, struct tame_fd *fd, struct tame_impl_fd_line *line,
                         const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    struct tame_impl_fd_waiter *waiter = line->spare;

    line->spare = NULL;
    if (waiter == NULL)
        waiter = tame_impl_fd_waiter_new();
    if (waiter == NULL)
        return NULL;
    if (waiter->watched.part != NULL && enif_compare_pids(&waiter->pid, pid) != 0)
        tame_impl_leash_unwatch(&waiter->watched);
    if (!tame_impl_fd_waiter_set(waiter, pid, ref) || !tame_impl_fd_watch_waiter(env, fd, waiter)) {
        line->spare = waiter;
        return NULL;
    }
    return waiter;
}

static inline void tame_impl_fd_spare(struct tame_impl_fd_line *line,
                                      struct tame_impl_fd_waiter *waiter)
{
    if (line->spare == NULL)
        line->spare = waiter;
    else
        tame_impl_fd_waiter_free(waiter);
}

/* Out of the line. The first takes with it how it was to hear of its turn. */
static inline void tame_impl_fd_unlink(struct tame_impl_fd_line *line,
                                       struct tame_impl_fd_waiter *waiter)
{
    if (waiter == line->queue.first)
        line->armed = line->told = 0;
    tame_impl_fd_remove(&line->queue, waiter);
}

/* The process waits for its turn. One that does already keeps its place, with the new reference: nobody
 * has told it yet, or it would have the direction. 0: no memory, or it is dead, and does not wait. */
static inline int tame_impl_fd_stand(ErlNifEnv *env, struct tame_fd *fd,
                                     struct tame_impl_fd_line *line, const ErlNifPid *pid,
                                     ERL_NIF_TERM ref)
{
    struct tame_impl_fd_waiter *waiter = tame_impl_fd_find(&line->queue, pid);

    if (waiter == NULL) {
        waiter = tame_impl_fd_waiter_take(env, fd, line, pid, ref);
        if (waiter != NULL)
            tame_impl_fd_append(&line->queue, waiter);
        return waiter != NULL;
    }
    if (tame_impl_fd_waiter_set(waiter, pid, ref))
        return 1;
    tame_impl_fd_unlink(line, waiter);
    tame_impl_fd_waiter_free(waiter);
    return 0;
}

/* The direction is free: whose turn is next tries. */
static inline void tame_impl_fd_next(ErlNifEnv *env, struct tame_fd *fd,
                                     struct tame_impl_fd_line *line)
{
    if (line->held || line->queue.first == NULL || line->armed || line->told)
        return;
    line->told = 1;
    tame_impl_fd_tell(env, fd, line->queue.first, tame_impl_fd_type(fd)->impl_ready);
}

static inline int tame_impl_fd_select(int direction)
{
    return direction == TAME_FD_READ ? ERL_NIF_SELECT_READ : ERL_NIF_SELECT_WRITE;
}

/* Whether the VM will tell the waiter. Newer VMs arm on schedulers only. */
static inline int tame_impl_fd_arm(ErlNifEnv *env, struct tame_fd *fd, int direction,
                                   const struct tame_impl_fd_waiter *waiter, ERL_NIF_TERM ref)
{
    if (enif_thread_type() == ERL_NIF_THR_UNDEFINED ||
        enif_select_x(
            env, (ErlNifEvent)fd->impl_number,
            (enum ErlNifSelectFlags)(tame_impl_fd_select(direction) | ERL_NIF_SELECT_CUSTOM_MSG),
            fd, &waiter->pid, tame_impl_fd_message(env, fd, ref, tame_impl_fd_type(fd)->impl_ready),
            NULL) < 0)
        return 0;
    fd->impl_selected = 1;
    return 1;
}

/* CANCEL or STOP, which tell nobody. They name nobody too: OTP 29.1 reads the caller from env where no
 * process is named, and a library's own thread has no env. */
static inline int tame_impl_fd_deselect(ErlNifEnv *env, struct tame_fd *fd, int flags)
{
    ErlNifPid nobody;

    enif_set_pid_undefined(&nobody);
    return enif_select(env, (ErlNifEvent)fd->impl_number, (enum ErlNifSelectFlags)flags, fd,
                       &nobody, (ERL_NIF_TERM)0);
}

/* Whether the VM had not told the first yet, and will not. */
static inline int tame_impl_fd_disarm(ErlNifEnv *env, struct tame_fd *fd, int direction)
{
    const int cancelled =
        direction == TAME_FD_READ ? ERL_NIF_SELECT_READ_CANCELLED : ERL_NIF_SELECT_WRITE_CANCELLED;
    const int done =
        tame_impl_fd_deselect(env, fd, tame_impl_fd_select(direction) | ERL_NIF_SELECT_CANCEL);

    return done >= 0 && (done & cancelled) != 0;
}

#endif
