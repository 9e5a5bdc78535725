/* The work of a call: iodata goes into a hasher, of the call's own or of a state that outlives it, and
 * a digest comes out. */
#ifndef SHA3_DIGEST_H
#define SHA3_DIGEST_H

#include "arguments.h"

#define ROOT_CHUNK 0 /* and the one behind it */
#define ROOT_DIGEST 2

/* A digest of that size is a binary on the heap of its process. */
#define DIGEST_SMALL 64

/* A state that outlives calls; a call has claimed it while it works on it. */
struct context {
    struct hasher hasher;
    int whole; /* 0 while an update is under way, and for ever when that was ended */
    int final; /* its digest was taken, or begun */
};

/* An update ends with WHOLE. */
enum phase { ABSORBS, WHOLE, ENDS, SQUEEZES };

struct digest {
    struct context *context; /* claimed; NULL: the call's own hasher */
    struct hasher own;
    struct tame_iodata in;
    size_t read; /* of the chunk */
    int data;    /* the argument with the iodata, counted from 0 */
    enum phase phase;
    size_t size, squeezed;
    struct tame_output large;
};

static inline struct hasher *digest_hasher(struct digest *s)
{
    return s->context != NULL ? &s->context->hasher : &s->own;
}

/* Each chunk counts as a block besides its own, so that many short ones, or empty ones, are work. */
static enum tame_status digest_absorb(struct tame_call *call, struct digest *s, size_t *blocks)
{
    while (*blocks > 0) {
        if (s->read < s->in.size) {
            s->read +=
                hasher_absorb(digest_hasher(s), s->in.data + s->read, s->in.size - s->read, blocks);
            continue;
        }
        switch (tame_iodata_next(call, &s->in)) {
        case 0:
            s->phase = s->context != NULL ? WHOLE : ENDS;
            return TAME_MORE;
        case 1:
            s->read = 0;
            --*blocks;
            break;
        default:
            return tame_badarg(call, s->data + 1, MUST_BE_IODATA);
        }
    }
    return TAME_MORE;
}

static enum tame_status digest_squeeze(struct tame_call *call, struct digest *s, size_t *blocks)
{
    const size_t rate = 136; /* the least of those with digests that are worth cutting */
    size_t size = s->size - s->squeezed;

    if (s->size <= DIGEST_SMALL) {
        hasher_squeeze(digest_hasher(s),
                       enif_make_new_binary(call->env, s->size, &call->root[ROOT_DIGEST]), s->size);
        return TAME_DONE;
    }
    if (s->large.data == NULL && !tame_output_new(&s->large, s->size))
        return tame_enomem(call);
    if (size / rate >= *blocks)
        size = *blocks * rate;
    hasher_squeeze(digest_hasher(s), s->large.data + s->squeezed, size);
    s->squeezed += size;
    *blocks -= size / rate;
    return s->squeezed == s->size ? TAME_DONE : TAME_MORE;
}

/* A unit is a permutation. */
static enum tame_status digest_step(struct tame_call *call, void *state, size_t units)
{
    struct digest *s = state;
    enum tame_status status = TAME_MORE;
    size_t blocks = units;

    while (status == TAME_MORE && blocks > 0) {
        switch (s->phase) {
        case ABSORBS:
            status = digest_absorb(call, s, &blocks);
            break;
        case ENDS:
            if (hasher_end(digest_hasher(s), s->size, &blocks))
                s->phase = SQUEEZES;
            break;
        case SQUEEZES:
            status = digest_squeeze(call, s, &blocks);
            break;
        case WHOLE:
            s->context->whole = 1;
            return TAME_DONE;
        }
    }
    return status;
}

static ERL_NIF_TERM digest_result(struct tame_call *call, void *state)
{
    struct digest *s = state;

    if (s->phase == WHOLE)
        return call->argv[0];
    return s->size > DIGEST_SMALL ? tame_output_term(call, &s->large) : call->root[ROOT_DIGEST];
}

static void digest_cleanup(void *state)
{
    struct digest *s = state;

    hasher_close(&s->own); /* of zeros, where a context did the work */
    if (s->context != NULL && s->context->final)
        hasher_close(&s->context->hasher);
    tame_output_free(&s->large);
}

/* The end of an init: with the algorithm and the size of the digest, and the argument with the data. */
static inline enum tame_status digest_begin(struct tame_call *call, struct digest *s,
                                            const struct hasher_spec *spec, int data, size_t size)
{
    ErlNifBinary binary;

    s->data = data;
    s->size = size;
    /* Less than a block is mixed in here: nothing is permuted yet. */
    if (spec->form == HASHER_SPONGE && enif_inspect_binary(call->env, call->argv[data], &binary) &&
        binary.size < spec->kind.rate) {
        sponge_open(&s->own.sponge, library_keccak, &spec->kind);
        sponge_absorb(&s->own.sponge, binary.data, binary.size);
        s->phase = SQUEEZES;
        return tame_ok(call, TAME_UNKNOWN);
    }
    if (!tame_input_iodata(call, data, ROOT_CHUNK, &s->in))
        return tame_badarg(call, data + 1, MUST_BE_IODATA);
    if (!hasher_open(&s->own, library_keccak, spec))
        return tame_enomem(call);
    return tame_ok(call, TAME_UNKNOWN);
}

#define DIGEST_JOB(NAME, INIT)               \
    static const struct tame_job NAME = {    \
        .state_size = sizeof(struct digest), \
        .init = INIT,                        \
        .step = digest_step,                 \
        .result = digest_result,             \
        .cleanup = digest_cleanup,           \
        .terms = 1,                          \
    }

#endif
