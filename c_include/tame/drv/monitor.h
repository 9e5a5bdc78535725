/* tame/drv/monitor.h - the end of a monitor, wherever a driver finds that it does not need it any more.
 *
 * Part of tame/driver.h. The VM takes a monitor that has fired out of its table after process_exit, and
 * does not look whether it is there still: driver_demonitor_process for it, within process_exit, ends
 * the VM. So the port knows which one that is. */
#ifndef TAME_DRV_MONITOR_H
#define TAME_DRV_MONITOR_H

#include "schedule.h"

/* Ends what driver_monitor_process began. Returns 0; or 1 when there is no such monitor any more: it was
 * ended, or has fired, also where process_exit is told of it just now. From a callback of the port under
 * its lock; elsewhere it does nothing, and returns -1. */
static inline int tame_drv_demonitor(ErlDrvPort port, const ErlDrvMonitor *monitor)
{
    const struct tame_impl_drv_port *here = tame_impl_drv_here(port);

    if (here == NULL || tame_impl_drv_now.outside)
        return -1;
    if (here->fired != NULL && driver_compare_monitors(here->fired, monitor) == 0)
        return 1;
    return driver_demonitor_process(port, monitor) == 0 ? 0 : 1;
}

#endif
