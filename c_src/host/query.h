/* Questions to the VM. Any thread but the one that reads the control port may ask; it waits for the
 * answer. In a probe there is nobody to ask: every answer is no. */
#ifndef TAME_HOST_QUERY_H
#define TAME_HOST_QUERY_H

#include "term.h"

/* The answer is made in env; TERM_NONE: there is no VM. */
term query_ask(ErlNifEnv *env, term what);

/* Whether the VM answered true or ok. */
int query_is_true(term what);

int query_existing_atom(const unsigned char *utf8, size_t size);

/* {Name, Argument ...}, in env. */
term query_term(ErlNifEnv *env, const char *name, unsigned count, ...);

/* An answer has come, in external format; called by the reader. Unknown ids are ignored. */
void query_answered(uint64_t id, const unsigned char *answer, size_t size);

#endif
