/* tame/fd.h - own a descriptor safely: a resource that waits for readiness and closes it exactly once.
 *
 * Usable alone, in any NIF library; needs no job and no function table of tame.h. A guide with a
 * complete library: docs/guide/descriptors.md. Every function: docs/reference/tame_h.md.
 *
 *
 * 1  WHAT IT IS FOR
 *
 *   A socket, a pipe, an eventfd, a timerfd, a terminal: what has a number and is ready at times. The
 *   author makes it, non-blocking and close-on-exec, and writes NIFs that try the system call and,
 *   when that would block, wait:
 *
 *     struct line { struct tame_fd fd; ... };            the tame_fd comes first
 *     TAME_FD(line, struct line)                         its type; hooks follow, see struct tame_fd_hooks
 *
 *     switch (tame_fd_begin(env, fd, TAME_FD_READ, &self, ref)) {
 *     case TAME_FD_GO: break;                            our turn: nobody else reads, the number is valid
 *     case TAME_FD_WAIT: return wait;                    others were first: a message comes
 *     default: return closed;
 *     }
 *     n = read(tame_fd_number(fd), ...);
 *     if (n < 0 && errno == EAGAIN)
 *         return tame_fd_wait(env, fd, TAME_FD_READ, &self, ref) == TAME_FD_WAIT ? wait : closed;
 *     tame_fd_done(env, fd, TAME_FD_READ);
 *
 *   In Erlang, with a reference of make_ref(): receive {tame_fd, Ref, ready} -> try again;
 *   {tame_fd, Ref, closed} -> closed after Left -> cancel(...) end.
 *
 *
 * 2  THE LIFE CYCLE
 *
 *               tame_fd_new
 *                    |
 *                    v
 *     .---------------------------.  begin, again, done, cancel, wake, use, unuse, give, close:
 *     |           OPEN            |  any thread; wait: schedulers alone, regular or dirty
 *     | each direction:           |
 *     |  free --begin--> held     |  held: by one call, which ends it by done, wait or again
 *     |   ^               |  |    |
 *     |   '----- done ----'  wait |  done: the first who waits is told `ready`, and tries
 *     |   ^                  v    |
 *     |   '-- cancel, ---- armed  |  armed: the VM will say `ready` to the first who waits; when that
 *     |       down                |  process begins it holds the direction; others stand behind it
 *     '---------------------------'
 *                    | close; the owner dies; the last term is gone and nobody waits
 *                    v
 *     .---------------------------.  all who wait are told `closed`. begin, wait, use, give, close
 *     |         CLOSING           |  answer TAME_FD_CLOSED; calls that hold a direction or use the
 *     '---------------------------'  number go on, and the last of them goes on to STOP
 *                    | the last done, wait or unuse (at once when there is none)
 *                    v
 *     .---------------------------.  the VM lets go of the number: at once (what epoll takes), or on a
 *     |           STOP            |  scheduler later (regular files, /dev/null, numbers that they had)
 *     '---------------------------'
 *                    v
 *     .---------------------------.  the number is closed, once, by close(2) or the close hook; who
 *     |          CLOSED           |  closed it is told `closed`, when close said TAME_FD_WAIT. No
 *     '---------------------------'  message comes after that. The memory goes with the last term.
 *
 *
 * 3  MESSAGES
 *
 *   Each wait (TAME_FD_WAIT from begin or wait) gets exactly one: {tame_fd, Ref, ready} or
 *   {tame_fd, Ref, closed}; none if tame_fd_cancel took it back (TAME_FD_DONE). When that answers
 *   TAME_FD_SENT the message is there or on its way: receive it, without a time-out. `ready`
 *   means: try. It may come although another try would block. A process that begins ends its own wait
 *   in that direction, so it begins again when the message has come, or after it cancelled. One that
 *   begins while others are first keeps its place, and is told by its newest reference alone.
 *
 *
 * 4  DECISIONS
 *
 *   Several may wait in a direction, first come, first served. enif_select knows one process a
 *   direction and forgets it silently for the next, so it is armed for the first alone; the others
 *   stand in a queue here and are told when their turn comes. Each is watched (tame/watch.h), and found
 *   in a time that does not grow with the queue; the owner's end closes all.
 *
 *   Deadlines are the `after` of the receive that waits. The VM has a timer wheel for that: a timerfd
 *   would cost a descriptor, two system calls a wait, and a process to answer it. What is left of the
 *   time is computed from one absolute deadline, so that parts which come late do not prolong it.
 *
 *   A descriptor that sends what it reads, for credit, is read by a process beside its owner, which waits
 *   in the owner's place: tame_fd_readers of tame's Erlang has such processes, the guide an example.
 *
 *   The owner's death closes; so does the end of the last term when nobody has ever waited. After a
 *   wait the VM itself holds the resource until it is closed. A descriptor with an owner does not leak.
 *
 *   STOP is asked for without the lock, because `stop` may run within that call; it takes none.
 *
 *
 * 5  WHAT YOU MAY NOT DO
 *
 *   Close the number yourself, or give it to another resource, a port or a library that will (dup it
 *   first). Leave a NIF by enif_schedule_nif between begin and done: a killed process would not come
 *   back. Wait on a thread of your own (TAME_FD_FAILED): newer VMs arm on schedulers only; such a
 *   thread uses poll(2) between begin and done, and has somebody to wake it.
 *
 *
 * 6  UPGRADE AND PURGE
 *
 *   tame_fd_load in load and in upgrade. Descriptors move to the new library, whose hooks close them,
 *   when its struct has the same size and fd.h the same layout; else the old library stays loaded,
 *   as it does after a purge, until the last of them is closed, and the last process that owned
 *   one, or waited, has ended (tame/watch.h). Each library keeps 33 KB for that, to the end of the VM. */
