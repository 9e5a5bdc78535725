/* tame/drv/schedule.h - a callback somewhere else: what tame/driver.h is about.
 *
 * Part of tame/driver.h. */
#ifndef TAME_DRV_SCHEDULE_H
#define TAME_DRV_SCHEDULE_H

#include <stdio.h>

#include "threads.h"

/* ---- where the thread at hand is ---- */

/* The port, when the thread at hand runs a callback of it; else NULL. */
static inline struct tame_impl_drv_port *tame_impl_drv_here(ErlDrvPort port)
{
    struct tame_impl_drv_port *here = tame_impl_drv_now.port;

    return here != NULL && here->port == port ? here : NULL;
}

/* Whether the callback runs outside: on a thread of the driver's, without the port's lock. */
static inline int tame_drv_is_dirty(ErlDrvPort port)
{
    return tame_impl_drv_here(port) != NULL && tame_impl_drv_now.outside;
}

/* Whether the port closes, so that nobody waits for what a long callback does. */
static inline int tame_drv_is_closing(ErlDrvPort port)
{
    const struct tame_impl_drv_port *here = tame_impl_drv_here(port);

    return here == NULL || __atomic_load_n(&here->closing, __ATOMIC_RELAXED);
}

/* The process that called the callback, or the one that scheduled it. */
static inline ErlDrvTermData tame_drv_caller(ErlDrvPort port)
{
    const struct tame_impl_drv_now *now = &tame_impl_drv_now;

    return tame_impl_drv_here(port) != NULL && now->item ? now->caller : driver_caller(port);
}

/* ---- schedule ---- */

struct tame_impl_drv_plain {
    struct tame_impl_drv_item item;
    tame_drv_callback callback;
    void *arg;
};

static inline enum tame_impl_drv_ran tame_impl_drv_plain_run(struct tame_impl_drv_port *port,
                                                             struct tame_impl_drv_item *item)
{
    const struct tame_impl_drv_plain *plain = (struct tame_impl_drv_plain *)item;

    plain->callback(port->data, plain->arg);
    return TAME_IMPL_DRV_ENDED;
}

static inline void tame_impl_drv_plain_drop(struct tame_impl_drv_port *port,
                                            struct tame_impl_drv_item *item)
{
    const struct tame_impl_drv_plain *plain = (struct tame_impl_drv_plain *)item;
    const tame_drv_drop drop = tame_impl_drv_library.drop;

    if (drop != NULL)
        drop(port->data, plain->callback, plain->arg);
}

static const struct tame_impl_drv_kind tame_impl_drv_plain = {tame_impl_drv_plain_run,
                                                              tame_impl_drv_plain_drop};

/* An item of `size` bytes, zeroed; NULL without memory. */
static inline struct tame_impl_drv_item *
tame_impl_drv_item_new(size_t size, const struct tame_impl_drv_kind *kind,
                       enum tame_drv_where where)
{
    struct tame_impl_drv_item *item = (struct tame_impl_drv_item *)driver_alloc(size);

    if (item == NULL)
        return NULL;
    memset(item, 0, size);
    item->kind = kind;
    item->where = where;
    return item;
}

static inline struct tame_impl_drv_item *
tame_impl_drv_plain_new(enum tame_drv_where where, tame_drv_callback callback, void *arg)
{
    struct tame_impl_drv_plain *plain = (struct tame_impl_drv_plain *)tame_impl_drv_item_new(
        sizeof *plain, &tame_impl_drv_plain, where);

    if (plain == NULL)
        return NULL;
    plain->callback = callback;
    plain->arg = arg;
    return &plain->item;
}

/* From any callback of the port, wherever that runs. Returns 1: the callback will be called once, or
 * dropped once. Returns 0, and `arg` is still the caller's: the port closes, TAME_DRV_MAX_WAITING
 * wait, there is no memory, descriptor or thread, or this is no callback of the port. */
static inline int tame_drv_schedule(ErlDrvPort port, enum tame_drv_where where,
                                    tame_drv_callback callback, void *arg)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);
    struct tame_impl_drv_item *item;

    if (here == NULL)
        return 0;
    item = tame_impl_drv_plain_new(where, callback, arg);
    if (item == NULL)
        return 0;
    if (tame_impl_drv_push(here, item))
        return 1;
    driver_free(item);
    return 0;
}

