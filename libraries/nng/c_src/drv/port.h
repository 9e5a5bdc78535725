/* drv/port.h - a socket as a port: who waits for it, and what they are told.
 *
 * All here runs under the port's lock, but where it says otherwise. The VM looks at a descriptor
 * only while somebody waits: it is readable for as long as nng has something. */
#ifndef TAME_NNG_DRV_PORT_H
#define TAME_NNG_DRV_PORT_H

#include <tame/driver.h>

#include "../control.h"
#include "../credit.h"
#include "../leaving.h"

/* A call that waits. From driver_alloc; the line's. */
struct tn_waiter {
    struct tn_waiter *next;
    ErlDrvTermData pid;
    uint64_t id;      /* the caller's word for the call */
    nng_msg *message; /* to send, the waiter's; NULL: it receives */
    ErlDrvMonitor monitor;
};

struct tn_line {
    struct tn_waiter *first, *last;
    int number; /* the descriptor; -1: the protocol has not this direction */
    int used;   /* the VM knows it, and says by stop_select when it does no more */
    int on;     /* the VM waits for it */
};

/* What becomes of a call that waits no more. */
enum tn_cancel {
    TN_CANCEL_NONE, /* of a command: it is a receive */
    TN_CANCEL_TRY,  /* a send: at once when its message has been copied, or not at all */
    TN_CANCEL_DROP  /* a send: not at all, and nobody is told */
};

/* A send whose message is copied outside. From driver_alloc; the port's until it comes back. */
struct tn_outside {
    struct tn_outside *next;
    uint64_t id;
    enum tn_cancel cancelled;
};

/* As nif/handle.h has it: what is left to do, made when the socket is. */
struct tn_drv_end {
    struct tn_end end; /* first */
    int asked;
    ErlDrvTermData port, pid;
    uint64_t id;
};

struct tn_drv_context;

struct tn_port {
    ErlDrvPort port;
    ErlDrvTermData term;
    struct tn_socket socket;
    struct tn_drv_end *end; /* NULL: not open yet, or given to the reaper */
    struct tn_line lines[2];
    struct tn_credit credit;
    int copying; /* atomic: messages that are on their way outside; later ones go behind them */
    struct tn_outside *outside;
    struct tn_drv_context *contexts;
    uint32_t context_ids;
};

static ErlDrvTermData tn_tag, tn_atom_ok, tn_atom_error, tn_atom_closed, tn_atom_nng,
    tn_atom_passive, tn_atom_port, tn_atom_data;

static inline void tn_atoms_open(void)
{
    tn_tag = driver_mk_atom((char *)"tame_nng");
    tn_atom_ok = driver_mk_atom((char *)"ok");
    tn_atom_error = driver_mk_atom((char *)"error");
    tn_atom_closed = driver_mk_atom((char *)"closed");
    tn_atom_nng = driver_mk_atom((char *)"nng");
    tn_atom_port = driver_mk_atom((char *)"tame_nng_port");
    tn_atom_passive = driver_mk_atom((char *)"nng_passive");
    tn_atom_data = driver_mk_atom((char *)"data");
}

/* ---- what a caller is told, on any thread ---- */

/* {tame_nng, Port, Id, Result}; `result' is at most 8 words. */
static inline void tn_tell(ErlDrvTermData port, ErlDrvTermData pid, uint64_t id,
                           const ErlDrvTermData *result, int len)
{
    ErlDrvUInt64 number = id; /* read while the term is made */
    ErlDrvTermData term[16] = {ERL_DRV_ATOM, tn_tag,         ERL_DRV_PORT,
                               port,         ERL_DRV_UINT64, (ErlDrvTermData)&number};

    memcpy(&term[6], result, (size_t)len * sizeof *result);
    term[6 + len] = ERL_DRV_TUPLE;
    term[7 + len] = 4;
    (void)erl_drv_send_term(port, pid, term, 8 + len);
}

/* ok, or {error, Name}. */
static inline void tn_tell_done(ErlDrvTermData port, ErlDrvTermData pid, uint64_t id, int error)
{
    const ErlDrvTermData ok[] = {ERL_DRV_ATOM, tn_atom_ok};
    const ErlDrvTermData failed[] = {ERL_DRV_ATOM,  tn_atom_error,
                                     ERL_DRV_ATOM,  driver_mk_atom((char *)tn_error_name(error)),
                                     ERL_DRV_TUPLE, 2};

    if (error == 0)
        tn_tell(port, pid, id, ok, 2);
    else
        tn_tell(port, pid, id, failed, 6);
}

/* {ok, Bytes}, with a copy of the message. */
static inline void tn_tell_bytes(ErlDrvTermData port, ErlDrvTermData pid, uint64_t id,
                                 nng_msg *message)
{
    const ErlDrvTermData bytes[] = {ERL_DRV_ATOM,
                                    tn_atom_ok,
                                    ERL_DRV_BUF2BINARY,
                                    (ErlDrvTermData)nng_msg_body(message),
                                    (ErlDrvTermData)nng_msg_len(message),
                                    ERL_DRV_TUPLE,
                                    2};

    tn_tell(port, pid, id, bytes, 7);
}

