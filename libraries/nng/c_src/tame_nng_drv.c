/* tame_nng_drv.c - nng as a port driver on tame/driver.h: the table, and the life of a port. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <tame/driver.h>

#include "drv/commands.h"

static int init(void)
{
    tn_atoms_open();
    return tn_library_open() != 0 || tn_reaper_open() != 0 ? -1 : 0;
}

static void finish(void)
{
    tn_reaper_close();
}

static ErlDrvData start(ErlDrvPort id, char *command)
{
    struct tn_port *port = (struct tn_port *)driver_alloc(sizeof *port); /* the port's until stop */

    (void)command;
    if (port == NULL)
        return ERL_DRV_ERROR_GENERAL;
    memset(port, 0, sizeof *port);
    port->port = id;
    port->term = driver_mk_port(id);
    port->lines[TN_RECEIVING].number = port->lines[TN_SENDING].number = -1;
    set_port_control_flags(id, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

/* Something is outside: what waits in nng ends when its socket is closed. */
static void flush(ErlDrvData data)
{
    tn_port_end((struct tn_port *)data);
}

static void stop(ErlDrvData data)
{
    struct tn_port *port = (struct tn_port *)data;

    tn_port_end(port);
    while (port->contexts != NULL)
        tn_drv_context_remove(port, &port->contexts);
    while (port->outside != NULL)
        (void)tn_outside_back(&port->outside);
    for (int direction = TN_RECEIVING; direction <= TN_SENDING; direction++) {
        const struct tn_line *line = &port->lines[direction];

        if (line->used)
            (void)driver_select(port->port, (ErlDrvEvent)(intptr_t)line->number,
                                ERL_DRV_READ | ERL_DRV_USE, 0);
        else if (line->number >= 0)
            (void)close(line->number);
    }
    driver_free(port);
}

/* The VM does not use a descriptor any more. */
static void stop_select(ErlDrvEvent event, void *reserved)
{
    (void)reserved;
    (void)close((int)(intptr_t)event);
}

/* Who waited, or opened a context, has died. */
static void process_exit(ErlDrvData data, ErlDrvMonitor *monitor)
{
    struct tn_port *port = (struct tn_port *)data;
    struct tn_drv_context **context = &port->contexts;

    for (int direction = TN_RECEIVING; direction <= TN_SENDING; direction++) {
        struct tn_waiter *waiter = port->lines[direction].first;

        while (waiter != NULL && driver_compare_monitors(&waiter->monitor, monitor) != 0)
            waiter = waiter->next;
        if (waiter != NULL)
            (void)tn_command_cancel(port, waiter->id, direction);
    }
    while (*context != NULL && driver_compare_monitors(&(*context)->monitor, monitor) != 0)
        context = &(*context)->next;
    tn_drv_context_remove(port, context);
}

static ErlDrvEntry entry = {
    .init = init,
    .start = start,
    .flush = flush,
    .stop = stop,
    .finish = finish,
    .control = tn_commands,
    .outputv = tn_vector,
    .ready_input = tn_ready,
    .stop_select = stop_select,
    .process_exit = process_exit,
    .driver_name = (char *)"tame_nng_drv",
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING,
};

/* What was not called because the port closes. */
static void drop(ErlDrvData data, tame_drv_callback callback, void *arg)
{
    (void)data;
    if (callback == tn_delivery_outside && ((struct tn_delivery *)arg)->message != NULL)
        nng_msg_free(((struct tn_delivery *)arg)->message);
    if (callback == tn_sending_arrives && ((struct tn_sending *)arg)->message != NULL)
        nng_msg_free(((struct tn_sending *)arg)->message);
    driver_free(arg);
}

TAME_DRIVER_INIT(tame_nng_drv, entry, drop)
