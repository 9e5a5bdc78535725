/* Binaries: bytes that several terms and environments may keep, and where a library may look at
 * them. */
#ifndef TAME_HOST_BINARY_H
#define TAME_HOST_BINARY_H

#include "term/term.h"

struct binary {
    struct shared shared;
    size_t size;
    _Alignas(16) unsigned char data[]; /* size bytes and BINARY_SLACK_BYTES */
};

/* Counted once, for the caller. The first is never NULL; the others are when there is no memory. */
struct binary *binary_new(size_t size);
struct binary *binary_try_new(size_t size);

/* binary with another size, the bytes that fit kept; the caller is the only one who keeps it. NULL:
 * binary is as it was. */
struct binary *binary_try_resize(struct binary *binary, size_t size);

/* Whether it is a binary that keeps the bytes, and no resource. */
int binary_keeps(const struct shared *owner);

/* The binary, or NULL: it is none, or its last byte is incomplete. */
struct box_binary *binary_whole(term t);

/* A library is about to see where the bytes are: what is lent gets bytes of its own, aligned and
 * with room behind them. What is only passed through is never copied. Lent are terms of a call's
 * environment alone, which one thread uses at a time. */
void binary_settle(ErlNifEnv *env, struct box_binary *binary);

/* Goes over an iolist. out NULL: only counts. Returns 0 when it is none. */
int binary_walk_iolist(term list, unsigned char *out, size_t *size);

#endif