#ifndef TAME_FD_H
#define TAME_FD_H

#include "fd_end.h"
#include "fd_line.h"
#include "fd_type.h"

/* The number: between tame_fd_begin and its end, or tame_fd_use and tame_fd_unuse. */
static inline int tame_fd_number(const struct tame_fd *fd)
{
    return __atomic_load_n(&fd->impl_number, __ATOMIC_RELAXED);
}

/* Holds the number open until tame_fd_unuse, even if the descriptor is closed meanwhile; -1 when it
 * is closed already. For calls that have no direction, such as getsockopt. */
static inline int tame_fd_use(struct tame_fd *fd)
{
    int number = -1;

    enif_mutex_lock(fd->impl_lock);
    if (tame_impl_fd_is_open(fd)) {
        fd->impl_users++;
        number = fd->impl_number;
    }
    enif_mutex_unlock(fd->impl_lock);
    return number;
}

static inline void tame_fd_unuse(ErlNifEnv *env, struct tame_fd *fd)
{
    enif_mutex_lock(fd->impl_lock);
    tame_impl_fd_leave(env, fd);
}

/* Asks for a direction, for the process `pid`. TAME_FD_GO: no other call has it until tame_fd_done or
 * tame_fd_wait. TAME_FD_WAIT: others were first; {tame_fd, Ref, ready} comes when it is its turn.
 * TAME_FD_BUSY: others were first, and ref is 0. TAME_FD_CLOSED; TAME_FD_FAILED: no memory, or `pid` is
 * dead. On any thread. */
static inline enum tame_fd_answer tame_fd_begin(ErlNifEnv *env, struct tame_fd *fd,
                                                enum tame_fd_direction direction,
                                                const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];
    struct tame_impl_fd_waiter *waiter;
    enum tame_fd_answer answer = TAME_FD_GO;

    enif_mutex_lock(fd->impl_lock);
    waiter = line->queue.first;
    if (!tame_impl_fd_is_open(fd)) {
        answer = TAME_FD_CLOSED;
    } else if (!line->held && (waiter == NULL || enif_compare_pids(&waiter->pid, pid) == 0)) {
        if (waiter != NULL) {
            tame_impl_fd_unlink(line, waiter);
            tame_impl_fd_spare(line, waiter);
        }
        line->held = 1;
        fd->impl_users++;
    } else if (ref == 0) {
        answer = TAME_FD_BUSY;
    } else {
        answer = tame_impl_fd_stand(env, fd, line, pid, ref) ? TAME_FD_WAIT : TAME_FD_FAILED;
    }
    enif_mutex_unlock(fd->impl_lock);
    return answer;
}

