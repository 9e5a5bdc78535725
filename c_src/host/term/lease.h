/* Leases: references that the VM made and lent us, to name our resources by.
 *
 * A resource gets one when it first goes out. From then on the VM's garbage collector rules over
 * it: when the VM's end of the lease is collected, the VM says so ("gone"), and we let go.
 *
 * The VM holds each lease itself until it has read the reply or message whose list of leases has
 * it for the first time. A resource that goes out again, and is not an argument of the running
 * call, may have been collected meanwhile: so the VM is asked to hold it ("hold"), and says which
 * it still has: those are in the list of leases as well, and the others get a new one. The question
 * names them as references, because a reference that is read while its proxy lives keeps it alive.
 */
#ifndef TAME_HOST_LEASE_H
#define TAME_HOST_LEASE_H

#include <stdint.h>

#include "term/resource.h"

struct lease_use {
    uint64_t id;
    uint32_t words[REF_WORDS_MAX];
    uint32_t words_len;
    int first; /* it must be in the list of leases of what goes out */
};

/* The resource's lease; it gets one now if it has none. announce: it is about to go out. */
struct lease_use lease_use(struct resource *resource, int announce);

/* The VM lends one. */
void lease_add(uint64_t id, const uint32_t *words, size_t len);

/* The VM collected it. The resource, if there is one, loses a reference. */
void lease_gone(uint64_t id);

/* The lease by which the resource must be held for our call of this number (env.h); 0: none, for
 * it has no lease, or is an argument, which its caller keeps until the reply is read. */
uint64_t lease_to_hold(struct resource *resource, uint64_t call_number);

/* A lease that the VM has collected names its resource no more. Its entry goes when "gone" comes.
 */
void lease_forget(struct resource *resource, uint64_t id);

/* A reference of this node that came in: one of our resources, or any. */
term lease_term_or_ref(ErlNifEnv *env, const uint32_t *words, size_t len);

/* The words of a local reference of any kind. */
void lease_ref_words(term t, struct box_ref *ref);

#endif
