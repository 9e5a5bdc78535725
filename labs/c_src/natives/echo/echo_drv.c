/* The latency lab's port driver: four ways through a driver, one echo each.
 *
 *   call      erlang:port_call/3: the VM encodes and decodes the term by itself
 *   control   erlang:port_control/3, command ECHO_NOW: bytes in, bytes out
 *   outputv   port_command/2: an I/O vector in, a message {Port, {data, Data}} out, large
 *             binaries passed by reference in both directions
 *   async     erlang:port_control/3, command ECHO_ASYNC: copied, handed to an async thread by
 *             driver_async, sent back as a message from ready_async
 *
 * The driver keeps no state between calls, so nothing of a call can leak into the next. */
#include <erl_driver.h>
#include <string.h>

enum { ECHO_NOW = 0, ECHO_ASYNC = 1 };

/* The largest payload taken: what a driver can say in the ErlDrvSizeT of an int-sized reply. */
#define PAYLOAD_LIMIT_BYTES ((ErlDrvSizeT)0x7fffffff)

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    set_port_control_flags(port, PORT_CONTROL_FLAG_BINARY);
    return (ErlDrvData)port;
}

/* ---- call ------------------------------------------------------------------------------ */

static ErlDrvSSizeT call(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                         char **rbuf, ErlDrvSizeT rlen, unsigned int *flags)
{
    (void)data;
    (void)command;
    (void)flags;
    if (len > PAYLOAD_LIMIT_BYTES)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    if (len > rlen) {
        char *reply = driver_alloc(len); /* the VM owns it once *rbuf points to it */
        if (reply == NULL)
            return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
        *rbuf = reply;
    }
    memcpy(*rbuf, buf, len);
    return (ErlDrvSSizeT)len;
}

/* ---- control and async ----------------------------------------------------------------- */

/* Runs on an async thread. The copy was made by control; here it would be worked on. */
static void async_work(void *arg)
{
    (void)arg;
}

static void async_free(void *arg)
{
    driver_free_binary(arg);
}

static void ready_async(ErlDrvData data, ErlDrvThreadData arg)
{
    ErlDrvBinary *payload = (ErlDrvBinary *)arg;

    driver_output_binary((ErlDrvPort)data, NULL, 0, payload, 0, payload->orig_size);
    driver_free_binary(payload); /* the message holds its own reference */
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                            char **rbuf, ErlDrvSizeT rlen)
{
    ErlDrvBinary *payload;

    (void)rlen;
    if (len > PAYLOAD_LIMIT_BYTES || (command != ECHO_NOW && command != ECHO_ASYNC))
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;

    payload = driver_alloc_binary(len);
    if (payload == NULL)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
    memcpy(payload->orig_bytes, buf, len);

    if (command == ECHO_NOW) {
        *rbuf = (char *)payload; /* the VM owns it now */
        return (ErlDrvSSizeT)len;
    }
    /* ready_async owns it now, or async_free if the port closes first */
    driver_async((ErlDrvPort)data, NULL, async_work, payload, async_free);
    *rbuf = NULL;
    return 0;
}

/* ---- outputv --------------------------------------------------------------------------- */

static void outputv(ErlDrvData data, ErlIOVec *vec)
{
    driver_outputv((ErlDrvPort)data, NULL, 0, vec, 0);
}

static ErlDrvEntry entry = {
    .start = start,
    .driver_name = "tame_echo_drv",
    .control = control,
    .outputv = outputv,
    .ready_async = ready_async,
    .call = call,
    .extended_marker = ERL_DRV_EXTENDED_MARKER,
    .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
    .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION,
    .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING,
};

DRIVER_INIT(tame_echo_drv)
{
    return &entry;
}
