/* drv/commands.h - what a port is asked: by control, answered at once, and large messages by
 * outputv. */
#ifndef TAME_NNG_DRV_COMMANDS_H
#define TAME_NNG_DRV_COMMANDS_H

#include "apart.h"
#include "contexts.h"
#include "moving.h"

/* tame_nng_by_driver.erl has them too. Numbers in the bytes are big-endian; `id' is the caller's
 * word for the call. */
enum tn_command {
    TN_COMMAND_OPEN = 0x4e4e4701, /* protocol */
    TN_COMMAND_CLOSE,             /* id:64 */
    TN_COMMAND_CONTROL,           /* id:64, code:8, bytes: outside */
    TN_COMMAND_RECV,              /* id:64 */
    TN_COMMAND_SEND,              /* id:64, context:32 (0: none), deadline:64, bytes */
    TN_COMMAND_CANCEL,            /* id:64, enum tn_cancel:8 */
    TN_COMMAND_CREDIT,            /* kind:8, messages:32 */
    TN_COMMAND_PASSIVE,
    TN_COMMAND_ACTIVE,
    TN_COMMAND_CONTEXT_OPEN,
    TN_COMMAND_CONTEXT_RECV,  /* id:64, context:32, deadline:64 */
    TN_COMMAND_CONTEXT_CLOSE, /* context:32 */
    TN_COMMAND_CONTEXT_SET    /* context:32, bytes as of TN_SET */
};

#define TN_SEND_HEADER 20

/* ---- replies ---- */

/* A binary of `size' bytes, the VM's; NULL without memory. */
static inline unsigned char *tn_reply_new(char **reply, size_t size)
{
    ErlDrvBinary *binary = driver_alloc_binary((ErlDrvSizeT)size);

    *reply = (char *)binary;
    return binary == NULL ? NULL : (unsigned char *)binary->orig_bytes;
}

static inline ErlDrvSSizeT tn_reply(char **reply, const unsigned char *bytes, size_t size)
{
    unsigned char *to = tn_reply_new(reply, size);

    if (to == NULL)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
    memcpy(to, bytes, size);
    return (ErlDrvSSizeT)size;
}

/* ok, wait for NNG_EAGAIN, or the error. */
static inline ErlDrvSSizeT tn_reply_result(char **reply, int error)
{
    unsigned char bytes[TN_REPLY_MAX] = {TN_REPLY_WAIT};

    return tn_reply(reply, bytes, error == NNG_EAGAIN ? 1 : tn_reply_done(bytes, error));
}

static inline ErlDrvSSizeT tn_reply_value(char **reply, int64_t number)
{
    unsigned char bytes[TN_REPLY_MAX];

    return tn_reply(reply, bytes, tn_reply_number(bytes, (uint64_t)number));
}

/* ---- open, close, control ---- */

/* A socket with its descriptors and its end. Returns nng's error, and then there is nothing. */
static inline int tn_port_open(struct tn_port *port, const struct tn_protocol *protocol,
                               struct tn_drv_end *end)
{
    struct tn_line *in = &port->lines[TN_RECEIVING], *out = &port->lines[TN_SENDING];
    int error = tn_open(&port->socket, protocol, &in->number, &out->number);

    if (error != 0)
        return error;
    memset(end, 0, sizeof *end);
    end->end.reap.run = tn_drv_end_run;
    end->port = port->term;
    error = tn_end_open(&end->end, &port->socket);
    if (error == 0)
        return 0;
    if (in->number >= 0)
        (void)close(in->number);
    if (out->number >= 0)
        (void)close(out->number);
    (void)nng_close(port->socket.nng);
    return error;
}

static inline int tn_command_open(struct tn_port *port, const char *bytes, size_t size)
{
    const struct tn_protocol *protocol;
    struct tn_drv_end *end;
    char name[32];
    int error;

    if (port->socket.protocol != NULL || size >= sizeof name)
        return NNG_EINVAL;
    memcpy(name, bytes, size);
    name[size] = 0;
    protocol = tn_protocol_find(name);
    if (protocol == NULL)
        return NNG_EINVAL;
    end = (struct tn_drv_end *)driver_alloc(sizeof *end); /* the reaper frees it */
    if (end == NULL)
        return NNG_ENOMEM;
    error = tn_port_open(port, protocol, end);
    if (error != 0) {
        port->socket.protocol = NULL;
        port->lines[TN_RECEIVING].number = port->lines[TN_SENDING].number = -1;
        driver_free(end);
        return error;
    }
    port->end = end;
    return 0;
}

