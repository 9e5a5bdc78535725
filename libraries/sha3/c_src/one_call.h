/* The functions that hash in one call. The arguments come in the order of the standards. */
#ifndef SHA3_ONE_CALL_H
#define SHA3_ONE_CALL_H

#include "digest.h"

/* hash(Algorithm, Data) */
static enum tame_status hash_init(struct tame_call *call, void *state)
{
    const struct hasher_spec *spec = get_sha3(call, 0);

    if (spec == NULL)
        return TAME_FAILED;
    return digest_begin(call, state, spec, 1, spec->kind.digest);
}
DIGEST_JOB(hash, hash_init);

/* (Data, Length) */
static inline enum tame_status plain_begin(struct tame_call *call, void *state,
                                           const struct hasher_spec *spec)
{
    size_t size;

    if (!get_digest_size(call, 1, &size))
        return TAME_FAILED;
    return digest_begin(call, state, spec, 0, size);
}

/* turboshake(Data, Domain, Length) */
static inline enum tame_status domain_begin(struct tame_call *call, void *state, unsigned bits)
{
    struct hasher_spec spec = {.form = HASHER_SPONGE};
    unsigned char domain;
    size_t size;

    if (!get_domain(call, 1, &domain) || !get_digest_size(call, 2, &size))
        return TAME_FAILED;
    spec.kind = sponge_turboshake(bits, domain);
    return digest_begin(call, state, &spec, 0, size);
}

/* kt(Data, Custom, Length) */
static inline enum tame_status kt_begin(struct tame_call *call, void *state, unsigned bits)
{
    struct hasher_spec spec = {.form = HASHER_KT, .bits = bits};
    size_t size;

    if (!get_kt_custom(call, 1, &spec.custom) || !get_digest_size(call, 2, &size))
        return TAME_FAILED;
    return digest_begin(call, state, &spec, 0, size);
}

/* cshake(Data, Length, Name, Custom) */
static inline enum tame_status cshake_begin(struct tame_call *call, void *state, unsigned bits)
{
    struct hasher_spec spec = {.form = HASHER_CSHAKE, .bits = bits};
    size_t size;

    if (!get_digest_size(call, 1, &size) || !get_string(call, 2, &spec.name) ||
        !get_string(call, 3, &spec.custom))
        return TAME_FAILED;
    return digest_begin(call, state, &spec, 0, size);
}

/* kmac(Key, Data, Length, Custom) */
static inline enum tame_status kmac_begin(struct tame_call *call, void *state, unsigned bits,
                                          int extendable)
{
    struct hasher_spec spec = {.form = HASHER_KMAC, .bits = bits, .extendable = extendable};
    size_t size;

    if (!get_string(call, 0, &spec.key) || !get_digest_size(call, 2, &size) ||
        !get_string(call, 3, &spec.custom))
        return TAME_FAILED;
    return digest_begin(call, state, &spec, 1, size);
}

/* parallel_hash(Data, LeafSize, Length, Custom) */
static inline enum tame_status parallel_begin(struct tame_call *call, void *state, unsigned bits,
                                              int extendable)
{
    struct hasher_spec spec = {.form = HASHER_PARALLEL, .bits = bits, .extendable = extendable};
    size_t size;

    if (!get_leaf_size(call, 1, &spec.leaf_size) || !get_digest_size(call, 2, &size) ||
        !get_string(call, 3, &spec.custom))
        return TAME_FAILED;
    return digest_begin(call, state, &spec, 0, size);
}

