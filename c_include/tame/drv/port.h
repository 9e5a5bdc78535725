/* tame/drv/port.h - what there is of a driver, of a port and of what a port has scheduled.
 *
 * Part of tame/driver.h. What the VM knows as the port's data is a struct of ours, which has the
 * author's. A port's work outside is done in order, one at a time: so the port stands in the queue
 * of a group of threads, and not each piece of its work. */
#ifndef TAME_DRV_PORT_H
#define TAME_DRV_PORT_H

#include <erl_driver.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "../os.h"
#include "../queue.h"
#include "../thread.h"

/* Where a callback runs. */
enum tame_drv_where {
    TAME_DRV_CPU, /* outside, on one of as many threads as there are CPUs */
    TAME_DRV_IO,  /* outside, on one of TAME_DRV_IO_THREADS threads: it may block */
    TAME_DRV_PORT /* on a scheduler, under the port's lock, as the VM's own callbacks */
};

#define TAME_DRV_IO_THREADS 10

/* What a port may have waiting for a thread. */
#define TAME_DRV_MAX_WAITING 10000

/* A port is busy from so much on, and senders of commands are suspended, until half of it is done. */
#define TAME_DRV_BUSY_AT 64

typedef void (*tame_drv_callback)(ErlDrvData data, void *arg);

/* Frees the arg of a callback that will not run, because the port closes; on any thread. */
typedef void (*tame_drv_drop)(ErlDrvData data, tame_drv_callback callback, void *arg);

struct tame_impl_drv_port;
struct tame_impl_drv_item;

enum tame_impl_drv_ran {
    TAME_IMPL_DRV_ENDED,
    TAME_IMPL_DRV_AGAIN /* it goes on where the item says now */
};

/* What an item is. Either function is called without the lock; the item is freed after `drop`, and
 * after `run` has ended it. */
struct tame_impl_drv_kind {
    enum tame_impl_drv_ran (*run)(struct tame_impl_drv_port *port, struct tame_impl_drv_item *item);
    void (*drop)(struct tame_impl_drv_port *port, struct tame_impl_drv_item *item);
};

/* A piece of a port's work; first member of what a kind has. From driver_alloc; owned by who runs it
 * or by the queue that it stands in. */
struct tame_impl_drv_item {
    struct tame_impl_link link; /* first: an entry of a queue is the item */
    const struct tame_impl_drv_kind *kind;
    enum tame_drv_where where;
    ErlDrvTermData caller; /* who called the callback that scheduled it; 0: nobody */
};

/* The bell of a port, in a list until the VM says that the descriptor is free. */
struct tame_impl_drv_bell {
    struct tame_impl_link link;
    struct tame_impl_bell bell;
};

struct tame_impl_drv_port {
    struct tame_impl_link link; /* first: in the queue of a group */
    ErlDrvPort port;
    ErlDrvTermData term;
    ErlDrvData data;                 /* the author's */
    int references;                  /* atomic: the VM, callbacks in progress, tame_drv_hold */
    struct tame_impl_drv_bell *bell; /* NULL until the first item; set under the port's lock */
    /* Guarded by the library's lock. */
    struct tame_impl_queue work; /* items for outside */
    struct tame_impl_queue back; /* items for the port */
    int running;                 /* one is outside */
    int rung;                    /* the bell, and nobody has heard it */
    int closing;                 /* atomic: a step reads it without the lock */
    int stopped;                 /* `stop` is at work, or is done */
    int fails;                   /* `failure` is why it closes */
    int busy;                    /* what the VM is told, by who has the port's lock too */
    char failure[256];
    /* Under the port's lock. */
    int guarded, flushed;
    const ErlDrvMonitor *fired; /* what process_exit is told of; the VM takes it out after that */
    uint64_t owed_ns;           /* used, and not yet charged: less than a per cent of a timeslice */
    double units_per_ns;        /* of the last job, */
    const void *rate_job;       /* which was this one */
};

/* Threads that do the same kind of work. */
struct tame_impl_drv_group {
    struct tame_impl_queue ports; /* those that have work, and none outside */
    ErlDrvCond *work;             /* signalled for one: a port waits; for all: the library ends */
    uint32_t idle, threads_len, threads_max;
    ErlNifTid *threads; /* threads_max of them */
    int is_cpu;
};

