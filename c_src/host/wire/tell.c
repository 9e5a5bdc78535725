/* Frames that are terms, see tell.h. */
#include <stdatomic.h>
#include <stdlib.h>

#include "memory/alloc.h"
#include "port/ask.h"
#include "port/frame_bounds.h"
#include "port/port.h"
#include "term/lease.h"
#include "wire/prepare.h"
#include "wire/query.h"
#include "wire/readable.h"
#include "wire/tell.h"

static _Atomic uint64_t sent;      /* written to the control port, in units of messages */
static _Atomic uint64_t delivered; /* of that, how much the VM is known to have passed on */

/* A message counts as one unit, plus one for each UNIT_BYTES of it. */
#define UNIT_BYTES 4096

/* Units that may be on their way. A thread that sends in a loop is faster than the VM, and the VM ends a
 * host when five times as many messages wait (FLOOD_LEN, tame_host_port.erl). */
#define UNITS_AHEAD 4096

/* The frame's bytes, freed by the caller. Four are left for the length. */
static unsigned char *encode(term frame, size_t *size)
{
    struct etf_out out;

    etf_out_init(&out);
    etf_size(frame, ETF_COMPARABLE, &out);
    *size = PORT_LENGTH_BYTES + 1 + out.size;
    unsigned char *bytes = host_malloc(*size);
    bytes[PORT_LENGTH_BYTES] = ETF_VERSION;
    etf_write(frame, bytes + PORT_LENGTH_BYTES + 1);
    etf_out_free(&out);
    return bytes;
}

unsigned char *tell_frame(term frame, size_t *size)
{
    unsigned char *bytes = encode(frame, size);

    port_put_length(bytes, *size);
    return bytes;
}

void tell(term frame)
{
    size_t size;

    if (port.out < 0)
        return;
    unsigned char *bytes = encode(frame, &size);
    port_write(bytes, size);
    free(bytes);
}

/* Writes the frame of a message whose leases these are, unless the VM would not read it. */
static int send_frame(term pid, term message, const struct work *leases)
{
    ErlNifEnv scratch;
    size_t size;

    env_init(&scratch, ENV_INDEPENDENT);
    unsigned char *bytes =
        encode(query_term(&scratch, "send", 3, pid, message,
                          prepare_lease_list(&scratch, leases->items, leases->len)),
               &size);
    env_destroy(&scratch);
    const int ok = readable(bytes + PORT_LENGTH_BYTES, size - PORT_LENGTH_BYTES - 1);
    if (ok)
        port_write(bytes, size);
    free(bytes);
    return ok;
}

int tell_message(const ErlNifEnv *env, term pid, term message)
{
    struct etf_out out;
    int ok;

    if (port.out < 0)
        return 1;
    ok = prepare(message, env, READABLE_BYTES, &out) && out.size <= READABLE_BYTES &&
         out.leases.len <= LEASES_MAX && send_frame(pid, message, &out.leases);
    if (ok)
        sent += 1 + out.size / UNIT_BYTES; /* when it is written: a sync comes behind it */
    else
        lease_owe(&out.leases);
    etf_out_free(&out);
    if (sent - delivered > UNITS_AHEAD)
        tell_sync();
    return ok;
}

void tell_sync(void)
{
    uint64_t until = sent, known = delivered;

    if (until == known)
        return;
    (void)ask_word("sync");
    while (known < until && !atomic_compare_exchange_weak(&delivered, &known, until)) {
    }
}
