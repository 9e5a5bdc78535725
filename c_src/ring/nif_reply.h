/* nif_reply.h - replies to terms, always on the process that called. Four ways, by what a reply is:
 *
 *     small                       copied and decoded in one go on the scheduler
 *     one binary, not too large   copied in one go
 *     large                       copied out and scanned in slices (nif_reading.c); then
 *                                 {decode, Kind, Bytes[, Reading]}, for binary_to_term/2 in Erlang,
 *                                 which yields by itself
 *     with many pairs in maps     the same, but decoded on a dirty scheduler, as the emulator
 * builds maps in one go
 *
 * What is decoded is always a copy: the host cannot change that. */
#ifndef TAME_RING_NIF_REPLY_H
#define TAME_RING_NIF_REPLY_H

#include "nif_ring.h"

/* Copied between two readings of the clock, and at most in one slice. */
#define COPY_STEP_BYTES (32 * 1024)
#define COPY_SLICE_NS 100000

/* Replies up to this size are decoded in one go on the scheduler. The worst ones take 80 us (a list
 * of empty lists), 200 us (a map of 2700 small integers), 400 us (32 long keys that differ in their
 * last bytes). */
#define INLINE_REPLY_BYTES (16 * 1024)

/* Items of a scan between two readings of the clock: 10 to 30 us. */
#define SCAN_STEP 2048

/* The version byte, a binary's tag and its size. */
#define BINARY_HEAD 6

/* What a host wrote is wrong; or there is no host any more, and zeros were read. */
ERL_NIF_TERM make_bad_reply(ErlNifEnv *env, struct ring *ring, const char *what);

ERL_NIF_TERM make_too_large(ErlNifEnv *env, struct ring *ring, uint64_t bytes);

ERL_NIF_TERM kind_of(struct ring *ring, const struct ring_reply *reply);

/* Whether a reply is one binary and nothing else. */
int is_one_binary(const struct ring_reply *reply);

/* Whether every reply of this size stays within the memory that a reply may take. */
int is_small(struct ring *ring, uint64_t size);

/* The reply is in the slot, and the slot is ours; afterwards it is not. */
ERL_NIF_TERM take_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id);

/* nif_reading.c: the reply of a slot that is ours, in slices; afterwards the slot is not. */
ERL_NIF_TERM read_in_slices(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                            const struct ring_reply *reply);

#endif
