/* nif_leases.h - leases: proxies that the VM keeps until the host has used them, and the word to
 * the host when one is collected.
 *
 * A resource of ours is destroyed on a scheduler, whatever thread drops the last hold (the emulator
 * sees to that), so the reader may drop holds. */
#ifndef TAME_RING_NIF_LEASES_H
#define TAME_RING_NIF_LEASES_H

#include "nif_ring.h"

/* Leases used at one taking of the lock. */
#define LEASES_STEP 64

/* An id on its way to the host; into memory only, whatever the host does. */
void tell_gone(struct ring *ring, uint64_t id);

/* Tries again with what found no room. Returns how much did. */
size_t flush_gone(struct ring *ring);

/* The ids need not be aligned. At most LEASES_STEP of them. */
void leases_used(struct ring *ring, const uint8_t *ids, size_t len);

/* Any number of ids; so not on a scheduler. */
void leases_used_all(struct ring *ring, const uint8_t *ids, size_t len);

/* Leaves a list of used leases to the reader, who frees it. */
void leases_hand_over(struct ring *ring, struct lease_list *list);

/* By the reader. Returns whether there was something to do; with `last`, nothing is taken in any
 * more. */
int leases_take_over(struct ring *ring, int last);

/* Holds that the host has not used, all in all: one that asks for more uses none. */
#define LEASES_UNUSED_MAX 2097152

enum lease_kept { LEASE_KEPT, LEASE_CLOSED, LEASE_NO_MEMORY, LEASE_TOO_MANY };

/* Takes over a hold of the caller's on a proxy, if it is LEASE_KEPT. */
enum lease_kept lease_keep(struct ring *ring, struct proxy *proxy);

/* Drops all holds. The ring is closed, so none is added. */
void leases_drop(struct ring *ring);

#endif
