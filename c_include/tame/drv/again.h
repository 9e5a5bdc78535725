/* tame/drv/again.h - control and outputv that schedule themselves: the same function, called anew
 * with the same arguments, outside.
 *
 * Part of tame/driver.h. The VM's arguments last for one call, so they are kept: the bytes of a
 * control copied, the binaries of an I/O vector by a reference. */
#ifndef TAME_DRV_AGAIN_H
#define TAME_DRV_AGAIN_H

#include "schedule.h"

/* ---- replies ---- */

/* {Port, {Tag, What}} to `to`, from any thread that works for the port. */
static inline void tame_impl_drv_reply(const struct tame_impl_drv_port *port, ErlDrvTermData to,
                                       ErlDrvTermData tag, const ErlDrvTermData *what, int len)
{
    ErlDrvTermData reply[4 + 4 + 4] = {ERL_DRV_PORT, port->term, ERL_DRV_ATOM, tag};

    memcpy(&reply[4], what, (size_t)len * sizeof *what);
    reply[4 + len] = ERL_DRV_TUPLE;
    reply[5 + len] = 2;
    reply[6 + len] = ERL_DRV_TUPLE;
    reply[7 + len] = 2;
    (void)erl_drv_send_term(port->term, to, reply, 8 + len);
}

static inline void tame_impl_drv_reply_error(const struct tame_impl_drv_port *port,
                                             ErlDrvTermData to, ErlDrvTermData reason)
{
    const ErlDrvTermData atom[] = {ERL_DRV_ATOM, reason};

    tame_impl_drv_reply(port, to, tame_impl_drv_library.atom_error, atom, 2);
}

/* ---- control ---- */

/* As much as the VM gives for a reply. */
#define TAME_IMPL_DRV_REPLY_BYTES 64

struct tame_impl_drv_control {
    struct tame_impl_drv_item item;
    unsigned int command;
    int binary; /* what control returns is an ErlDrvBinary */
    ErlDrvSizeT len;
    char bytes[];
};

static inline void tame_impl_drv_control_reply(const struct tame_impl_drv_port *port,
                                               const struct tame_impl_drv_control *it, char *reply,
                                               const char *buffer, ErlDrvSSizeT len)
{
    const struct tame_impl_drv_library *library = &tame_impl_drv_library;
    ErlDrvBinary *binary = it->binary && reply != buffer ? (ErlDrvBinary *)reply : NULL;

    if (len < 0) {
        tame_impl_drv_reply_error(port, it->item.caller, library->atom_badarg);
    } else if (binary != NULL) {
        const ErlDrvTermData bytes[] = {ERL_DRV_BINARY, (ErlDrvTermData)binary, (ErlDrvTermData)len,
                                        0};

        tame_impl_drv_reply(port, it->item.caller, library->atom_data, bytes, 4);
    } else {
        const ErlDrvTermData bytes[] = {ERL_DRV_BUF2BINARY,
                                        (ErlDrvTermData)(reply == NULL ? "" : reply),
                                        (ErlDrvTermData)(reply == NULL ? 0 : len)};

        tame_impl_drv_reply(port, it->item.caller, library->atom_data, bytes, 3);
    }
    if (binary != NULL)
        driver_free_binary(binary); /* the message has a reference of its own */
    else if (reply != buffer && reply != NULL)
        driver_free(reply);
}

static inline enum tame_impl_drv_ran tame_impl_drv_control_run(struct tame_impl_drv_port *port,
                                                               struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_control *it = (struct tame_impl_drv_control *)item;
    char buffer[TAME_IMPL_DRV_REPLY_BYTES];
    char *reply = buffer;
    const ErlDrvSSizeT len = tame_impl_drv_library.entry->control(
        port->data, it->command, it->bytes, it->len, &reply, sizeof buffer);

    tame_impl_drv_control_reply(port, it, reply, buffer, len);
    return TAME_IMPL_DRV_ENDED;
}

/* The port closes; who waits for a reply sees that. */
static inline void tame_impl_drv_drop_nothing(struct tame_impl_drv_port *port,
                                              struct tame_impl_drv_item *item)
{
    (void)port;
    (void)item;
}

static const struct tame_impl_drv_kind tame_impl_drv_control = {tame_impl_drv_control_run,
                                                                tame_impl_drv_drop_nothing};

/* From `control`, which returns what this does: port_control/3 gives nothing. `control` is called
 * once more, outside, with a copy of the bytes, and what it returns there goes to the caller as
 * {Port, {data, Bytes}}; an error of its as {Port, {error, badarg}}. Where the port does not take it:
 * {Port, {error, busy}}. */
