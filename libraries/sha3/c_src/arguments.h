/* What the functions of tame_sha3 take, looked up in terms; and what they say when it is wrong. */
#ifndef SHA3_ARGUMENTS_H
#define SHA3_ARGUMENTS_H

#include "hasher.h"

#include <tame.h>

/* Chosen when the library is loaded; read only from then on. */
extern const struct keccak *library_keccak;

/* The four SHA-3s by the atoms that are their names; made when the library is loaded, and read only from
 * then on. To compare atoms takes 1 ns, and their texts 10. */
#define SHA3S 4

struct sha3 {
    ERL_NIF_TERM name;
    struct hasher_spec spec;
};

extern struct sha3 library_sha3s[SHA3S];

/* The longest digest that can be asked for. */
#define DIGEST_MAX ((ErlNifUInt64)1 << 34)

#define MUST_BE_IODATA "must be iodata"
#define MUST_BE_SHA3 "must be sha3_224, sha3_256, sha3_384 or sha3_512"
#define MUST_BE_LENGTH "must be a number of bytes, from 0 to 17179869184"
#define MUST_BE_STRING "must be a binary of at most 8192 bytes"
#define MUST_BE_KT_CUSTOM "must be a binary of at most 1048576 bytes"
#define MUST_BE_DOMAIN "must be a domain, from 1 to 127"
#define MUST_BE_LEAF_SIZE "must be the bytes of a leaf, from 1 to 17179869184"

/* The longest name of an algorithm, and the 0 behind it. */
#define NAME_MAX_BYTES 24

/* Arguments are counted from 0. These return 1, or 0 with the call failed. */

static inline int get_digest_size(struct tame_call *call, int arg, size_t *size)
{
    ErlNifUInt64 number;

    if (!enif_get_uint64(call->env, call->argv[arg], &number) || number > DIGEST_MAX) {
        (void)tame_badarg(call, arg + 1, MUST_BE_LENGTH);
        return 0;
    }
    *size = (size_t)number;
    return 1;
}

static inline int name_of(ErlNifEnv *env, ERL_NIF_TERM term, char name[NAME_MAX_BYTES])
{
    const int size = enif_get_atom(env, term, name, NAME_MAX_BYTES, ERL_NIF_LATIN1);

    return size > 0 && strlen(name) + 1 == (size_t)size; /* no 0 in it */
}

static inline int string_of(ErlNifEnv *env, ERL_NIF_TERM term, size_t most,
                            struct hasher_string *string)
{
    ErlNifBinary binary;

    if (!enif_inspect_binary(env, term, &binary) || binary.size > most)
        return 0;
    string->bytes = binary.data;
    string->size = binary.size;
    return 1;
}

/* The functions have the option `iodata` for such an argument, so a large binary comes as a list, and
 * is refused without a look at it: one that begins in the middle of a byte would be copied. */
static inline int get_string(struct tame_call *call, int arg, struct hasher_string *string)
{
    if (string_of(call->env, call->argv[arg], HASHER_STRING_MAX, string))
        return 1;
    (void)tame_badarg(call, arg + 1, MUST_BE_STRING);
    return 0;
}

/* The customization string of KangarooTwelve, which goes in behind the message, in steps. */
static inline int get_kt_custom(struct tame_call *call, int arg, struct hasher_string *string)
{
    if (string_of(call->env, call->argv[arg], HASHER_KT_CUSTOM_MAX, string))
        return 1;
    (void)tame_badarg(call, arg + 1, MUST_BE_KT_CUSTOM);
    return 0;
}

static inline int domain_of(ErlNifEnv *env, ERL_NIF_TERM term, unsigned char *domain)
{
    int number;

    if (!enif_get_int(env, term, &number) || number < 1 || number > 127)
        return 0;
    *domain = (unsigned char)number;
    return 1;
}

static inline int get_domain(struct tame_call *call, int arg, unsigned char *domain)
{
    if (domain_of(call->env, call->argv[arg], domain))
        return 1;
    (void)tame_badarg(call, arg + 1, MUST_BE_DOMAIN);
    return 0;
}

static inline int leaf_size_of(ErlNifEnv *env, ERL_NIF_TERM term, size_t *size)
{
    ErlNifUInt64 number;

    if (!enif_get_uint64(env, term, &number) || number < 1 || number > DIGEST_MAX)
        return 0;
    *size = (size_t)number;
    return 1;
}

static inline int get_leaf_size(struct tame_call *call, int arg, size_t *size)
{
    if (leaf_size_of(call->env, call->argv[arg], size))
        return 1;
    (void)tame_badarg(call, arg + 1, MUST_BE_LEAF_SIZE);
    return 0;
}

/* One of the four SHA-3s, whose digest has a size of its own; NULL with the call failed. */
static inline const struct hasher_spec *get_sha3(struct tame_call *call, int arg)
{
    for (int i = 0; i < SHA3S; i++)
        if (enif_is_identical(call->argv[arg], library_sha3s[i].name))
            return &library_sha3s[i].spec;
    (void)tame_badarg(call, arg + 1, MUST_BE_SHA3);
    return NULL;
}

#endif