/* Ends what tame_fd_begin began. On any thread. */
static inline void tame_fd_done(ErlNifEnv *env, struct tame_fd *fd,
                                enum tame_fd_direction direction)
{
    enif_mutex_lock(fd->impl_lock);
    fd->impl_lines[direction].held = 0;
    tame_impl_fd_next(env, fd, &fd->impl_lines[direction]);
    tame_impl_fd_leave(env, fd);
}

/* The direction is held no more, and `pid` stands before all others: the VM will tell it, or we do. */
static inline enum tame_fd_answer tame_impl_fd_first(ErlNifEnv *env, struct tame_fd *fd,
                                                     enum tame_fd_direction direction,
                                                     const ErlNifPid *pid, ERL_NIF_TERM ref,
                                                     int by_vm)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];
    struct tame_impl_fd_waiter *waiter = NULL;
    enum tame_fd_answer answer = TAME_FD_FAILED;

    enif_mutex_lock(fd->impl_lock);
    line->held = 0;
    if (!tame_impl_fd_is_open(fd))
        answer = TAME_FD_CLOSED;
    else
        waiter = tame_impl_fd_waiter_take(env, fd, line, pid, ref);
    if (waiter != NULL && by_vm && !tame_impl_fd_arm(env, fd, (int)direction, waiter, ref)) {
        tame_impl_fd_spare(line, waiter);
        waiter = NULL;
    }
    if (waiter != NULL) {
        tame_impl_fd_prepend(&line->queue, waiter);
        line->armed = by_vm;
        line->told = 0;
        answer = TAME_FD_WAIT;
    }
    tame_impl_fd_next(env, fd, line);
    tame_impl_fd_leave(env, fd);
    return answer;
}

/* Ends what tame_fd_begin began, and has the process told when the descriptor is ready:
 * TAME_FD_WAIT. It keeps its place before all others. With ref 0 the descriptor's own term is the
 * message's, and no memory is taken for one. TAME_FD_CLOSED; TAME_FD_FAILED: no memory, `pid`
 * is dead, the VM cannot wait for this descriptor, or the thread is no scheduler. */
static inline enum tame_fd_answer tame_fd_wait(ErlNifEnv *env, struct tame_fd *fd,
                                               enum tame_fd_direction direction,
                                               const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    return tame_impl_fd_first(env, fd, direction, pid, ref, 1);
}

/* As tame_fd_wait, but it is told at once: for a call that has done enough for one slice, and keeps
 * its place. On any thread. */
static inline enum tame_fd_answer tame_fd_again(ErlNifEnv *env, struct tame_fd *fd,
                                                enum tame_fd_direction direction,
                                                const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    return tame_impl_fd_first(env, fd, direction, pid, ref, 0);
}

/* Ends a wait whose message was not received. TAME_FD_DONE: none comes. TAME_FD_SENT: receive it,
 * `ready` or `closed`; a turn that it gave goes to the next. On any thread but with env. */
static inline enum tame_fd_answer tame_fd_cancel(ErlNifEnv *env, struct tame_fd *fd,
                                                 enum tame_fd_direction direction,
                                                 const ErlNifPid *pid)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];
    struct tame_impl_fd_waiter *waiter;
    enum tame_fd_answer answer = TAME_FD_SENT;

    enif_mutex_lock(fd->impl_lock);
    waiter = tame_impl_fd_find(&line->queue, pid);
    if (waiter != NULL) {
        if (waiter != line->queue.first ||
            (!line->told && (!line->armed || tame_impl_fd_disarm(env, fd, (int)direction))))
            answer = TAME_FD_DONE;
        tame_impl_fd_unlink(line, waiter);
        tame_impl_fd_spare(line, waiter);
        tame_impl_fd_next(env, fd, line);
    }
    enif_mutex_unlock(fd->impl_lock);
    return answer;
}

