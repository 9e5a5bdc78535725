/* descriptor.h - a descriptor that the VM waits for, closed exactly once.
 *
 *     OPEN ──descriptor_end──▶ ENDED ──descriptor_stop──▶ the VM calls `stop` ──▶ closed
 *
 * Everything that this library has to do with enif_select is here. The descriptor is used and ended
 * under its owner's lock, so nobody uses one that has ended; it is stopped without the lock, because
 * the VM may call `stop` inside. It is closed when the VM has stopped waiting for it, or by the
 * destructor of a resource that was never selected: the first select keeps the resource until it is
 * stopped, so there is no third case. */
#ifndef TAME_TTY_DESCRIPTOR_H
#define TAME_TTY_DESCRIPTOR_H

#include <erl_nif.h>
#include <unistd.h>

struct descriptor {
    int fd; /* -1: closed */
    int ended;
};

/* Under the lock. 1 when the calling process gets {select, Object, Ref, ready_input | ready_output}
 * once; `object` is the resource that has the descriptor. */
static inline int descriptor_await(ErlNifEnv *env, const struct descriptor *d, void *object,
                                   enum ErlNifSelectFlags event, ERL_NIF_TERM ref)
{
    return !d->ended && enif_select(env, (ErlNifEvent)d->fd, event, object, NULL, ref) >= 0;
}

/* Under the lock. 1 for the one caller that has to stop it then. */
static inline int descriptor_end(struct descriptor *d)
{
    const int first = !d->ended;

    d->ended = 1;
    return first;
}

/* Without the lock. */
static inline void descriptor_stop(ErlNifEnv *env, struct descriptor *d, void *object)
{
    (void)enif_select(env, (ErlNifEvent)d->fd, ERL_NIF_SELECT_STOP, object, NULL,
                      enif_make_atom(env, "undefined"));
}

/* In the resource's `stop`, and in its destructor. */
static inline void descriptor_close(struct descriptor *d)
{
    if (d->fd >= 0)
        (void)close(d->fd);
    d->fd = -1;
}

#endif
