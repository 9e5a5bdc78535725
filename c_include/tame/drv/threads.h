/* tame/drv/threads.h - a driver's own threads, and how an item gets to one.
 *
 * Part of tame/driver.h. Two groups, made when they are needed and joined when the driver is
 * unloaded, which the VM does when no port lives: so no thread has work then. */
#ifndef TAME_DRV_THREADS_H
#define TAME_DRV_THREADS_H

#include "../place.h"
#include "port.h"

/* As many threads for the CPU as the VM has schedulers and its container CPUs. */
static inline uint32_t tame_impl_drv_cpus(void)
{
    ErlDrvSysInfo info;

    driver_system_info(&info, sizeof info);
    return tame_impl_place_workers((uint32_t)info.scheduler_threads, 0, tame_impl_os_cpus(""));
}

/* Runs the first item of a port that has one and nothing outside, on a thread of the group. Called
 * with the lock, which it lets go meanwhile. */
static inline void tame_impl_drv_outside(struct tame_impl_drv_group *group,
                                         struct tame_impl_drv_port *port);

static inline void *tame_impl_drv_thread(void *arg)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_group *group = (struct tame_impl_drv_group *)arg;

    tame_impl_os_unbind();
    if (group->is_cpu)
        (void)tame_impl_os_give_way(1);
    erl_drv_mutex_lock(library->lock);
    while (!library->ending) {
        struct tame_impl_link *port = tame_impl_queue_pop(&group->ports);

        if (port != NULL) {
            tame_impl_drv_outside(group, (struct tame_impl_drv_port *)port);
            continue;
        }
        group->idle++;
        erl_drv_cond_wait(group->work, library->lock);
        group->idle--;
    }
    erl_drv_mutex_unlock(library->lock);
    return NULL;
}

/* A port waits in the group: a thread is woken for it, or made. Called with the lock. Returns 0 when
 * there is no thread and the system gives none. */
static inline int tame_impl_drv_wake(struct tame_impl_drv_group *group)
{
    if (group->ports.len > group->idle && group->threads_len < group->threads_max &&
        tame_impl_thread_create((char *)(group->is_cpu ? "tame_drv_cpu" : "tame_drv_io"),
                                &group->threads[group->threads_len], tame_impl_drv_thread, group,
                                0) == 0)
        group->threads_len++;
    erl_drv_cond_signal(group->work);
    return group->threads_len > 0;
}

/* Puts a port that has work and nothing outside into the queue of its first item. With the lock. */
static inline int tame_impl_drv_wants_thread(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    const struct tame_impl_drv_item *first = (struct tame_impl_drv_item *)port->work.head;
    struct tame_impl_drv_group *group;

    if (first == NULL || port->running || port->link.queue != NULL)
        return 1;
    group = &library->groups[first->where];
    tame_impl_queue_push(&group->ports, &port->link);
    if (tame_impl_drv_wake(group))
        return 1;
    (void)tame_impl_queue_remove(&group->ports, &port->link);
    return 0;
}

/* The port has the item, where that says. With the lock. Returns 0 when it does not take it. */
static inline int tame_impl_drv_take(struct tame_impl_drv_port *port,
                                     struct tame_impl_drv_item *item)
{
    if (port->stopped)
        return 0;
    if (item->where == TAME_DRV_PORT) {
        tame_impl_queue_push(&port->back, &item->link);
        tame_impl_drv_ring(port);
        return 1;
    }
    if (port->closing || port->work.len >= TAME_DRV_MAX_WAITING)
        return 0;
    tame_impl_queue_push(&port->work, &item->link);
    if (tame_impl_drv_wants_thread(port))
        return 1;
    (void)tame_impl_queue_remove(&port->work, &item->link);
    return 0;
}

/* Called without the lock, from a callback of this port. Returns 0 when the port does not take it;
 * then the item is the caller's. */