static inline ErlDrvSSizeT tame_drv_control(ErlDrvPort port, enum tame_drv_where where,
                                            unsigned int command, const char *bytes,
                                            ErlDrvSizeT len, char **reply)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);
    struct tame_impl_drv_control *it;

    if (here == NULL)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
    *reply = NULL;
    it = (struct tame_impl_drv_control *)tame_impl_drv_item_new(sizeof *it + len,
                                                                &tame_impl_drv_control, where);
    if (it != NULL) {
        it->command = command;
        it->binary =
            !tame_impl_drv_now.outside && (get_port_flags(port) & PORT_CONTROL_FLAG_BINARY) != 0;
        it->len = len;
        memcpy(it->bytes, bytes, len);
        if (tame_impl_drv_push(here, &it->item))
            return 0;
        driver_free(it);
    }
    tame_impl_drv_reply_error(here, tame_drv_caller(port), tame_impl_drv_library.atom_busy);
    return 0;
}

/* ---- outputv ---- */

struct tame_impl_drv_outputv {
    struct tame_impl_drv_item item;
    ErlIOVec vector; /* its arrays follow; each binary is a reference of ours */
};

static inline void tame_impl_drv_outputv_free(const struct tame_impl_drv_outputv *it)
{
    for (int i = 0; i < it->vector.vsize; i++)
        if (it->vector.binv[i] != NULL)
            driver_free_binary(it->vector.binv[i]);
}

static inline enum tame_impl_drv_ran tame_impl_drv_outputv_run(struct tame_impl_drv_port *port,
                                                               struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_outputv *it = (struct tame_impl_drv_outputv *)item;
    ErlIOVec vector = it->vector; /* the author's to change */

    tame_impl_drv_library.entry->outputv(port->data, &vector);
    tame_impl_drv_outputv_free(it);
    return TAME_IMPL_DRV_ENDED;
}

static inline void tame_impl_drv_outputv_drop(struct tame_impl_drv_port *port,
                                              struct tame_impl_drv_item *item)
{
    (void)port;
    tame_impl_drv_outputv_free((struct tame_impl_drv_outputv *)item);
}

static const struct tame_impl_drv_kind tame_impl_drv_outputv = {tame_impl_drv_outputv_run,
                                                                tame_impl_drv_outputv_drop};

/* Bytes that lie in no binary last for the call alone. Returns 0 without memory. */
static inline int tame_impl_drv_outputv_copy(struct tame_impl_drv_outputv *it,
                                             const ErlIOVec *vector)
{
    it->vector.size = vector->size;
    it->vector.vsize = vector->vsize;
    it->vector.iov = (SysIOVec *)(it + 1);
    it->vector.binv = (ErlDrvBinary **)(it->vector.iov + vector->vsize);
    for (int i = 0; i < vector->vsize; i++) {
        const SysIOVec *from = &vector->iov[i];
        ErlDrvBinary *binary = vector->binv == NULL ? NULL : vector->binv[i];

        it->vector.iov[i] = *from;
        if (binary != NULL) {
            driver_binary_inc_refc(binary);
        } else if (from->iov_len > 0) {
            binary = driver_alloc_binary(from->iov_len);
            if (binary == NULL)
                return 0;
            memcpy(binary->orig_bytes, from->iov_base, from->iov_len);
            it->vector.iov[i].iov_base = binary->orig_bytes;
        }
        it->vector.binv[i] = binary;
    }
    return 1;
}

/* From `outputv`, which is called once more, outside, with the same vector; nothing is copied. What
 * it has to say it sends by itself (tame_drv_output). Returns as tame_drv_schedule. */
static inline int tame_drv_outputv(ErlDrvPort port, enum tame_drv_where where,
                                   const ErlIOVec *vector)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);
    struct tame_impl_drv_outputv *it;
    const size_t arrays = (size_t)vector->vsize * (sizeof *vector->iov + sizeof *vector->binv);

    if (here == NULL)
        return 0;
    it = (struct tame_impl_drv_outputv *)tame_impl_drv_item_new(sizeof *it + arrays,
                                                                &tame_impl_drv_outputv, where);
    if (it == NULL)
        return 0;
    if (tame_impl_drv_outputv_copy(it, vector) && tame_impl_drv_push(here, &it->item))
        return 1;
    tame_impl_drv_outputv_free(it);
    driver_free(it);
    return 0;
}

#endif
