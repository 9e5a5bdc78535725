/* As much of erl_driver.h as a driver on tame/driver.h needs to be called from plain threads, so that
 * sanitizers see its threads and locks without a VM around them. Any thread may be a scheduler of any
 * port; a port's lock is a mutex. For one file per program, before tame/driver.h.
 *
 * As in the VM: a port that is closed is flushed, and stops when its queue is empty; one that is
 * killed or that fails stops at once, within the callback where that happens; a descriptor that is
 * not selected any more is given back by stop_select, within driver_select or later. */
#ifndef TEST_FAKE_DRIVER_H
#define TEST_FAKE_DRIVER_H

#include <erl_driver.h>
#include <erl_nif.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "fake_threads.h"

static ErlDrvEntry *fake_entry;
static int fake_replies; /* atomic: terms that were sent */

struct _erl_drv_port {
    pthread_mutex_t lock; /* guards what follows, and is the port's lock */
    ErlDrvData data;
    int event;                /* selected; -1 */
    int given_up;             /* a descriptor whose stop_select comes later; -1 */
    int stops_later;          /* what this port's stop_select does */
    unsigned queued;          /* bytes of the driver queue */
    int closing, stops, busy; /* stops: stop has been called, or is being */
    int stopped;              /* atomic: it has been */
};

/* ---- memory, locks -------------------------------------------------------------------------------- */

void *driver_alloc(ErlDrvSizeT size)
{
    return malloc(size);
}

void driver_free(void *memory)
{
    free(memory);
}

/* Behind a count of references. */
union fake_binary {
    int references;
    long double aligned;
};

ErlDrvBinary *driver_alloc_binary(ErlDrvSizeT size)
{
    union fake_binary *head = malloc(sizeof *head + sizeof(ErlDrvBinary) + size);
    ErlDrvBinary *binary = (ErlDrvBinary *)(head + 1);

    if (head == NULL)
        abort();
    head->references = 1;
    binary->orig_size = (ErlDrvSInt)size;
    return binary;
}

ErlDrvSInt driver_binary_inc_refc(ErlDrvBinary *binary)
{
    return __atomic_add_fetch(&((union fake_binary *)binary)[-1].references, 1, __ATOMIC_SEQ_CST);
}

void driver_free_binary(ErlDrvBinary *binary)
{
    union fake_binary *head = (union fake_binary *)binary - 1;

    if (__atomic_sub_fetch(&head->references, 1, __ATOMIC_SEQ_CST) == 0)
        free(head);
}

FAKE_LOCKS(erl_drv, ErlDrvMutex, ErlDrvCond)

/* ---- what a driver asks and says ------------------------------------------------------------------ */

void driver_system_info(ErlDrvSysInfo *info, size_t size)
{
    memset(info, 0, size);
    info->scheduler_threads = 4;
}

ErlDrvTermData driver_mk_atom(char *name)
{
    return (ErlDrvTermData)name;
}

ErlDrvTermData driver_mk_port(ErlDrvPort port)
{
    return (ErlDrvTermData)port;
}

ErlDrvTermData driver_caller(ErlDrvPort port)
{
    return (ErlDrvTermData)port + 1;
}

int get_port_flags(ErlDrvPort port)
{
    (void)port;
    return 0;
}

void set_busy_port(ErlDrvPort port, int busy)
{
    port->busy = busy;
}

int erl_drv_consume_timeslice(ErlDrvPort port, int percent)
{
    (void)port;
    (void)percent;
    return 0;
}

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)env;
    (void)percent;
    return 0;
}

int erl_drv_output_term(ErlDrvTermData port, ErlDrvTermData *data, int len)
{
    (void)port;
    (void)data;
    (void)len;
    __atomic_add_fetch(&fake_replies, 1, __ATOMIC_SEQ_CST);
    return 1;
}

