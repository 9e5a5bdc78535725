/* Where the ring hands its calls to host_call. */
#ifndef TAME_HOST_RING_DOOR_H
#define TAME_HOST_RING_DOOR_H

#include "term/term.h"

/* {ring, Settings}: makes a ring and its workers, and tells the VM {ring, Fd} or {ring_refused,
 * Text}. */
void ring_door_open(ErlNifEnv *env, term settings);

/* The VM sees that a call waits which no worker runs: wakes one that sleeps; where none does, or it
 * stands in line behind other dirty calls, there is one more, up to ten and RING_WORKERS_MAX in all.
 * Does nothing when there is no ring, or no more thread to be had. Never blocks; for the thread that
 * reads the control port. */
#define RING_WORKERS_MAX 64
void ring_door_grow(void);

#endif
