/* nif_reader.h - the thread that tells callers that their late replies are there.
 *
 * One reader per ring. It sleeps on the VM's doorbell, sends {Ref, ready} to the callers that wait
 * in receive, frees the slots of those that do not wait any more, drops holds on leases, and gives
 * purged regions back. It checks everything once a second, whatever the host does with the bell.
 *
 * It is no scheduler, so it makes no term: the emulator sorts large maps, for one, with data that
 * only a scheduler has. The message was made by the caller; the reply is decoded by the caller. */
#ifndef TAME_RING_NIF_READER_H
#define TAME_RING_NIF_READER_H

#include "nif_ring.h"

/* The ring is closed: the last that a reader does. */
void reader_end(struct ring *ring);

/* Ends when the ring is closed; or when it is stopped, and another reader takes the ring over. */
void *reader(void *arg);

#endif
