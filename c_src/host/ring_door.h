/* Where the ring hands its calls to host_call: built where c_src/ring is. */
#ifndef TAME_HOST_RING_DOOR_H
#define TAME_HOST_RING_DOOR_H

#include "term.h"

/* {ring, Settings}: makes a ring and its workers, and tells the VM {ring, Fd} or {ring_refused,
 * Text}. */
void ring_door_open(ErlNifEnv *env, term settings);

#endif
