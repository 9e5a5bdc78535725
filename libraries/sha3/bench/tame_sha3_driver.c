/* The same function as a port driver of the years before NIFs: sha3_256 of what is sent to the port,
 * on a thread of the VM's asynchronous pool (driver_async). For bench.exs alone. The driver keeps the
 * binaries that it was sent, so nothing is copied. */
#include <erl_driver.h>
#include <stdlib.h>
#include <string.h>

#include "sponge.h"

#define DIGEST_BYTES 32

struct work {
    int len;
    ErlDrvBinary **binaries; /* a reference to each is owned */
    SysIOVec *pieces;        /* into them */
    unsigned char digest[DIGEST_BYTES];
};

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    return (ErlDrvData)port;
}

static void hash(void *data)
{
    struct work *work = data;
    struct sponge sponge;

    sponge_init(&sponge, keccak_choose(getenv("TAME_SHA3_IMPL")), sponge_find("sha3_256"));
    for (int i = 0; i < work->len; i++)
        sponge_absorb(&sponge, work->pieces[i].iov_base, work->pieces[i].iov_len);
    sponge_squeeze(&sponge, work->digest, DIGEST_BYTES);
}

static void release(void *data)
{
    struct work *work = data;

    for (int i = 0; i < work->len; i++)
        if (work->binaries[i] != NULL)
            driver_free_binary(work->binaries[i]);
    driver_free(work->binaries);
    driver_free(work->pieces);
    driver_free(work);
}

static void outputv(ErlDrvData port, ErlIOVec *vector)
{
    const size_t len = (size_t)vector->vsize;
    struct work *work = driver_alloc(sizeof *work);                 /* release frees it */
    ErlDrvBinary **binaries = driver_alloc(sizeof *binaries * len); /* the work's */
    SysIOVec *pieces = driver_alloc(sizeof *pieces * len);          /* the work's */

    if (work == NULL || binaries == NULL || pieces == NULL) {
        driver_failure_atom((ErlDrvPort)port, "enomem");
        return;
    }
    memcpy(binaries, vector->binv, sizeof *binaries * len);
    memcpy(pieces, vector->iov, sizeof *pieces * len);
    for (size_t i = 0; i < len; i++)
        if (binaries[i] != NULL)
            driver_binary_inc_refc(binaries[i]);
    work->len = vector->vsize;
    work->binaries = binaries;
    work->pieces = pieces;
    if (driver_async((ErlDrvPort)port, NULL, hash, work, release) == -1) {
        release(work);
        driver_failure_atom((ErlDrvPort)port, "driver_async");
    }
}

static void ready_async(ErlDrvData port, ErlDrvThreadData data)
{
    struct work *work = (struct work *)data;

    driver_output((ErlDrvPort)port, (char *)work->digest, DIGEST_BYTES);
    release(work);
}

static ErlDrvEntry entry = {.start = start,
                            .driver_name = (char *)"tame_sha3_driver",
                            .outputv = outputv,
                            .ready_async = ready_async,
                            .extended_marker = (int)ERL_DRV_EXTENDED_MARKER,
                            .major_version = ERL_DRV_EXTENDED_MAJOR_VERSION,
                            .minor_version = ERL_DRV_EXTENDED_MINOR_VERSION};

DRIVER_INIT(tame_sha3_driver)
{
    return &entry;
}
