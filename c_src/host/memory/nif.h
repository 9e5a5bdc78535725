/* erl_nif.h as its provider sees it: the functions are ours, and are all that the program
 * exports to the library it loads. */
#ifndef TAME_HOST_NIF_H
#define TAME_HOST_NIF_H

#include "os/bits.h"

#pragma GCC visibility push(default)
#include <erl_nif.h>
#pragma GCC visibility pop

typedef ERL_NIF_TERM term;

#define TERM_NONE ((term)0)

#endif
