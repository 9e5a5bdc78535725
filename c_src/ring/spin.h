/* spin.h - waiting for something without sleeping, for a bounded time and only where it pays: what
 * the caller in the VM and the worker in the host have in common. */
#ifndef TAME_RING_SPIN_H
#define TAME_RING_SPIN_H

#include "../../c_include/tame/clock.h"

/* Rounds between two readings of the clock: 0.2 to 1.5 us. */
#define RING_SPIN_ROUNDS 32

/* Two readings of the clock as far apart as this: we were not running, and somebody wants the core
 * for longer than a thread that wakes, does a little and sleeps again. */
#define RING_DESCHEDULED_NS 100000

#endif
