/* tame_spin_drv: the work of tame_spin as a port driver does it, in three ways.
 *
 *   inline   erlang:port_control/3, command SPIN_INLINE: within control, which holds the scheduler
 *   async    SPIN_ASYNC: on a thread of the VM's asynchronous pool (driver_async): +A is 1 by default
 *   dirty    SPIN_DIRTY: in steps on threads of the driver's own (tame/driver.h)
 *
 * Each sends {Port, {data, <<>>}} when the work is done. The first two are what others are compared
 * with. */
#include <tame/driver.h>

#include "spin.h"

enum { SPIN_INLINE = 1, SPIN_ASYNC, SPIN_DIRTY };

/* Below it the rounds never overflow. */
#define SPIN_MAX_US UINT64_C(1000000000000)

/* Measured when the driver is loaded, about 0.3 ms. */
static uint64_t rounds_per_us;

static int init(void)
{
    rounds_per_us = spin_measure(tame_now_ns);
    return 0;
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    (void)command;
    return (ErlDrvData)port;
}

static void done(ErlDrvData data, void *state, enum tame_status status)
{
    (void)state;
    (void)status;
    (void)driver_output((ErlDrvPort)data, (char *)"", 0);
}

static const struct tame_drv_job job = {.step = spin_step, .done = done, .cleanup = driver_free};

static void async_work(void *state)
{
    (void)spin_step(NULL, state, SIZE_MAX);
}

static void ready_async(ErlDrvData data, ErlDrvThreadData state)
{
    done(data, state, TAME_DONE);
    driver_free(state);
}

/* The bytes are the time in us, big endian. Returns 0 when they are no such. */
static int decode(const char *bytes, ErlDrvSizeT len, uint64_t *us)
{
    *us = 0;
    if (len != sizeof *us)
        return 0;
    for (size_t i = 0; i < sizeof *us; i++)
        *us = *us << 8 | (unsigned char)bytes[i];
    return *us <= SPIN_MAX_US;
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                            char **res, ErlDrvSizeT rlen)
{
    const ErlDrvPort port = (ErlDrvPort)data;
    struct spin *spin;
    uint64_t us;

    (void)res;
    (void)rlen;
    if (!decode(buf, len, &us) || command < SPIN_INLINE || command > SPIN_DIRTY)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    spin = driver_alloc(sizeof *spin); /* done, ready_async or the VM frees it */
    if (spin == NULL)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
    *spin = (struct spin){.left_us = us, .rounds_per_us = rounds_per_us, .value = 1};
    if (command == SPIN_ASYNC && driver_async(port, NULL, async_work, spin, driver_free) != -1)
        return 0;
    if (command == SPIN_DIRTY && tame_drv_run(port, TAME_DRV_CPU, &job, spin))
        return 0;
    if (command == SPIN_INLINE) {
        async_work(spin);
        done(data, spin, TAME_DONE);
    }
    driver_free(spin);
    return command == SPIN_INLINE ? 0 : (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
}

static ErlDrvEntry entry = {.init = init,
                            .start = start,
                            .control = control,
                            .ready_async = ready_async,
                            .driver_name = (char *)"tame_spin_drv",
                            .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING};

TAME_DRIVER_INIT(tame_spin_drv, entry, NULL)
