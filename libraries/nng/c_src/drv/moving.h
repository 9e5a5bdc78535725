/* drv/moving.h - send and receive: at once, or when the descriptor says so.
 *
 * A large message is copied outside; those that come after it go behind it, in their order. */
#ifndef TAME_NNG_DRV_MOVING_H
#define TAME_NNG_DRV_MOVING_H

#include "port.h"

/* ---- messages that come ---- */

/* What is copied and told outside. From driver_alloc; the callback's. */
struct tn_delivery {
    struct tn_port *port;
    nng_msg *message; /* NULL: {nng_passive, Port} */
    int of_owner;
    ErlDrvTermData pid;
    uint64_t id;
};

static inline void tn_delivery_do(const struct tn_delivery *delivery)
{
    const ErlDrvTermData term = delivery->port->term;

    if (delivery->message == NULL)
        tn_tell_passive(term);
    else if (delivery->of_owner)
        tn_tell_owner(term, delivery->message);
    else
        tn_tell_bytes(term, delivery->pid, delivery->id, delivery->message);
    if (delivery->message != NULL)
        nng_msg_free(delivery->message);
}

/* Outside. */
static void tn_delivery_outside(ErlDrvData data, void *arg)
{
    struct tn_delivery *delivery = (struct tn_delivery *)arg;

    (void)data;
    tn_delivery_do(delivery);
    (void)__atomic_sub_fetch(&delivery->port->copying, 1, __ATOMIC_ACQ_REL);
    driver_free(delivery);
}

static inline void tn_deliver(const struct tn_delivery *delivery)
{
    struct tn_port *port = delivery->port;
    struct tn_delivery *outside = NULL;

    if (__atomic_load_n(&port->copying, __ATOMIC_ACQUIRE) > 0 ||
        (delivery->message != NULL && nng_msg_len(delivery->message) > TN_SLICE_BYTES))
        outside = (struct tn_delivery *)driver_alloc(sizeof *outside);
    if (outside != NULL) {
        *outside = *delivery;
        (void)__atomic_add_fetch(&port->copying, 1, __ATOMIC_ACQ_REL);
        if (tame_drv_schedule(port->port, TAME_DRV_CPU, tn_delivery_outside, outside))
            return;
        (void)__atomic_sub_fetch(&port->copying, 1, __ATOMIC_ACQ_REL);
        driver_free(outside);
    }
    tn_delivery_do(delivery);
}

static inline int tn_is_wanted(const struct tn_port *port)
{
    return port->lines[TN_RECEIVING].first != NULL || tn_credit_has(&port->credit);
}

/* One message, or the error that the first who waits gets. Returns 0 when there may be more. */
static inline int tn_receive_one(struct tn_port *port)
{
    struct tn_line *line = &port->lines[TN_RECEIVING];
    struct tn_delivery delivery = {.port = port};
    nng_msg *message;
    const int error = tn_receive(&port->socket, &message);
    int last = 0;

    if (error == NNG_EAGAIN)
        return error;
    if (error != 0) {
        if (line->first == NULL)
            return error; /* no request or survey is out; one may be, later */
        tn_tell_done(port->term, line->first->pid, line->first->id, error);
        tn_line_remove(port, line, line->first);
        return 0;
    }
    delivery.message = message;
    if (line->first != NULL) {
        delivery.pid = line->first->pid;
        delivery.id = line->first->id;
        tn_line_remove(port, line, line->first);
    } else {
        (void)tn_credit_take(&port->credit, &last);
        delivery.of_owner = 1;
    }
    tn_deliver(&delivery);
    if (last)
        tn_deliver(&(struct tn_delivery){.port = port});
    return 0;
}

/* What there is for those who want it, up to a turn; then the VM waits, if somebody wants more. */
static inline void tn_receive_some(struct tn_port *port)
{
    for (int n = 0; n < TN_TURN_MESSAGES && tn_is_wanted(port); n++)
        if (tn_receive_one(port) != 0)
            break;
    tn_line_wake(port, &port->lines[TN_RECEIVING], port->end != NULL && tn_is_wanted(port));
}

/* ---- messages that go ---- */

static inline void tn_send_some(struct tn_port *port)
{
    struct tn_line *line = &port->lines[TN_SENDING];

    for (int n = 0; n < TN_TURN_MESSAGES && line->first != NULL; n++) {
        struct tn_waiter *waiter = line->first;
        const int error = tn_send(&port->socket, waiter->message, line->number);

        if (error == NNG_EAGAIN)
            break;
        if (error == 0)
            waiter->message = NULL;
        tn_tell_done(port->term, waiter->pid, waiter->id, error);
        tn_line_remove(port, line, waiter);
    }
    tn_line_wake(port, line, port->end != NULL && line->first != NULL);
}

/* Takes the message. NNG_EAGAIN: the caller is told later. */
static inline int tn_send_first(struct tn_port *port, nng_msg *message, ErlDrvTermData pid,
                                uint64_t id, int patient)
{
    struct tn_line *line = &port->lines[TN_SENDING];
    int error = NNG_EAGAIN;

    if (!(port->socket.protocol->traits & TN_SENDS))
        error = NNG_ENOTSUP;
    else if (port->end == NULL)
        error = NNG_ECLOSED;
    else if (line->first == NULL)
        error = tn_send(&port->socket, message, line->number);
    if (error == NNG_EAGAIN && !patient)
        error = NNG_ETIMEDOUT;
    if (error == NNG_EAGAIN)
        error = tn_ask(&port->socket, TN_SENDING, line->number);
    if (error == NNG_EAGAIN && !tn_line_wait(port, line, pid, id, message))
        error = NNG_ENOMEM;
    if (error != 0 && error != NNG_EAGAIN)
        nng_msg_free(message);
    return error;
}

/* ---- whose event it is ---- */

static void tn_ready(ErlDrvData data, ErlDrvEvent event)
{
    struct tn_port *port = (struct tn_port *)data;

    if (event == (ErlDrvEvent)(intptr_t)port->lines[TN_RECEIVING].number)
        tn_receive_some(port);
    else if (event == (ErlDrvEvent)(intptr_t)port->lines[TN_SENDING].number)
        tn_send_some(port);
}

#endif
