/* tame/driver.h - a port driver that does not block.
 *
 * A callback of a port driver holds a scheduler for as long as it takes, and driver_async has, by
 * default, one thread for all drivers of the VM (+A 1). Here a callback schedules what is large
 * somewhere else: on threads of the driver's own, and back on a scheduler under the port's lock.
 *
 * Header-only: C11 or C++17, gcc or clang, OTP 25 or newer; for drivers, without tame.h. A driver
 * of yours keeps its functions, and its DRIVER_INIT becomes the macro TAME_DRIVER_INIT.
 *
 *   docs/guide/drivers.md          a guide: a driver that does not block
 *   docs/reference/driver_h.md     every function, type, macro and constant
 *   examples/dirty_driver          a whole one, built by rebar3
 *
 *
 * 1  A COMPLETE DRIVER
 *
 *     #include <tame/driver.h>
 *     #include <stdio.h>
 *     #include <stdlib.h>
 *     #include <unistd.h>
 *
 *     struct naps { ErlDrvPort port; };
 *
 *     static ErlDrvData start(ErlDrvPort port, char *command)
 *     {
 *         struct naps *naps = (struct naps *)driver_alloc(sizeof *naps);
 *
 *         (void)command;
 *         if (naps == NULL)
 *             return ERL_DRV_ERROR_GENERAL;
 *         naps->port = port;
 *         return (ErlDrvData)naps;
 *     }
 *     static void stop(ErlDrvData data)
 *     {
 *         driver_free(data);
 *     }
 *     static ErlDrvSSizeT control(ErlDrvData data, unsigned int seconds, char *bytes,
 *                                 ErlDrvSizeT len, char **reply, ErlDrvSizeT room)
 *     {
 *         const ErlDrvPort port = ((struct naps *)data)->port;
 *
 *         if (!tame_drv_is_dirty(port))
 *             return tame_drv_control(port, TAME_DRV_IO, seconds, bytes, len, reply);
 *         sleep(seconds);
 *         return snprintf(*reply, room, "slept");
 *     }
 *     static ErlDrvEntry entry = {.start = start, .stop = stop, .control = control,
 *                                 .driver_name = (char *)"naps",
 *                                 .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING};
 *
 *     TAME_DRIVER_INIT(naps, entry, NULL)
 *
 * port_control(Port, 1, <<>>) returns [] at once, and {Port, {data, <<"slept">>}} comes a second
 * later.
 *
 *
 * 2  WHERE A CALLBACK RUNS
 *
 *                     on                                      port's lock   for
 *   ----------------  --------------------------------------  ------------  --------------------
 *   (the VM's own)    a scheduler                             held          what is short
 *   TAME_DRV_PORT     a scheduler, a little later             held          replies, driver_select
 *   TAME_DRV_CPU      one of as many threads as there are     no            what computes
 *                     schedulers, or CPUs of the container
 *   TAME_DRV_IO       one of TAME_DRV_IO_THREADS threads      no            what blocks
 *
 * tame_drv_schedule(port, where, callback, arg) works from any callback of the port, wherever that
 * runs: control, call, outputv, output, start, ready_input, timeout, or one that was scheduled. So
 * work goes out and comes back, as often as it likes:
 *
 *     control  --TAME_DRV_CPU-->  work(data, arg)  --TAME_DRV_PORT-->  done(data, arg)
 *
 * What a port has scheduled to be done outside is done in order, one at a time. Ports that have
 * work take turns. To use several cores open several ports.
 *
 *
 * 3  WHAT THERE IS
 *
 *   tame_drv_schedule   a callback somewhere else. It is called once; or, when the port closes
 *                       first, DROP of TAME_DRIVER_INIT is called, to free the arg.
 *   tame_drv_control    from control: the same control, outside. What it returns there goes to the
 *                       caller as {Port, {data, Bytes}}; {Port, {error, badarg}} where it fails,
 *                       {Port, {error, busy}} where the port takes no more.
 *   tame_drv_outputv    from outputv: the same outputv, outside, with the same binaries
 *   tame_drv_run        a step as in tame.h, in slices, outside or on a scheduler; then a callback
 *                       under the port's lock
 *   tame_drv_is_dirty   whether this callback runs outside
 *   tame_drv_is_closing whether the port closes: a long callback looks now and then
 *   tame_drv_waiting    how much waits or is outside
 *   tame_drv_caller     who called the callback that scheduled this one
 *   tame_drv_output     {Port, {data, Bytes}} to the owner, from anywhere
 *   tame_drv_fail       ends the port as driver_failure_atom, when all has come back
 *   tame_drv_demonitor  in place of driver_demonitor_process
 *   tame_drv_hold, tame_drv_post, tame_drv_let_go
 *                       for a thread that is not the driver's, such as one of a library below it: a
 *                       callback under the port's lock
 *
 *
 * 4  WHAT A CALLBACK MAY DO OUTSIDE
 *
 *   It has the port's data, without the port's lock, while the VM's callbacks of the same port go
 *   on beside it: what both use needs a lock or an atomic of yours; what only `arg` has needs none.
 *   It may call what is above, erl_drv_send_term, erl_drv_output_term, driver_alloc and
 *   driver_free, and the functions for binaries, locks and threads. All else (driver_select,
 *   driver_output, driver_set_timer, set_busy_port, driver_failure) wants the port's lock: schedule
 *   it there. It may block as long as it likes, on TAME_DRV_IO; flush is how it is woken (5).
 *
 *
 * 5  THE LIFE OF A PORT
 *
 *   A port that closes while something of it is outside, because of port_close/1, its owner's death
 *   or halt, takes no more work:
 *
 *     closes --> what waits is dropped --> your flush --> what is outside ends --> your stop
 *                tame_drv_is_closing       wakes what     a job after its step,
 *                                          blocks         a callback by itself
 *
 *   So stop is called when no callback is outside any more, and frees the data as in any driver.
 *   The driver stays loaded until then: an unload waits, and another file is refused by erl_ddll. A
 *   callback for TAME_DRV_PORT that is on its way is called before stop. halt waits as well, unless
 *   it is told not to flush; so a callback that may block for ever needs a flush that wakes it.
 *
 *   Three ends do not flush: exit(Port, kill); driver_failure_* or driver_exit, for which there is
 *   tame_drv_fail; and the unload of a driver that erl_ddll:load_driver/2 loaded, which kills its
 *   ports: load with erl_ddll:load/2. Then stop holds its scheduler until what is outside has
 *   ended; flush is called before it, all the same.
 *
 *
 * 6  BOUNDS
 *
 *   TAME_DRV_IO_THREADS    10      threads that may block
 *   TAME_DRV_BUSY_AT       64      waiting in a port: it is busy, and port_command/2 suspends its
 *                                  caller, until half of it is done
 *   TAME_DRV_MAX_WAITING   10000   waiting in a port: it takes no more
 *
 *   The time of callbacks under the port's lock is charged to the port, or to who called it: 4000
 *   reductions per ms, and for each at most what is left of the timeslice, because the VM takes no more.
 *   Threads are made when they are needed, and joined when the driver is unloaded. A port that has
 *   scheduled something has one descriptor (Linux; two elsewhere).
 *
 *
 * 7  WHAT YOU MAY NOT DO
 *
 *   - Use the driver queue (driver_enq and the like), driver_pdl_create or driver_create_port: they
 *     do not compile behind this header. The queue holds a byte of ours, by which the VM knows that
 *     the port is not through.
 *   - Call driver_demonitor_process, which does not compile either: within process_exit it ends the VM
 *     when it is for the monitor that has fired. tame_drv_demonitor does not.
 *   - Keep bytes or vectors of control and outputv for later: they last for the call.
 *   - Schedule from a thread that runs no callback of the port: tame_drv_schedule returns 0 there.
 *   - Wait outside for something that another callback of the same port does outside: it comes
 *     after.
 *
 *   Names with `impl` in them are private. */
#ifndef TAME_DRIVER_H
#define TAME_DRIVER_H

#include "drv/entry.h"

#endif