/* How much of the port's work waits for a thread or is outside. Small work may go behind it, to stay
 * in order. From a callback of the port. */
static inline unsigned tame_drv_waiting(ErlDrvPort port)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);
    unsigned waiting;

    if (here == NULL)
        return 0;
    erl_drv_mutex_lock(tame_impl_drv_library.lock);
    waiting = here->work.len + (unsigned)here->running;
    erl_drv_mutex_unlock(tame_impl_drv_library.lock);
    return waiting;
}

/* ---- from a thread that is not the driver's ---- */

/* What a thread of another library knows of a port. */
struct tame_drv_hold;

/* A function and its struct may have one name, as stat(2) and its struct have. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
/* From a callback under the port's lock. NULL without memory or a descriptor. */
static inline struct tame_drv_hold *tame_drv_hold(ErlDrvPort port)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);

    if (here == NULL || tame_impl_drv_now.outside || !tame_impl_drv_bell_open(here))
        return NULL;
    tame_impl_drv_keep(here);
    return (struct tame_drv_hold *)here;
}
#pragma GCC diagnostic pop

/* Has the callback called under the port's lock; from any thread. Returns 0 when the port has closed
 * or there is no memory: then `arg` is still the caller's. */
static inline int tame_drv_post(struct tame_drv_hold *hold, tame_drv_callback callback, void *arg)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)hold;
    struct tame_impl_drv_item *item = tame_impl_drv_plain_new(TAME_DRV_PORT, callback, arg);
    int taken;

    if (item == NULL)
        return 0;
    erl_drv_mutex_lock(tame_impl_drv_library.lock);
    taken = tame_impl_drv_take(port, item);
    erl_drv_mutex_unlock(tame_impl_drv_library.lock);
    if (!taken)
        driver_free(item);
    return taken;
}

/* From any thread, once. */
static inline void tame_drv_let_go(struct tame_drv_hold *hold)
{
    tame_impl_drv_release((struct tame_impl_drv_port *)hold);
}

/* ---- the end ---- */

/* Takes out what waits for a thread, and drops it. Without the lock. */
static inline void tame_impl_drv_drop_work(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_item *item;

    do {
        erl_drv_mutex_lock(library->lock);
        item = (struct tame_impl_drv_item *)tame_impl_queue_pop(&port->work);
        if (port->work.len == 0 && port->link.queue != NULL)
            (void)tame_impl_queue_remove(port->link.queue, &port->link);
        erl_drv_mutex_unlock(library->lock);
        if (item == NULL)
            break;
        item->kind->drop(port, item);
        driver_free(item);
    } while (1);
}

/* Ends the port as driver_failure_atom does, when what is outside has come back: what waits is
 * dropped, and nothing is taken any more. `reason` is at most 255 characters of an atom. From any
 * callback of the port. */
static inline void tame_drv_fail(ErlDrvPort port, const char *reason)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);

    if (here == NULL || (!tame_impl_drv_now.outside && !tame_impl_drv_bell_open(here)))
        return;
    erl_drv_mutex_lock(library->lock);
    if (!here->fails)
        (void)snprintf(here->failure, sizeof here->failure, "%s", reason);
    here->fails = 1;
    __atomic_store_n(&here->closing, 1, __ATOMIC_RELAXED);
    tame_impl_drv_ring(here);
    erl_drv_mutex_unlock(library->lock);
    tame_impl_drv_drop_work(here);
}

/* ---- replies ---- */

/* {Port, {data, Bytes}} to the port's owner, from any callback, as driver_output does under the
 * port's lock. Returns as erl_drv_output_term: above 0 when it was sent. */
static inline int tame_drv_output(ErlDrvPort port, const void *bytes, size_t size)
{
    const struct tame_impl_drv_port *here = tame_impl_drv_here(port);

    if (here == NULL)
        return -1;

    ErlDrvTermData reply[] = {ERL_DRV_PORT,
                              here->term,
                              ERL_DRV_ATOM,
                              tame_impl_drv_library.atom_data,
                              ERL_DRV_BUF2BINARY,
                              (ErlDrvTermData)bytes,
                              (ErlDrvTermData)size,
                              ERL_DRV_TUPLE,
                              2,
                              ERL_DRV_TUPLE,
                              2};

    return erl_drv_output_term(here->term, reply, (int)(sizeof reply / sizeof reply[0]));
}

#endif
