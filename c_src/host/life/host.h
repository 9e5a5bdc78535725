/* How the host begins: before it has a library, and when it gets one. */
#ifndef TAME_HOST_HOST_H
#define TAME_HOST_HOST_H

#include "term/term.h"

/* Before anything else. */
void host_init(void);

/* What the VM says of itself when it has a library loaded; README.md lists the keys. */
void host_apply_settings(ErlNifEnv *env, term settings);

#endif
