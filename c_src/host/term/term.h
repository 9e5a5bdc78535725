/* Terms: words tagged exactly as the BEAM tags them, because libraries look (crypto tests atoms
 * bit by bit). What a pointer points to is our own.
 *
 *     ........01  list cell         two words: head, tail
 *     ........10  boxed             a header word, then what its kind says (structs below)
 *     ....0011    pid               60 bits: serial (32), number (28), of this node
 *     ....0111    port              60 bits: number, of this node
 *     ....1111    small integer     60 bits, signed
 *     ..001011    atom              index into the table in atom.c
 *     00111011    empty list
 *     00000000    no term: an exception, or "call again"
 *
 * A term lives as long as the environment that it was made in (env.h).
 */
#ifndef TAME_HOST_TERM_H
#define TAME_HOST_TERM_H

#include <stddef.h>
#include <stdint.h>

#include "memory/env.h"
#include "memory/nif.h"

#define TERM_NIL ((term)0x3b)
#define SMALL_MAX ((INT64_C(1) << 59) - 1)
#define SMALL_MIN (-(INT64_C(1) << 59))

/* A reference has 5 words of 32 bits at most, as the external format of OTP 24 and newer. */
#define REF_WORDS_MAX 5

enum box_kind {
    BOX_TUPLE,
    BOX_BIG,
    BOX_FLOAT,
    BOX_BINARY,
    BOX_MAP,
    BOX_REF,      /* of this node; its node is written when it goes out */
    BOX_RESOURCE, /* a reference by which the VM knows one of our resources */
    BOX_FOREIGN,  /* a pid, port or reference of another node, in external format */
    BOX_FUN       /* in external format */
};

/* header = size << 8 | kind; size is the arity of a tuple, the digits of a bignum, else 0. */
struct box {
    uint64_t header;
};

struct box_tuple {
    uint64_t header;
    term elements[];
};

struct box_big {
    uint64_t header;
    uint64_t negative;
    uint64_t digits[]; /* least first; the last is not 0 */
};

struct box_float {
    uint64_t header;
    double value;
};

/* The size in the header of a binary: 0, or one of these. */
#define BINARY_PART 1 /* enif_make_sub_binary made it */
#define BINARY_LENT 2 /* it lies in bytes that were read, perhaps not aligned: see binary.c */

struct box_binary {
    uint64_t header;
    const unsigned char *data;
    size_t size;          /* in bytes, a last incomplete one included */
    unsigned last_bits;   /* of the last byte, 1 to 7; 0: all bytes are whole */
    struct shared *owner; /* who keeps data; NULL: the term's environment does */
};

/* Smaller binaries are copied from one environment to another, as in the VM. */
#define BINARY_SHARE_BYTES 64

/* Room behind the bytes of every binary that a library can lay hands on. The VM's allocations are
 * rounded up too: a library that ends a text with one zero byte too many is not noticed there, and
 * must not be here. */
#define BINARY_SLACK_BYTES 8

/* Where the bytes of an argument lie, as in the VM. */
#define BINARY_ALIGN_BYTES 8

struct box_ref {
    uint64_t header;
    uint32_t len;
    uint32_t words[REF_WORDS_MAX];
};

struct box_resource {
    uint64_t header;
    struct resource *resource; /* kept by the term's environment */
};

/* Foreign identifiers and funs: never looked into, compared by their bytes. */
struct box_opaque {
    uint64_t header;
    ErlNifTermType type;
    size_t size;
    const unsigned char *bytes;
};

static inline int is_list_cell(term t)
{
    return (t & 3) == 1;
}

static inline int is_boxed(term t)
{
    return (t & 3) == 2;
}

/* The word is all of it: another word is another term. */
static inline int is_immediate(term t)
{
    return !is_list_cell(t) && !is_boxed(t);
}

static inline int is_small(term t)
{
    return (t & 15) == 15;
}

static inline int is_atom(term t)
{
    return (t & 63) == 0xb;
}

static inline int is_local_pid(term t)
{
    return (t & 15) == 3;
}

static inline int is_local_port(term t)
{
    return (t & 15) == 7;
}

static inline term *cell_of(term t)
{
    return (term *)(t - 1);
}

static inline void *box_of(term t)
{
    return (void *)(t - 2);
}

static inline term make_cell(const term *cell)
{
    return (term)cell + 1;
}

static inline term make_boxed(const void *box)
{
    return (term)box + 2;
}

static inline int is_kind(term t, enum box_kind kind)
{
    return is_boxed(t) && (((struct box *)box_of(t))->header & 0xff) == kind;
}

static inline enum box_kind box_kind(term t)
{
    return (enum box_kind)(((struct box *)box_of(t))->header & 0xff);
}

static inline uint64_t box_header(enum box_kind kind, size_t size)
{
    return (uint64_t)size << 8 | kind;
}

static inline size_t box_size(term t)
{
    return ((struct box *)box_of(t))->header >> 8;
}

static inline int64_t small_value(term t)
{
    return (int64_t)t >> 4;
}

static inline term make_small(int64_t value)
{
    return (term)value << 4 | 15;
}

static inline int is_tuple(term t)
{
    return is_kind(t, BOX_TUPLE);
}

static inline int is_number(term t)
{
    return is_small(t) || is_kind(t, BOX_BIG) || is_kind(t, BOX_FLOAT);
}

/* Numbers of any size; value and magnitude are copied. digits may have leading zeros. */
term term_integer(ErlNifEnv *env, int64_t value);
term term_unsigned(ErlNifEnv *env, uint64_t value);
term term_big(ErlNifEnv *env, int negative, const uint64_t *digits, size_t len);
term term_float(ErlNifEnv *env, double value);

/* A tuple whose elements the caller fills in at once: its address comes back in *elements. */
term term_new_tuple(ErlNifEnv *env, size_t arity, term **elements);
term term_tuple(ErlNifEnv *env, size_t arity, const term *elements);
term term_cons(ErlNifEnv *env, term head, term tail);

/* A binary of bytes that live as long as env does, or as long as owner, which env then keeps. */
term term_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits,
                 struct shared *owner);
/* A copy of bytes that lies in env, aligned and with room behind it. */
term term_small_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits);
term term_ref(ErlNifEnv *env, const uint32_t *words, size_t len);
term term_opaque(ErlNifEnv *env, enum box_kind kind, ErlNifTermType type,
                 const unsigned char *bytes, size_t size);

/* A binary of the bytes of a text, which lives as long as env does. */
term term_text(ErlNifEnv *env, const char *text);
term term_latin1(ErlNifEnv *env, const char *name); /* as UTF-8 */

/* What the API calls the type of a term. -1: it is none. */
ErlNifTermType term_type(term t);

/* An integer as its sign and magnitude, when that fits. Returns 0 when t is none, or too large. */
int term_magnitude(term t, int *negative, uint64_t *magnitude);

#endif
