/* Calls that come by the ring of shared memory (c_src/ring), beside those by the control port. */
#ifndef TAME_HOST_RING_CALLS_H
#define TAME_HOST_RING_CALLS_H

#include "../ring/ring.h"

/* Makes the ring, and starts as many threads that serve it as there are workers. Returns its file
 * descriptor, which the VM opens by /proc; ends the program when there can be none. */
int ring_calls_start(const struct ring_geometry *geometry);

#endif
