/* What must be asked before a term can go to the VM. */
#ifndef TAME_HOST_PREPARE_H
#define TAME_HOST_PREPARE_H

#include "wire/etf.h"

/* Sizes t into out, which it sets up, as far as `most` bytes; tells the VM of new atoms, and has it
 * hold the leases that go out again. env: of the call whose reply or message it is; NULL: there is
 * none. Returns 0: the VM refuses the atoms. The caller frees out in either case. */
int prepare(term t, const ErlNifEnv *env, size_t most, struct etf_out *out);

/* The same for a term in a question, which the VM forgets: it gives it no leases. */
int prepare_question(term t);

/* Ids of leases as the list that a frame has of them. */
term prepare_lease_list(ErlNifEnv *env, const uint64_t *leases, size_t len);

#endif
