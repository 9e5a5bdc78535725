/* bits.h - the processors that tame is written for. First among the includes of a file that needs it,
 * so that this is the first error. */
#ifndef TAME_BITS_H
#define TAME_BITS_H

#include <stdint.h>

#if UINTPTR_MAX < 0xffffffffffffffff
#error "tame needs a 64-bit system: terms are words of 64 bits, and its memory is 2 GiB and more"
#endif

#endif