static inline int tn_command_close(struct tn_port *port, uint64_t id)
{
    if (port->end == NULL)
        return 0;
    port->end->asked = 1;
    port->end->pid = tame_drv_caller(port->port);
    port->end->id = id;
    tn_port_end(port);
    return NNG_EAGAIN;
}

/* Outside: id:64 and the reply of control.h, which goes to the caller as {Port, {data, Bytes}}. */
static inline ErlDrvSSizeT tn_command_control(struct tn_port *port, const unsigned char *bytes,
                                              size_t size, char **reply)
{
    unsigned char to[8 + TN_REPLY_MAX];

    memcpy(to, bytes, 8);
    return tn_reply(reply, to,
                    8 + tn_control(&port->socket, bytes[8], bytes + 9, size - 9, to + 8));
}

/* ---- messages ---- */

static inline ErlDrvSSizeT tn_command_recv(struct tn_port *port, uint64_t id, char **reply)
{
    struct tn_line *line = &port->lines[TN_RECEIVING];
    unsigned char bytes[9] = {TN_REPLY_WAIT};
    nng_msg *message;
    nng_duration ms;
    int error = NNG_EAGAIN;

    if (!(port->socket.protocol->traits & TN_RECEIVES))
        error = NNG_ENOTSUP;
    else if (port->end == NULL)
        error = NNG_ECLOSED;
    else if (tn_credit_has(&port->credit))
        error = NNG_EINVAL;
    else if (line->first == NULL && __atomic_load_n(&port->copying, __ATOMIC_ACQUIRE) == 0)
        error = tn_receive(&port->socket, &message);
    if (error == NNG_EAGAIN)
        error = tn_ask(&port->socket, TN_RECEIVING, line->number);
    if (error == 0 && nng_msg_len(message) <= TN_SLICE_BYTES) {
        const size_t size = nng_msg_len(message);
        unsigned char *to = tn_reply_new(reply, 1 + size);

        if (to != NULL) {
            to[0] = TN_REPLY_BYTES;
            memcpy(to + 1, nng_msg_body(message), size);
        }
        nng_msg_free(message);
        return to == NULL ? (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL : (ErlDrvSSizeT)(1 + size);
    }
    if (error == 0) {
        tn_deliver(&(struct tn_delivery){
            .port = port, .message = message, .pid = tame_drv_caller(port->port), .id = id});
        return tn_reply(reply, bytes, 1);
    }
    if (error != NNG_EAGAIN)
        return tn_reply_result(reply, error);
    if (!tn_line_wait(port, line, tame_drv_caller(port->port), id, NULL))
        return tn_reply_result(reply, NNG_ENOMEM);
    ms = tn_survey_left_of(&port->socket);
    if (ms >= 0) {
        tn_write64(bytes + 1, (uint64_t)ms + 1);
        return tn_reply(reply, bytes, 9);
    }
    return tn_reply(reply, bytes, 1);
}

/* Takes the message. One that is not patient is sent at once or not at all. */
static inline int tn_command_send(struct tn_port *port, uint64_t id, const unsigned char *header,
                                  nng_msg *message, int patient)
{
    const uint32_t context = (uint32_t)tn_read(header + 8, 4);
    const ErlDrvTermData pid = tame_drv_caller(port->port);

    return context == 0 ? tn_send_first(port, message, pid, id, patient)
                        : tn_drv_context_start(port, context, message,
                                               (int64_t)tn_read(header + 12, 8), pid, id);
}

static inline int tn_command_send_bytes(struct tn_port *port, const unsigned char *bytes,
                                        size_t size)
{
    nng_msg *message;

    if (nng_msg_alloc(&message, size - TN_SEND_HEADER) != 0)
        return NNG_ENOMEM;
    memcpy(nng_msg_body(message), bytes + TN_SEND_HEADER, size - TN_SEND_HEADER);
    return tn_command_send(port, tn_read(bytes, 8), bytes, message, 1);
}

/* Whether the call waits no more: else its message is there, or on its way. */
static inline int tn_command_cancel(struct tn_port *port, uint64_t id, enum tn_cancel cancel)
{
    struct tn_line *line = &port->lines[cancel == TN_CANCEL_NONE ? TN_RECEIVING : TN_SENDING];
    struct tn_waiter *waiter = tn_line_find(line, id);
    struct tn_outside *outside = *tn_outside_find(port, id);

    if (waiter == NULL && outside != NULL)
        outside->cancelled = cancel;
    if (waiter == NULL)
        return outside != NULL && cancel == TN_CANCEL_DROP ? 0 : NNG_EAGAIN;
    tn_line_remove(port, line, waiter);
    if (line->first == NULL && (line != &port->lines[TN_RECEIVING] || !tn_is_wanted(port)))
        tn_line_wake(port, line, 0);
    return 0;
}

static inline int tn_command_credit(struct tn_port *port, enum tn_credit_kind kind, int more)
{
    int passive, error;

    if (!(port->socket.protocol->traits & TN_RECEIVES))
        return NNG_ENOTSUP;
    if (port->end == NULL)
        return NNG_ECLOSED;
    error = tn_ask(&port->socket, TN_RECEIVING, port->lines[TN_RECEIVING].number);
    if (error != NNG_EAGAIN)
        return error;
    if (!tn_credit_give(&port->credit, kind, more, &passive))
        return NNG_EINVAL;
    if (passive)
        tn_deliver(&(struct tn_delivery){.port = port});
    tn_receive_some(port);
    return 0;
}

static inline int64_t tn_command_active(const struct tn_port *port)
{
    return port->credit.left > 0 && port->credit.once ? 1 << 16 : port->credit.left;
}

/* ---- control ---- */

/* How many bytes a command has at least. */
static inline size_t tn_command_bytes(unsigned int command)
{
    switch (command) {
    case TN_COMMAND_CLOSE:
    case TN_COMMAND_RECV:
        return 8;
    case TN_COMMAND_CONTROL:
    case TN_COMMAND_CANCEL:
        return 9;
    case TN_COMMAND_SEND:
    case TN_COMMAND_CONTEXT_RECV:
        return TN_SEND_HEADER;
    case TN_COMMAND_CREDIT:
        return 5;
    case TN_COMMAND_CONTEXT_CLOSE:
    case TN_COMMAND_CONTEXT_SET:
        return 4;
    default:
        return 0;
    }
}

static ErlDrvSSizeT tn_commands(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                                char **reply, ErlDrvSizeT room)
{
    struct tn_port *port = (struct tn_port *)data;
    const unsigned char *bytes = (const unsigned char *)buf;
    uint32_t context;
    uint64_t id;
    int error;

    (void)room;
    if (command < TN_COMMAND_OPEN || command > TN_COMMAND_CONTEXT_SET ||
        len < tn_command_bytes(command) ||
        (port->socket.protocol == NULL) != (command == TN_COMMAND_OPEN))
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    id = len >= 8 ? tn_read(bytes, 8) : 0;
    switch (command) {
    case TN_COMMAND_OPEN:
        return tn_reply_result(reply, tn_command_open(port, buf, len));
    case TN_COMMAND_CLOSE:
        return tn_reply_result(reply, tn_command_close(port, id));
    case TN_COMMAND_CONTROL:
        if (tame_drv_is_dirty(port->port))
            return tn_command_control(port, bytes, len, reply);
        if (!tn_apart_start(port, bytes, len))
            return tame_drv_control(port->port, TAME_DRV_IO, command, buf, len, reply);
        *reply = NULL;
        return 0;
    case TN_COMMAND_RECV:
        return tn_command_recv(port, id, reply);
    case TN_COMMAND_SEND:
        return tn_reply_result(reply, tn_command_send_bytes(port, bytes, len));
    case TN_COMMAND_CANCEL:
        return tn_reply_result(reply, tn_command_cancel(port, id, (enum tn_cancel)bytes[8]));
    case TN_COMMAND_CREDIT:
        return tn_reply_result(reply, tn_command_credit(port, (enum tn_credit_kind)bytes[0],
                                                        (int32_t)tn_read(bytes + 1, 4)));
    case TN_COMMAND_PASSIVE:
        (void)tn_credit_end(&port->credit);
        tn_receive_some(port);
        /* Wait: a message is on its way outside. The caller asks again. */
        return tn_reply_result(
            reply, __atomic_load_n(&port->copying, __ATOMIC_ACQUIRE) > 0 ? NNG_EAGAIN : 0);
    case TN_COMMAND_ACTIVE:
        return tn_reply_value(reply, tn_command_active(port));
    case TN_COMMAND_CONTEXT_OPEN:
        error = tn_drv_context_open(port, tame_drv_caller(port->port), &context);
        return error == 0 ? tn_reply_value(reply, context) : tn_reply_result(reply, error);
    case TN_COMMAND_CONTEXT_RECV:
        return tn_reply_result(reply, tn_drv_context_start(port, (uint32_t)tn_read(bytes + 8, 4),
                                                           NULL, (int64_t)tn_read(bytes + 12, 8),
                                                           tame_drv_caller(port->port), id));
    case TN_COMMAND_CONTEXT_SET:
        return tn_reply_result(
            reply, tn_drv_context_set(port, (uint32_t)tn_read(bytes, 4), bytes + 4, len - 4));
    default:
        tn_drv_context_remove(port, tn_drv_context_find(port, (uint32_t)tn_read(bytes, 4)));
        return tn_reply_result(reply, 0);
    }
}

/* ---- large messages, by reference ---- */

/* On its way from where it was copied to the port. From driver_alloc; the callback's. */
struct tn_sending {
    unsigned char header[TN_SEND_HEADER];
    nng_msg *message; /* NULL: there was no memory */
};

/* Under the port's lock. */
static void tn_sending_arrives(ErlDrvData data, void *arg)
{
    struct tn_port *port = (struct tn_port *)data;
    struct tn_sending *sending = (struct tn_sending *)arg;
    const ErlDrvTermData pid = tame_drv_caller(port->port);
    const uint64_t id = tn_read(sending->header, 8);
    const enum tn_cancel cancelled = tn_outside_back(tn_outside_find(port, id));
    const int wanted = cancelled != TN_CANCEL_DROP && port->socket.protocol != NULL;
    int error = sending->message == NULL ? NNG_ENOMEM : NNG_ECLOSED;

    if (sending->message != NULL && wanted)
        error = tn_command_send(port, id, sending->header, sending->message,
                                cancelled == TN_CANCEL_NONE);
    else if (sending->message != NULL)
        nng_msg_free(sending->message);
    if (error != NNG_EAGAIN && cancelled != TN_CANCEL_DROP)
        tn_tell_done(port->term, pid, id, error);
    driver_free(sending);
}

/* A header as that of TN_COMMAND_SEND, then the message; the result comes as a message. */
static void tn_vector(ErlDrvData data, ErlIOVec *vector)
{
    struct tn_port *port = (struct tn_port *)data;
    size_t skip = TN_SEND_HEADER;
    struct tn_sending *sending;
    unsigned char *to;

    if (vector->size < TN_SEND_HEADER)
        return;
    sending = (struct tn_sending *)driver_alloc(sizeof *sending);
    if (sending == NULL)
        return;
    (void)driver_vec_to_buf(vector, (char *)sending->header, TN_SEND_HEADER);
    if (!tame_drv_is_dirty(port->port)) {
        const uint64_t id = tn_read(sending->header, 8);

        if (!tn_outside_add(port, id)) {
            tn_tell_done(port->term, tame_drv_caller(port->port), id, NNG_ENOMEM);
            driver_free(sending);
            return;
        }
        if (tame_drv_outputv(port->port, TAME_DRV_CPU, vector)) {
            driver_free(sending);
            return;
        }
    }
    if (nng_msg_alloc(&sending->message, vector->size - TN_SEND_HEADER) != 0)
        sending->message = NULL;
    to = sending->message == NULL ? NULL : (unsigned char *)nng_msg_body(sending->message);
    for (int i = 0; to != NULL && i < vector->vsize; i++) {
        const SysIOVec *part = &vector->iov[i];
        const size_t skipped = skip < part->iov_len ? skip : part->iov_len;

        skip -= skipped;
        if (part->iov_len > skipped)
            memcpy(to, (const char *)part->iov_base + skipped, part->iov_len - skipped);
        to += part->iov_len - skipped;
    }
    if (!tame_drv_is_dirty(port->port)) {
        tn_sending_arrives(data, sending);
    } else if (!tame_drv_schedule(port->port, TAME_DRV_PORT, tn_sending_arrives, sending)) {
        if (sending->message != NULL)
            nng_msg_free(sending->message);
        driver_free(sending);
    }
}

#endif
