/* Binaries that several terms and environments may keep. */
#ifndef TAME_HOST_BINARY_H
#define TAME_HOST_BINARY_H

#include "term.h"

/* Smaller ones are copied from one environment to another, as in the VM. */
#define BINARY_SHARE_BYTES 64

struct binary {
    struct shared shared;
    size_t size;
    _Alignas(16) unsigned char data[];
};

/* Counted once, for the caller. Never NULL. */
struct binary *binary_new(size_t size);

#endif
