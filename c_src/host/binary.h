/* Binaries that several terms and environments may keep. */
#ifndef TAME_HOST_BINARY_H
#define TAME_HOST_BINARY_H

#include "term.h"

/* Smaller ones are copied from one environment to another, as in the VM. */
#define BINARY_SHARE_BYTES 64

/* Room behind the bytes of every binary that a library can lay hands on. The VM's allocations are
 * rounded up too: a library that ends a text with one zero byte too many is not noticed there, and
 * must not be here. */
#define BINARY_SLACK_BYTES 8

/* Where the bytes of an argument lie, as in the VM. */
#define BINARY_ALIGN_BYTES 8

struct binary {
    struct shared shared;
    size_t size;
    _Alignas(16) unsigned char data[]; /* size bytes and BINARY_SLACK_BYTES */
};

/* Counted once, for the caller. Never NULL. */
struct binary *binary_new(size_t size);

#endif
