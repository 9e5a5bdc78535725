/* nif_wait.h - how a caller waits for its reply: it spins, polls in turns with other processes, and
 * waits in receive at last; and what becomes of a call whose caller does not wait any more.
 *
 * Between two of these NIFs the caller's slot is PARKED: the caller comes again by itself, or dies,
 * which process_down sees; or, where a caller in company is not watched until it waits in
 * receive, the reader, when it looks at all slots. The reference of the wait is made in Erlang, so
 * that the emulator knows that no older message has it, and does not look through the mailbox. */
#ifndef TAME_RING_NIF_WAIT_H
#define TAME_RING_NIF_WAIT_H

#include "nif_ring.h"

/* Encoded or copied in one go at most; longer arguments take hops. 10 to 80 us. A binary of 256 KiB
 * and a few arguments beside it are within. */
#define INLINE_REQUEST_BYTES (260 * 1024)

/* A call as Erlang knows it: its id, and the slot where it is, or TOKEN_LINE when it was in line
 * and may be anywhere. */
#define TOKEN_LINE 2047

ERL_NIF_TERM make_wait(ErlNifEnv *env, struct ring *ring, uint64_t id, uint32_t index);

/* The slot that has a call; -1 when none has. A call that may be in line is
 * searched there first. */
int find_slot(struct ring *ring, uint64_t token);

/* A call that has been submitted, for which a worker had to be woken or not: its reply, or {poll,
 * Token}, or {wait, Token}. That is also what a caller by a route gets in place of a large reply:
 * it has no term of the ring yet, which the making of that reply may ask for. */
ERL_NIF_TERM await(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id, size_t size,
                   int woke, int by_route);

#endif
