/* The atom table. An atom is never removed, and its word is the same for the process's life,
 * because libraries keep atoms in statics. Reading takes no lock.
 *
 * The VM creates atoms, not we: an atom first named here is *undeclared* until the VM has been
 * told of it, which happens before anything that names it goes out (wire/prepare.h).
 */
#ifndef TAME_HOST_ATOM_H
#define TAME_HOST_ATOM_H

#include "memory/name.h"
#include "term/term.h"

struct atom {
    struct atom *next; /* with the same hash */
    uint64_t hash;
    term word;
    _Atomic int declared;
    unsigned short size, chars; /* of the name, in bytes of UTF-8 and in characters */
    unsigned char latin1;       /* every character is below 256 */
    unsigned char name[];       /* UTF-8, then a zero byte */
};

/* The atoms that we name ourselves, or most libraries do: X(word of C, name). The first two are 0
 * and 1 in the VM too. */
#define ATOMS(X)              \
    X(false, "false")         \
    X(true, "true")           \
    X(undefined, "undefined") \
    X(badarg, "badarg")       \
    X(error, "error")         \
    X(ok, "ok")               \
    X(positive, "positive")   \
    X(monotonic, "monotonic")

enum atom_known {
#define X(id, name) ATOM_##id,
    ATOMS(X)
#undef X
        ATOM_KNOWN_LEN
};

#define ATOM(id) ((term)ATOM_##id << 6 | 0xb)

/* Before anything else: makes those. */
void atom_init(void);

/* The atom of this name, made if it is new. TERM_NONE: not UTF-8, or too long. declared: the VM
 * has it. */
term atom_make(const unsigned char *utf8, size_t size, int declared);
term atom_make_latin1(const unsigned char *latin1, size_t size, int declared);

/* An atom that the VM has. */
#define ATOM_LITERAL(name) atom_make((const unsigned char *)"" name, sizeof name - 1, 1)
term atom_named(const char *utf8);

/* TERM_NONE: not here. */
term atom_find(const unsigned char *utf8, size_t size);

struct atom *atom_of(term t);
int atom_compare(term a, term b);

#endif
