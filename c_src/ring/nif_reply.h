/* nif_reply.h - replies to terms, always on the process that called. Four ways, by what a reply is:
 *
 *     small                       copied and decoded in one go on the scheduler
 *     one binary, not too large   copied in one go
 *     large                       copied out and scanned in slices (nif_reading.c); then
 *                                 {decode, Kind, Bytes[, Reading]}, for binary_to_term/2 in Erlang,
 *                                 which yields by itself
 *     with many pairs in maps     the same, but decoded on a dirty scheduler, as the emulator
 *                                 builds maps in one go
 *
 * What is decoded is always a copy: the host cannot change that. */
#ifndef TAME_RING_NIF_REPLY_H
#define TAME_RING_NIF_REPLY_H

#include "nif_ring.h"

/* Replies up to this size are decoded in one go on the scheduler. The worst ones take 80 us (a list
 * of empty lists), 200 us (a map of 2700 small integers), 400 us (32 long keys that differ in their
 * last bytes). */
#define INLINE_REPLY_BYTES (16 * 1024)

/* The reply is in the slot, and the slot is ours; afterwards it is not. */
ERL_NIF_TERM take_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id);

/* The same, but for a large reply: returns 0 then, and nothing has happened. */
int take_small_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                     ERL_NIF_TERM *result);

#endif
