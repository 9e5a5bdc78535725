/* Leases: references that the VM made and lent us, to name our resources by.
 *
 * A resource gets one when it first needs a name: to be compared, printed, or given to the VM. From
 * when it is given, the VM's garbage collector rules over it: when the VM's end of the lease is
 * collected, the VM says so ("gone"), and we let go. One that is not given keeps nothing, and is
 * free again when its resource ends.
 *
 * The VM holds each lease itself until it has read the reply or message whose list of leases has
 * it for the first time: each that is given must come into such a list. A resource that goes out
 * again, and is not an argument that its caller keeps, may have been collected meanwhile: so the VM
 * is asked to hold it ("hold"), and says which it still has: those are in the list of leases as
 * well, and the others get a new one. The question names them as references, because a reference
 * that is read while its proxy lives keeps it alive.
 */
#ifndef TAME_HOST_LEASE_H
#define TAME_HOST_LEASE_H

#include <stdint.h>

#include "memory/work.h"
#include "term/resource.h"

struct lease_use {
    uint64_t id;
    uint32_t words[REF_WORDS_MAX];
    uint32_t words_len;
    int first; /* it must be in the list of leases of what goes out */
};

enum lease_for {
    LEASE_NAMED, /* a name for now, here or in a question */
    LEASE_SHOWN, /* bytes that the library may keep */
    LEASE_GIVEN  /* it is about to go out, to stay */
};

/* The resource's lease; it gets one now if it has none. */
struct lease_use lease_use(struct resource *resource, enum lease_for purpose);

/* The VM lends one. */
void lease_add(uint64_t id, const uint32_t *words, size_t len);

/* The VM collected it. The resource, if there is one, loses a reference. */
void lease_gone(uint64_t id);

/* A lease that the VM has collected names its resource no more. Its entry goes when "gone" comes.
 */
void lease_forget(struct resource *resource, uint64_t id);

/* Nothing keeps the resource any more. */
void lease_resource_ends(struct resource *resource);

/* Ids (uint64_t) that should have been in a list of leases, which did not go out: they come into
 * others. lease_take_owed appends some that are owed to such a list. */
void lease_owe(const struct work *ids);
void lease_take_owed(struct work *ids);

/* A reference of this node that came in: one of our resources, or any. */
term lease_term_or_ref(ErlNifEnv *env, const uint32_t *words, size_t len);

/* The words of a local reference of any kind. */
void lease_ref_words(term t, struct box_ref *ref);

#endif
