/* drv/contexts.h - contexts of a port, by number. */
#ifndef TAME_NNG_DRV_CONTEXTS_H
#define TAME_NNG_DRV_CONTEXTS_H

#include "port.h"

struct tn_drv_context {
    struct tn_context context; /* first */
    struct tn_drv_context *next;
    uint32_t id;
    ErlDrvMonitor monitor; /* of who opened it */
    ErlDrvTermData port;
    /* Of an operation: who is told. */
    ErlDrvTermData pid;
    uint64_t operation;
};

/* On a thread of nng's, where the message is copied as well. The port may be gone: then nobody is
 * told. */
static void tn_drv_context_told(struct tn_context *base, int error, nng_msg *message)
{
    const struct tn_drv_context *context = (struct tn_drv_context *)base;
    const ErlDrvTermData port = context->port, pid = context->pid;
    const uint64_t operation = context->operation;

    tn_context_let_go(base);
    if (message != NULL)
        tn_tell_bytes(port, pid, operation, message);
    else
        tn_tell_done(port, pid, operation, error);
    if (message != NULL)
        nng_msg_free(message);
}

static void tn_drv_context_freed(struct tn_context *base)
{
    driver_free(base);
}

static inline int tn_drv_context_open(struct tn_port *port, ErlDrvTermData pid, uint32_t *id)
{
    struct tn_drv_context *context = (struct tn_drv_context *)driver_alloc(sizeof *context);
    int error = NNG_ENOMEM;

    if (port->end == NULL)
        error = NNG_ECLOSED;
    else if (context != NULL) {
        memset(context, 0, sizeof *context);
        context->context.told = tn_drv_context_told;
        context->context.freed = tn_drv_context_freed;
        error = tn_context_open(&context->context, &port->end->end, &port->socket);
    }
    if (error != 0 && context != NULL)
        driver_free(context);
    if (error != 0)
        return error;
    if (driver_monitor_process(port->port, pid, &context->monitor) != 0) {
        tn_context_close_last(&context->context);
        return NNG_ECLOSED;
    }
    context->port = port->term;
    *id = context->id = ++port->context_ids;
    context->next = port->contexts;
    port->contexts = context;
    return 0;
}

static inline struct tn_drv_context **tn_drv_context_find(struct tn_port *port, uint32_t id)
{
    struct tn_drv_context **at = &port->contexts;

    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

static inline void tn_drv_context_remove(struct tn_port *port, struct tn_drv_context **at)
{
    struct tn_drv_context *context = *at;

    if (context == NULL)
        return;
    *at = context->next;
    (void)tame_drv_demonitor(port->port, &context->monitor);
    tn_context_close_last(&context->context);
}

static inline int tn_drv_context_set(struct tn_port *port, uint32_t id, const unsigned char *bytes,
                                     size_t size)
{
    struct tn_drv_context *context = *tn_drv_context_find(port, id);

    return context == NULL ? NNG_ECLOSED : tn_context_set(&context->context, bytes, size);
}

/* Takes the message; NULL: receives. NNG_EAGAIN: the caller is told. */
static inline int tn_drv_context_start(struct tn_port *port, uint32_t id, nng_msg *message,
                                       int64_t deadline, ErlDrvTermData pid, uint64_t operation)
{
    const int trait = message != NULL ? TN_SENDS : TN_RECEIVES;
    struct tn_drv_context *context = *tn_drv_context_find(port, id);
    int error;

    if (context == NULL)
        error = NNG_ECLOSED;
    else if (!(port->socket.protocol->traits & trait))
        error = NNG_ENOTSUP;
    else
        error = tn_context_take(&context->context);
    if (error == 0) {
        context->pid = pid;
        context->operation = operation;
        tn_context_start(&context->context, message, deadline,
                         (int64_t)erl_drv_monotonic_time(ERL_DRV_MSEC));
        return NNG_EAGAIN;
    }
    if (message != NULL)
        nng_msg_free(message);
    return error;
}

#endif