/* All of them at both strengths. */
#define STRENGTH(BITS)                                                                          \
    static enum tame_status shake##BITS##_init(struct tame_call *call, void *state)             \
    {                                                                                           \
        const struct hasher_spec spec = {.form = HASHER_SPONGE, .kind = sponge_shake##BITS};    \
        return plain_begin(call, state, &spec);                                                 \
    }                                                                                           \
    static enum tame_status turboshake##BITS##_init(struct tame_call *call, void *state)        \
    {                                                                                           \
        const struct hasher_spec spec = {.form = HASHER_SPONGE,                                 \
                                         .kind = sponge_turboshake(BITS, 0x1f)};                \
        return plain_begin(call, state, &spec);                                                 \
    }                                                                                           \
    static enum tame_status turboshake##BITS##_domain_init(struct tame_call *call, void *state) \
    {                                                                                           \
        return domain_begin(call, state, BITS);                                                 \
    }                                                                                           \
    static enum tame_status kt##BITS##_init(struct tame_call *call, void *state)                \
    {                                                                                           \
        const struct hasher_spec spec = {.form = HASHER_KT, .bits = BITS};                      \
        return plain_begin(call, state, &spec);                                                 \
    }                                                                                           \
    static enum tame_status kt##BITS##_custom_init(struct tame_call *call, void *state)         \
    {                                                                                           \
        return kt_begin(call, state, BITS);                                                     \
    }                                                                                           \
    static enum tame_status cshake##BITS##_init(struct tame_call *call, void *state)            \
    {                                                                                           \
        return cshake_begin(call, state, BITS);                                                 \
    }                                                                                           \
    static enum tame_status kmac##BITS##_init(struct tame_call *call, void *state)              \
    {                                                                                           \
        return kmac_begin(call, state, BITS, 0);                                                \
    }                                                                                           \
    static enum tame_status kmacxof##BITS##_init(struct tame_call *call, void *state)           \
    {                                                                                           \
        return kmac_begin(call, state, BITS, 1);                                                \
    }                                                                                           \
    static enum tame_status parallel_hash##BITS##_init(struct tame_call *call, void *state)     \
    {                                                                                           \
        return parallel_begin(call, state, BITS, 0);                                            \
    }                                                                                           \
    static enum tame_status parallel_hash_xof##BITS##_init(struct tame_call *call, void *state) \
    {                                                                                           \
        return parallel_begin(call, state, BITS, 1);                                            \
    }                                                                                           \
    DIGEST_JOB(shake##BITS, shake##BITS##_init);                                                \
    DIGEST_JOB(turboshake##BITS, turboshake##BITS##_init);                                      \
    DIGEST_JOB(turboshake##BITS##_domain, turboshake##BITS##_domain_init);                      \
    DIGEST_JOB(kt##BITS, kt##BITS##_init);                                                      \
    DIGEST_JOB(kt##BITS##_custom, kt##BITS##_custom_init);                                      \
    DIGEST_JOB(cshake##BITS, cshake##BITS##_init);                                              \
    DIGEST_JOB(kmac##BITS, kmac##BITS##_init);                                                  \
    DIGEST_JOB(kmacxof##BITS, kmacxof##BITS##_init);                                            \
    DIGEST_JOB(parallel_hash##BITS, parallel_hash##BITS##_init);                                \
    DIGEST_JOB(parallel_hash_xof##BITS, parallel_hash_xof##BITS##_init)

STRENGTH(128);
STRENGTH(256);

/* Their rows in the function table. */
#define STRENGTH_ROWS(JOB, BITS)                                         \
    JOB(shake##BITS##_nif, 2, shake##BITS, TAME_AUTO)                    \
    JOB(turboshake##BITS##_nif, 2, turboshake##BITS, TAME_AUTO)          \
    JOB(turboshake##BITS##_nif, 3, turboshake##BITS##_domain, TAME_AUTO) \
    JOB(kt##BITS##_nif, 2, kt##BITS, TAME_AUTO)                          \
    JOB(kt##BITS##_nif, 3, kt##BITS##_custom, TAME_AUTO)                 \
    JOB(cshake##BITS##_nif, 4, cshake##BITS, TAME_AUTO)                  \
    JOB(kmac##BITS##_nif, 4, kmac##BITS, TAME_AUTO)                      \
    JOB(kmacxof##BITS##_nif, 4, kmacxof##BITS, TAME_AUTO)                \
    JOB(parallel_hash##BITS##_nif, 4, parallel_hash##BITS, TAME_AUTO)    \
    JOB(parallel_hash_xof##BITS##_nif, 4, parallel_hash_xof##BITS, TAME_AUTO)

#endif
