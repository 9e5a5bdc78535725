/* Monitors: the library is told when a process has ended. The VM watches, by a query. */
#ifndef TAME_HOST_MONITOR_H
#define TAME_HOST_MONITOR_H

#include "term/resource.h"

/* What the library keeps of a monitor holds its number, and the reference of the VM's monitor:
 * TERM_NONE when it does not. */
uint64_t monitor_id(const ErlNifMonitor *monitor);
term monitor_ref(ErlNifEnv *env, const ErlNifMonitor *monitor);

/* Has a process of this node watched for resource; public is filled in unless it is NULL. Returns
 * 0 when the process has ended already. */
int monitor_start(struct resource *resource, ErlNifPid pid, ErlNifMonitor *public);

/* Returns 0: there is no such monitor, or it has fired. */
int monitor_stop(struct resource *resource, uint64_t id);

/* The VM says that the process of this monitor has ended. */
void monitor_down(uint64_t id);

/* A resource is about to be destroyed. Not for the thread that reads the control port: it asks. */
void monitor_forget(struct resource *resource);

#endif
