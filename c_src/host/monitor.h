/* Monitors: the library is told when a process has ended. The VM watches, by a query. */
#ifndef TAME_HOST_MONITOR_H
#define TAME_HOST_MONITOR_H

#include <stdint.h>

/* The VM says that the process of this monitor has ended. */
void monitor_down(uint64_t id);

/* A resource is about to be destroyed. Not for the thread that reads the control port: it asks. */
struct resource;
void monitor_forget(struct resource *resource);

#endif