/* The first who waits is told `ready` now, if the VM has not told it yet, and tries: for what is there
 * although the descriptor does not say so, because an earlier try read it. On any thread but with env. */
static inline void tame_fd_wake(ErlNifEnv *env, struct tame_fd *fd,
                                enum tame_fd_direction direction)
{
    struct tame_impl_fd_line *line = &fd->impl_lines[direction];

    enif_mutex_lock(fd->impl_lock);
    /* Where it cannot be disarmed the VM has told it. */
    if (tame_impl_fd_is_open(fd) && line->armed && tame_impl_fd_disarm(env, fd, (int)direction)) {
        line->armed = 0;
        tame_impl_fd_next(env, fd, line);
    }
    enif_mutex_unlock(fd->impl_lock);
}

/* Closes. TAME_FD_DONE: the number is closed. TAME_FD_WAIT: it will be, when the calls that use it have
 * ended or the VM lets go of it, and then {tame_fd, Ref, closed} comes to `pid`. With pid NULL nobody
 * is told. TAME_FD_CLOSED: somebody else has. On any thread. */
static inline enum tame_fd_answer tame_fd_close(ErlNifEnv *env, struct tame_fd *fd,
                                                const ErlNifPid *pid, ERL_NIF_TERM ref)
{
    struct tame_impl_fd_waiter *closer = pid == NULL ? NULL : tame_impl_fd_waiter_new();

    if (closer != NULL)
        (void)tame_impl_fd_waiter_set(closer, pid, ref);
    enif_mutex_lock(fd->impl_lock);
    if (!tame_impl_fd_is_open(fd)) {
        enif_mutex_unlock(fd->impl_lock);
        tame_impl_fd_waiter_free(closer);
        return TAME_FD_CLOSED;
    }
    __atomic_store_n(&fd->impl_closer, closer, __ATOMIC_RELEASE);
    if (!tame_impl_fd_close_locked(env, fd))
        return closer != NULL ? TAME_FD_WAIT : TAME_FD_DONE;
    tame_impl_fd_waiter_free(__atomic_exchange_n(&fd->impl_closer, NULL, __ATOMIC_ACQ_REL));
    return TAME_FD_DONE;
}

/* Another process owns it from now on. TAME_FD_DONE, TAME_FD_NOT_OWNER, TAME_FD_NO_PROCESS,
 * TAME_FD_CLOSED. On any thread. */
static inline enum tame_fd_answer tame_fd_give(ErlNifEnv *env, struct tame_fd *fd,
                                               const ErlNifPid *from, const ErlNifPid *to)
{
    enum tame_fd_answer answer = TAME_FD_DONE;
    struct tame_impl_watched watched;

    enif_mutex_lock(fd->impl_lock);
    if (!tame_impl_fd_is_open(fd)) {
        answer = TAME_FD_CLOSED;
    } else if (!tame_impl_fd_is_owner(fd, from)) {
        answer = TAME_FD_NOT_OWNER;
    } else if (!tame_impl_fd_watch(env, fd, to, &watched)) {
        answer = TAME_FD_NO_PROCESS;
    } else {
        tame_impl_leash_unwatch(&fd->impl_watched);
        tame_impl_watch_pass(&watched, &fd->impl_watched);
        fd->impl_owner = *to;
        /* The old owner's waits were the owner's; now they are watched for themselves. */
        for (int direction = TAME_FD_READ; direction <= TAME_FD_WRITE; direction++) {
            struct tame_impl_fd_waiter *waiter =
                tame_impl_fd_find(&fd->impl_lines[direction].queue, from);

            if (waiter != NULL)
                (void)tame_impl_fd_watch_waiter(env, fd, waiter);
        }
    }
    enif_mutex_unlock(fd->impl_lock);
    return answer;
}

/* Its owner; 0 when it is closed. */
static inline int tame_fd_owner(struct tame_fd *fd, ErlNifPid *owner)
{
    int owned;

    enif_mutex_lock(fd->impl_lock);
    owned = fd->impl_owned;
    if (owned)
        *owner = fd->impl_owner;
    enif_mutex_unlock(fd->impl_lock);
    return owned;
}

#endif
