/* nif_life.h - the lives of rings and of their readers, as the library sees them. */
#ifndef TAME_RING_NIF_LIFE_H
#define TAME_RING_NIF_LIFE_H

#include "nif_ring.h"

/* Joins readers that have ended, or all. The lock is not held. */
void join_readers(struct library *library, int all);

/* The library's lock is held. Returns 0 where the system gives no thread. */
int start_reader(struct library *library, struct ring *ring);

/* Ends the readers of all rings; what a closed ring's has left is done. The library's lock is held.
 */
void stop_readers(struct library *library);

/* Closes a ring that has no reader. The library's lock is held. */
void shut_stopped(struct library *library, struct ring *ring);

#endif
