/* drv/apart.h - what takes as long as a peer or a name server likes: on a thread of its own. A port's
 * work outside is done in order, so a dial that waits would hold up messages and options of the same port.
 *
 * The thread knows nng's socket and not the port: closing the socket ends what it does, be it after the
 * port's end or the driver's. Our code stays mapped (socket.h). */
#ifndef TAME_NNG_DRV_APART_H
#define TAME_NNG_DRV_APART_H

#include "port.h"

/* At once, of all ports. What comes then is done in order. */
#define TN_APART_MAX 64

/* id:64, code:8 and an address, or an end point. */
#define TN_APART_BYTES (9 + NNG_MAXADDRLEN)

/* From driver_alloc; the thread's. */
struct tn_apart {
    struct tn_socket socket; /* a copy: what is done here counts nothing */
    ErlDrvTermData port, pid;
    size_t size;
    unsigned char bytes[TN_APART_BYTES];
};

static int tn_apart_threads; /* atomic */

/* {Port, {data, <<Id:64, Reply>>}}, as tame_drv_control has it. The port may be gone. */
static void *tn_apart_run(void *arg)
{
    struct tn_apart *apart = (struct tn_apart *)arg;
    unsigned char reply[8 + TN_REPLY_MAX];
    const size_t size = 8 + tn_control(&apart->socket, apart->bytes[8], apart->bytes + 9,
                                       apart->size - 9, reply + 8);
    ErlDrvTermData term[] = {ERL_DRV_PORT,
                             apart->port,
                             ERL_DRV_ATOM,
                             tn_atom_data,
                             ERL_DRV_BUF2BINARY,
                             (ErlDrvTermData)reply,
                             (ErlDrvTermData)size,
                             ERL_DRV_TUPLE,
                             2,
                             ERL_DRV_TUPLE,
                             2};

    memcpy(reply, apart->bytes, 8);
    (void)erl_drv_send_term(apart->port, apart->pid, term, (int)(sizeof term / sizeof term[0]));
    driver_free(apart);
    (void)__atomic_sub_fetch(&tn_apart_threads, 1, __ATOMIC_ACQ_REL);
    return NULL;
}

/* Whether a control is answered by a thread of its own; under the port's lock. */
static inline int tn_apart_start(struct tn_port *port, const unsigned char *bytes, size_t size)
{
    const unsigned code = bytes[8];
    struct tn_apart *apart;

    if ((code != TN_LISTEN && code != TN_DIAL_WAIT && code != TN_HANG_UP) || size > TN_APART_BYTES)
        return 0;
    apart = (struct tn_apart *)driver_alloc(sizeof *apart);
    if (apart == NULL)
        return 0;
    apart->socket = port->socket;
    apart->port = port->term;
    apart->pid = tame_drv_caller(port->port);
    apart->size = size;
    memcpy(apart->bytes, bytes, size);
    if (__atomic_add_fetch(&tn_apart_threads, 1, __ATOMIC_ACQ_REL) <= TN_APART_MAX &&
        tn_thread(tn_apart_run, apart) == 0)
        return 1;
    (void)__atomic_sub_fetch(&tn_apart_threads, 1, __ATOMIC_ACQ_REL);
    driver_free(apart);
    return 0;
}

#endif
