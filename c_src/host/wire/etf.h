/* The external term format, in and out, without recursion: terms nest as deep as memory allows. */
#ifndef TAME_HOST_ETF_H
#define TAME_HOST_ETF_H

#include "memory/work.h"
#include "port/etf_cursor.h"
#include "term/term.h"

enum etf_flags {
    ETF_BORROW = 1,     /* reading: binaries may point into the bytes, which outlive env */
    ETF_TRUSTED = 2,    /* reading: from the VM; its atoms exist there, its maps are in order */
    ETF_SAFE = 4,       /* reading: no new atoms */
    ETF_COMPARABLE = 8, /* writing: for the library, byte for byte as the VM writes it */
    ETF_ASK = 16,       /* reading: the VM may be asked; not by who reads its answers */
    ETF_SHOWN = 32,     /* sizing: the library may keep the bytes */
    ETF_QUESTION = 64   /* sizing: the VM reads it, answers and forgets it */
};

/* Reads one term, with or without the version byte before it unless flags say otherwise. Returns
 * how many bytes it took, 0: not a term. */
size_t etf_read(ErlNifEnv *env, const unsigned char *bytes, size_t size, int flags, term *out);

/* What a term needs before it can go out; see etf_size. Its arrays are on the heap. */
struct etf_out {
    size_t size;        /* without the version byte */
    size_t most;        /* nobody takes more: what is larger is not counted to its end */
    struct work atoms;  /* term: atoms that the VM does not know of yet */
    struct work leases; /* uint64_t: leases that go out for the first time */
    struct work resent; /* struct resource *: known to the VM, which may have forgotten them */
};

void etf_out_init(struct etf_out *out);
void etf_out_free(struct etf_out *out);

/* Writing is done in two steps, so that it can be done in place. The first counts, gives resources
 * their leases (term/lease.h) and notes what the VM must be asked. No version byte is counted or
 * written. A term whose parts are shared may be larger than any memory: counting ends with the first
 * part beyond `most`, and what was noted of it is then not all. */
void etf_size(term t, int flags, struct etf_out *out);
unsigned char *etf_write(term t, unsigned char *to);

#endif
