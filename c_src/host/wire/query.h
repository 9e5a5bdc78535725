/* Questions to the VM that are terms, and whose answers are: see port/ask.h. */
#ifndef TAME_HOST_QUERY_H
#define TAME_HOST_QUERY_H

#include "term/term.h"

/* {Name, Argument ...}, in env. */
term query_term(ErlNifEnv *env, const char *name, unsigned count, ...);

/* The answer is made in env; TERM_NONE: there is no VM, or it would not read the
 * question (readable.h). */
term query_ask(ErlNifEnv *env, term what);

#endif