struct tame_impl_drv_library {
    const ErlDrvEntry *entry; /* the author's */
    ErlDrvEntry ours;
    tame_drv_drop drop; /* may be NULL */
    ErlDrvMutex *lock;  /* guards ports and groups */
    ErlDrvCond *quiet;  /* signalled for `stop`: a port has nothing outside any more */
    int ending;         /* guarded by the lock */
    struct tame_impl_drv_group groups[2]; /* TAME_DRV_CPU, TAME_DRV_IO */
    pthread_mutex_t bells_lock;
    struct tame_impl_queue bells;
    ErlDrvTermData atom_data, atom_error, atom_badarg, atom_busy;
};

/* What the thread at hand is doing for a port. */
struct tame_impl_drv_now {
    struct tame_impl_drv_port *port; /* NULL: nothing */
    int outside;
    int item;              /* it runs an item; else a callback of the VM's */
    ErlDrvTermData caller; /* of the item; 0: nobody */
};

/* One for each driver, however many files it is of. */
#define TAME_IMPL_DRV_ONE __attribute__((weak, visibility("hidden")))
TAME_IMPL_DRV_ONE struct tame_impl_drv_library tame_impl_drv_library;
TAME_IMPL_DRV_ONE __thread struct tame_impl_drv_now tame_impl_drv_now;

static inline void tame_impl_drv_keep(struct tame_impl_drv_port *port)
{
    (void)__atomic_fetch_add(&port->references, 1, __ATOMIC_RELAXED);
}

static inline void tame_impl_drv_release(struct tame_impl_drv_port *port)
{
    if (__atomic_sub_fetch(&port->references, 1, __ATOMIC_ACQ_REL) == 0)
        driver_free(port);
}

/* Whether nothing of the port's is outside or on its way back. Under the lock. */
static inline int tame_impl_drv_is_quiet(const struct tame_impl_drv_port *port)
{
    return !port->running && port->work.len == 0 && port->back.len == 0;
}

/* Under the lock. */
static inline void tame_impl_drv_ring(struct tame_impl_drv_port *port)
{
    if (port->rung || port->stopped || port->bell == NULL)
        return;
    port->rung = 1;
    tame_impl_os_bell_ring(&port->bell->bell);
}

/* Makes what the port's work comes back by. Under the port's lock. Returns 0 without memory or a
 * descriptor. */
static inline int tame_impl_drv_bell_open(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_bell *bell;

    if (port->bell != NULL)
        return 1;
    bell = (struct tame_impl_drv_bell *)driver_alloc(sizeof *bell); /* stop_select frees it */
    if (bell == NULL)
        return 0;
    memset(bell, 0, sizeof *bell);
    if (!tame_impl_os_bell_open(&bell->bell)) {
        driver_free(bell);
        return 0;
    }
    (void)pthread_mutex_lock(&library->bells_lock);
    tame_impl_queue_push(&library->bells, &bell->link);
    (void)pthread_mutex_unlock(&library->bells_lock);
    port->bell = bell;
    (void)driver_select(port->port, (ErlDrvEvent)(intptr_t)bell->bell.wait,
                        ERL_DRV_READ | ERL_DRV_USE, 1);
    return 1;
}

/* The VM does not use the descriptor any more. Returns 0 when it is no bell. */
static inline int tame_impl_drv_bell_close(ErlDrvEvent event)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_bell *bell;

    (void)pthread_mutex_lock(&library->bells_lock);
    for (bell = (struct tame_impl_drv_bell *)library->bells.head;
         bell != NULL && (ErlDrvEvent)(intptr_t)bell->bell.wait != event;)
        bell = (struct tame_impl_drv_bell *)bell->link.next;
    if (bell != NULL)
        (void)tame_impl_queue_remove(&library->bells, &bell->link);
    (void)pthread_mutex_unlock(&library->bells_lock);
    if (bell == NULL)
        return 0;
    tame_impl_os_bell_close(&bell->bell);
    driver_free(bell);
    return 1;
}

#endif
