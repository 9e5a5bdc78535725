/* nif_reading.h - large replies: copied out of the shared memory and scanned in slices, decoded by
 * Erlang or on a dirty scheduler. */
#ifndef TAME_RING_NIF_READING_H
#define TAME_RING_NIF_READING_H

#include <tame/slice.h>

#include "etf_scan.h"
#include "nif_ring.h"

/* Copied between two readings of the clock, and at most in one slice. */
#define COPY_STEP_BYTES (32 * 1024)
#define COPY_SLICE_NS (TAME_SLICE_US * 1000)

/* Items of a scan between two readings of the clock: 10 to 30 us. */
#define SCAN_STEP 2048

/* The version byte, a binary's tag and its size. */
#define BINARY_HEAD 6

/* The names of nodes that the scan finds are the ring's. */
void scan_names(struct ring *ring, struct etf_scan *scan);

/* value or raise. */
ERL_NIF_TERM kind_of(struct ring *ring, const struct ring_reply *reply);

/* Whether a reply is one binary and nothing else. */
int is_one_binary(const struct ring_reply *reply);

/* Whether every reply of this size stays within the memory that a reply may take. */
int is_small(struct ring *ring, uint64_t size);

/* The reply of a slot that is ours, in slices; afterwards the slot is not. */
ERL_NIF_TERM read_in_slices(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                            const struct ring_reply *reply);

#endif
