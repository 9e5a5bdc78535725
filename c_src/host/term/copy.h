/* Terms copied from one environment to another. */
#ifndef TAME_HOST_COPY_H
#define TAME_HOST_COPY_H

#include "term/term.h"

/* A copy that lives in env. Large binaries are shared, not copied. */
term term_copy(ErlNifEnv *env, term source);

#endif
