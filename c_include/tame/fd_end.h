/* tame/fd_end.h - the end of a descriptor: closed by somebody, by its owner's death, or by its last
 * term's.
 *
 * Part of tame/fd.h, which has the manual and the drawing. */
#ifndef TAME_FD_END_H
#define TAME_FD_END_H

#include <unistd.h>

#include "fd_line.h"

static inline struct tame_fd *tame_impl_fd_enter(void *object, const struct tame_fd_type *type)
{
    struct tame_fd *fd = (struct tame_fd *)object;

    __atomic_store_n(&fd->impl_type, type, __ATOMIC_RELAXED);
    return fd;
}

/* The number is closed here alone, by the thread that takes it out of the struct. */
static inline void tame_impl_fd_shut(struct tame_fd *fd)
{
    const struct tame_fd_type *type = tame_impl_fd_type(fd);
    const int number = __atomic_exchange_n(&fd->impl_number, -1, __ATOMIC_ACQ_REL);

    __atomic_store_n(&fd->impl_state, TAME_IMPL_FD_CLOSED, __ATOMIC_RELEASE);
    if (number < 0)
        return;
    if (type->impl_hooks->close != NULL)
        type->impl_hooks->close(fd, number);
    else
        (void)close(number);
}

static inline void tame_impl_fd_tell_closer(ErlNifEnv *env, struct tame_fd *fd)
{
    struct tame_impl_fd_waiter *closer =
        __atomic_exchange_n(&fd->impl_closer, NULL, __ATOMIC_ACQ_REL);

    if (closer == NULL)
        return;
    tame_impl_fd_tell(env, fd, closer, tame_impl_fd_type(fd)->impl_closed);
    tame_impl_fd_waiter_free(closer);
}

/* The `stop` callback. It may run within tame_impl_fd_finish and takes no lock. */
static inline void tame_impl_fd_stopped(ErlNifEnv *env, struct tame_fd *fd, int later)
{
    tame_impl_fd_shut(fd);
    if (later)
        tame_impl_fd_tell_closer(env, fd);
}

/* Called once, by who found that the last user is gone, without the lock. Whether it is closed now. */
static inline int tame_impl_fd_finish(ErlNifEnv *env, struct tame_fd *fd)
{
    int done;

    if (!fd->impl_selected) {
        tame_impl_fd_shut(fd);
        return 1;
    }
    done = tame_impl_fd_deselect(env, fd, ERL_NIF_SELECT_STOP);
    if (done >= 0)
        return (done & ERL_NIF_SELECT_STOP_SCHEDULED) == 0;
    tame_impl_fd_shut(fd); /* the VM does not know it */
    return 1;
}

/* A user less. Unlocks. */
static inline void tame_impl_fd_leave(ErlNifEnv *env, struct tame_fd *fd)
{
    const int last = --fd->impl_users == 0 && !tame_impl_fd_is_open(fd);

    enif_mutex_unlock(fd->impl_lock);
    if (last && tame_impl_fd_finish(env, fd))
        tame_impl_fd_tell_closer(env, fd);
}

/* All who wait are told. With the lock. */
static inline void tame_impl_fd_send_away(ErlNifEnv *env, struct tame_fd *fd, int direction)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];
    int told = line->told || (line->armed && !tame_impl_fd_disarm(env, fd, direction));

    while (line->queue.first != NULL) {
        struct tame_impl_fd_waiter *waiter = line->queue.first;

        tame_impl_fd_unlink(line, waiter);
        if (!told)
            tame_impl_fd_tell(env, fd, waiter, tame_impl_fd_type(fd)->impl_closed);
        told = 0;
        tame_impl_fd_waiter_free(waiter);
    }
    tame_impl_fd_waiter_free(line->spare);
    line->spare = NULL;
}

/* OPEN to CLOSING. Unlocks. Whether it is closed now. */
static inline int tame_impl_fd_close_locked(ErlNifEnv *env, struct tame_fd *fd)
{
    int last;

    __atomic_store_n(&fd->impl_state, TAME_IMPL_FD_CLOSING, __ATOMIC_RELEASE);
    for (int direction = TAME_FD_READ; direction <= TAME_FD_WRITE; direction++)
        tame_impl_fd_send_away(env, fd, direction);
    tame_impl_leash_unwatch(&fd->impl_watched);
    fd->impl_owned = 0;
    last = fd->impl_users == 0;
    enif_mutex_unlock(fd->impl_lock);
    return last && tame_impl_fd_finish(env, fd);
}

/* The destructor. Who waits for a turn, without a term and without the VM's hold, is told too. */
static inline void tame_impl_fd_destroy(ErlNifEnv *env, struct tame_fd *fd)
{
    const struct tame_fd_type *type = tame_impl_fd_type(fd);

    if (fd->impl_leash != NULL)
        tame_impl_leash_off(fd->impl_leash);
    if (fd->impl_lock == NULL)
        return; /* tame_fd_new failed */
    tame_impl_leash_unwatch(&fd->impl_watched);
    fd->impl_owned = 0;
    for (int direction = TAME_FD_READ; direction <= TAME_FD_WRITE; direction++) {
        struct tame_impl_fd_line *line = &fd->impl_lines[direction];

        line->armed = 0;
        /* Who waits with the descriptor's own term was told with it, or it would not be dying. */
        if (line->queue.first != NULL && line->queue.first->ref == 0)
            line->told = 1;
        tame_impl_fd_send_away(env, fd, direction);
    }
    tame_impl_fd_shut(fd);
    tame_impl_fd_tell_closer(env, fd);
    enif_mutex_destroy(fd->impl_lock);
    if (type->impl_hooks->destroy != NULL)
        type->impl_hooks->destroy(fd);
}

/* Who waited in this direction has ended, if it did. Returns whether. With the lock. */
static inline int tame_impl_fd_lose(ErlNifEnv *env, struct tame_fd *fd, int direction,
                                    const ErlNifPid *pid)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];
    struct tame_impl_fd_waiter *waiter = tame_impl_fd_find(&line->queue, pid);

    if (line->spare != NULL && enif_compare_pids(&line->spare->pid, pid) == 0)
        tame_impl_leash_unwatch(&line->spare->watched);
    if (waiter == NULL)
        return 0;
    if (waiter == line->queue.first && line->armed)
        (void)tame_impl_fd_disarm(env, fd, direction);
    tame_impl_fd_unlink(line, waiter);
    tame_impl_fd_waiter_free(waiter);
    tame_impl_fd_next(env, fd, line);
    return 1;
}

/* A process has ended that owned the descriptor, or waited, or did so once. */
static inline void tame_impl_fd_down(ErlNifEnv *env, struct tame_fd *fd, const ErlNifPid *pid)
{
    const struct tame_fd_type *type = tame_impl_fd_type(fd);
    int lost[2];

    enif_mutex_lock(fd->impl_lock);
    if (tame_impl_fd_is_owner(fd, pid)) {
        (void)tame_impl_fd_close_locked(env, fd);
        return;
    }
    for (int direction = TAME_FD_READ; direction <= TAME_FD_WRITE; direction++)
        lost[direction] = tame_impl_fd_lose(env, fd, direction, pid);
    enif_mutex_unlock(fd->impl_lock);
    for (int direction = TAME_FD_READ; direction <= TAME_FD_WRITE; direction++)
        if (lost[direction] && type->impl_hooks->lost != NULL)
            type->impl_hooks->lost(env, fd, (enum tame_fd_direction)direction);
}

#endif