int erl_drv_send_term(ErlDrvTermData port, ErlDrvTermData to, ErlDrvTermData *data, int len)
{
    (void)to;
    return erl_drv_output_term(port, data, len);
}

int driver_enq(ErlDrvPort port, char *bytes, ErlDrvSizeT len)
{
    (void)bytes;
    port->queued += (unsigned)len;
    return 0;
}

ErlDrvSizeT driver_deq(ErlDrvPort port, ErlDrvSizeT size)
{
    port->queued -= (unsigned)size;
    return port->queued;
}

int driver_select(ErlDrvPort port, ErlDrvEvent event, int mode, int on)
{
    (void)mode;
    port->event = on ? (int)(intptr_t)event : -1;
    if (!on && port->stops_later)
        port->given_up = (int)(intptr_t)event;
    else if (!on)
        fake_entry->stop_select(event, NULL);
    return 0;
}

/* ---- ports ---------------------------------------------------------------------------------------- */

/* Under the lock. */
static void fake_stop(ErlDrvPort port)
{
    if (port->stops)
        return;
    port->stops = 1;
    fake_entry->stop(port->data);
}

int driver_failure_atom(ErlDrvPort port, char *reason)
{
    (void)reason;
    fake_stop(port);
    return 0;
}

/* After each callback. Unlocks. */
static void fake_leave(ErlDrvPort port)
{
    int given_up;

    if (port->closing && port->queued == 0)
        fake_stop(port);
    given_up = port->given_up;
    port->given_up = -1;
    if (port->stops)
        __atomic_store_n(&port->stopped, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&port->lock);
    if (given_up >= 0)
        fake_entry->stop_select((ErlDrvEvent)(intptr_t)given_up, NULL);
}

/* The caller's, until fake_free. */
static ErlDrvPort fake_open(int stops_later)
{
    ErlDrvPort port = calloc(1, sizeof *port);

    if (port == NULL)
        abort();
    pthread_mutex_init(&port->lock, NULL);
    port->event = port->given_up = -1;
    port->stops_later = stops_later;
    pthread_mutex_lock(&port->lock);
    port->data = fake_entry->start(port, (char *)"");
    fake_leave(port);
    return port;
}

static void fake_free(ErlDrvPort port)
{
    pthread_mutex_destroy(&port->lock);
    free(port);
}

static int fake_has_stopped(ErlDrvPort port)
{
    return __atomic_load_n(&port->stopped, __ATOMIC_SEQ_CST);
}

/* Whether the port still took it. */
static int fake_control(ErlDrvPort port, unsigned command, char *bytes, ErlDrvSizeT len)
{
    char room[64], *reply = room;
    int takes;

    pthread_mutex_lock(&port->lock);
    takes = !port->closing && !port->stops;
    if (takes)
        (void)fake_entry->control(port->data, command, bytes, len, &reply, sizeof room);
    fake_leave(port);
    return takes;
}

/* Looks whether the port's descriptor is ready, for a millisecond. */
static void fake_poll(ErlDrvPort port)
{
    struct pollfd look = {.events = POLLIN};

    pthread_mutex_lock(&port->lock);
    look.fd = port->event;
    pthread_mutex_unlock(&port->lock);
    /* It may be closed meanwhile, or another's: as in the VM, it is asked again before it is used. */
    if (poll(&look, 1, 1) <= 0)
        return;
    pthread_mutex_lock(&port->lock);
    if (!port->stops && port->event == look.fd)
        fake_entry->ready_input(port->data, (ErlDrvEvent)(intptr_t)look.fd);
    fake_leave(port);
}

static void fake_close(ErlDrvPort port)
{
    pthread_mutex_lock(&port->lock);
    if (!port->stops) {
        port->closing = 1;
        if (port->queued > 0)
            fake_entry->flush(port->data);
    }
    fake_leave(port);
}

static void fake_kill(ErlDrvPort port)
{
    pthread_mutex_lock(&port->lock);
    fake_stop(port);
    fake_leave(port);
}

#endif