static inline int tame_impl_drv_push(struct tame_impl_drv_port *port,
                                     struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    const struct tame_impl_drv_now *now = &tame_impl_drv_now;
    const int locked = !now->outside; /* the port */
    int taken, becomes_busy;

    if (locked && !tame_impl_drv_bell_open(port))
        return 0;
    item->caller = !locked || now->item ? now->caller : driver_caller(port->port);
    erl_drv_mutex_lock(library->lock);
    taken = tame_impl_drv_take(port, item);
    becomes_busy = taken && locked && port->work.len >= TAME_DRV_BUSY_AT && !port->busy;
    if (becomes_busy)
        port->busy = 1; /* before the lock goes: from now on who does the work rings */
    erl_drv_mutex_unlock(library->lock);
    if (becomes_busy)
        set_busy_port(port->port, 1); /* the bell is heard after this callback */
    return taken;
}

static inline void tame_impl_drv_outside(struct tame_impl_drv_group *group,
                                         struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_now *now = &tame_impl_drv_now;
    struct tame_impl_drv_item *item = (struct tame_impl_drv_item *)tame_impl_queue_pop(&port->work);
    enum tame_impl_drv_ran ran;

    port->running = 1;
    erl_drv_mutex_unlock(library->lock);
    now->port = port;
    now->outside = now->item = 1;
    now->caller = item->caller;
    ran = item->kind->run(port, item);
    memset(now, 0, sizeof *now);

    erl_drv_mutex_lock(library->lock);
    if (ran == TAME_IMPL_DRV_AGAIN && item->where == TAME_DRV_PORT) {
        tame_impl_queue_push(&port->back, &item->link);
        tame_impl_drv_ring(port);
    } else if (ran == TAME_IMPL_DRV_AGAIN && !port->closing) {
        /* It gave way: to other ports, not to what its own port has scheduled after it. */
        tame_impl_queue_push_first(&port->work, &item->link);
    } else {
        erl_drv_mutex_unlock(library->lock);
        if (ran == TAME_IMPL_DRV_AGAIN)
            item->kind->drop(port, item);
        driver_free(item);
        erl_drv_mutex_lock(library->lock);
    }
    port->running = 0;
    /* What the port has taken is done: on a thread of another kind where the system makes none. */
    if (!tame_impl_drv_wants_thread(port))
        tame_impl_queue_push(&group->ports, &port->link); /* this thread looks there next */
    if (port->closing || (port->busy && port->work.len <= TAME_DRV_BUSY_AT / 2))
        tame_impl_drv_ring(port);
    erl_drv_cond_broadcast(library->quiet);
}

/* Returns 0 without memory. */
static inline int tame_impl_drv_threads_open(void)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;

    library->ending = 0;
    library->lock = erl_drv_mutex_create((char *)"tame_drv");
    library->quiet = erl_drv_cond_create((char *)"tame_drv_quiet");
    if (library->lock == NULL || library->quiet == NULL)
        return 0;
    for (int i = 0; i < 2; i++) {
        struct tame_impl_drv_group *group = &library->groups[i];

        memset(group, 0, sizeof *group);
        group->is_cpu = i == TAME_DRV_CPU;
        group->threads_max = group->is_cpu ? tame_impl_drv_cpus() : TAME_DRV_IO_THREADS;
        group->work = erl_drv_cond_create((char *)"tame_drv_work");
        group->threads = (ErlNifTid *)driver_alloc(group->threads_max * sizeof *group->threads);
        if (group->work == NULL || group->threads == NULL)
            return 0;
    }
    return 1;
}

/* No port lives. */
static inline void tame_impl_drv_threads_close(void)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;

    erl_drv_mutex_lock(library->lock);
    library->ending = 1;
    for (int i = 0; i < 2; i++)
        erl_drv_cond_broadcast(library->groups[i].work);
    erl_drv_mutex_unlock(library->lock);
    for (int i = 0; i < 2; i++) {
        struct tame_impl_drv_group *group = &library->groups[i];

        while (group->threads_len > 0)
            enif_thread_join(group->threads[--group->threads_len], NULL);
        erl_drv_cond_destroy(group->work);
        driver_free(group->threads);
    }
    erl_drv_cond_destroy(library->quiet);
    erl_drv_mutex_destroy(library->lock);
}

#endif