/* {nng, {tame_nng_port, Port}, Bytes} to the owner. */
static inline void tn_tell_owner(ErlDrvTermData port, nng_msg *message)
{
    ErlDrvTermData term[] = {ERL_DRV_ATOM,
                             tn_atom_nng,
                             ERL_DRV_ATOM,
                             tn_atom_port,
                             ERL_DRV_PORT,
                             port,
                             ERL_DRV_TUPLE,
                             2,
                             ERL_DRV_BUF2BINARY,
                             (ErlDrvTermData)nng_msg_body(message),
                             (ErlDrvTermData)nng_msg_len(message),
                             ERL_DRV_TUPLE,
                             3};

    (void)erl_drv_output_term(port, term, 13);
}

static inline void tn_tell_passive(ErlDrvTermData port)
{
    ErlDrvTermData term[] = {ERL_DRV_ATOM,  tn_atom_passive,
                             ERL_DRV_ATOM,  tn_atom_port,
                             ERL_DRV_PORT,  port,
                             ERL_DRV_TUPLE, 2,
                             ERL_DRV_TUPLE, 2};

    (void)erl_drv_output_term(port, term, 10);
}

/* ---- lines ---- */

static inline void tn_line_wake(struct tn_port *port, struct tn_line *line, int on)
{
    const int flags = ERL_DRV_READ | (line->used ? 0 : ERL_DRV_USE);

    if (line->number < 0 || line->on == on)
        return;
    (void)driver_select(port->port, (ErlDrvEvent)(intptr_t)line->number, flags, on);
    line->used = 1;
    line->on = on;
}

/* Owns the message from here on. Returns 0 without memory or a caller that lives. */
static inline int tn_line_wait(struct tn_port *port, struct tn_line *line, ErlDrvTermData pid,
                               uint64_t id, nng_msg *message)
{
    struct tn_waiter *waiter = (struct tn_waiter *)driver_alloc(sizeof *waiter);

    if (waiter == NULL)
        return 0;
    if (driver_monitor_process(port->port, pid, &waiter->monitor) != 0) {
        driver_free(waiter);
        return 0;
    }
    waiter->next = NULL;
    waiter->pid = pid;
    waiter->id = id;
    waiter->message = message;
    if (line->last == NULL)
        line->first = waiter;
    else
        line->last->next = waiter;
    line->last = waiter;
    tn_line_wake(port, line, 1);
    return 1;
}

/* Out of the line and freed; its message, if it has one still, too. */
static inline void tn_line_remove(struct tn_port *port, struct tn_line *line,
                                  struct tn_waiter *waiter)
{
    struct tn_waiter **at = &line->first, *before = NULL;

    while (*at != waiter) {
        before = *at;
        at = &before->next;
    }
    *at = waiter->next;
    if (line->last == waiter)
        line->last = before;
    (void)tame_drv_demonitor(port->port, &waiter->monitor);
    if (waiter->message != NULL)
        nng_msg_free(waiter->message);
    driver_free(waiter);
}

static inline struct tn_waiter *tn_line_find(const struct tn_line *line, uint64_t id)
{
    struct tn_waiter *waiter = line->first;

    while (waiter != NULL && waiter->id != id)
        waiter = waiter->next;
    return waiter;
}

static inline struct tn_outside **tn_outside_find(struct tn_port *port, uint64_t id)
{
    struct tn_outside **at = &port->outside;

    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    return at;
}

/* 0 without memory. */
static inline int tn_outside_add(struct tn_port *port, uint64_t id)
{
    struct tn_outside *outside = (struct tn_outside *)driver_alloc(sizeof *outside);

    if (outside == NULL)
        return 0;
    outside->next = port->outside;
    outside->id = id;
    outside->cancelled = TN_CANCEL_NONE;
    port->outside = outside;
    return 1;
}

/* Back, and freed. What was said of it meanwhile. */
static inline enum tn_cancel tn_outside_back(struct tn_outside **at)
{
    struct tn_outside *outside = *at;
    const enum tn_cancel cancelled = outside == NULL ? TN_CANCEL_DROP : outside->cancelled;

    if (outside != NULL) {
        *at = outside->next;
        driver_free(outside);
    }
    return cancelled;
}

/* ---- the end ---- */

/* On the reaper's thread. */
static inline void tn_drv_end_run(struct tn_reap *reap)
{
    struct tn_drv_end *end = (struct tn_drv_end *)reap;
    const ErlDrvTermData closed[] = {ERL_DRV_ATOM, tn_atom_closed};

    tn_end_socket(&end->end);
    if (end->asked)
        tn_tell(end->port, end->pid, end->id, closed, 2);
    driver_free(end);
}

/* nng's socket is closed, soon; who waits is told. Any number of times. */
static inline void tn_port_end(struct tn_port *port)
{
    struct tn_drv_end *end = port->end;

    if (end == NULL)
        return;
    port->end = NULL;
    (void)tn_credit_end(&port->credit);
    for (int direction = TN_RECEIVING; direction <= TN_SENDING; direction++) {
        struct tn_line *line = &port->lines[direction];

        tn_line_wake(port, line, 0);
        while (line->first != NULL) {
            tn_tell_done(port->term, line->first->pid, line->first->id, NNG_ECLOSED);
            tn_line_remove(port, line, line->first);
        }
    }
    tn_reaper_take(&end->end.reap);
}

#endif
