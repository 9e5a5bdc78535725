/* hash_many(Algorithm, [binary()]): messages hashed abreast, and keccak_f1600(binary()). */
#ifndef SHA3_MANY_H
#define SHA3_MANY_H

#include "arguments.h"
#include "hash_many.h"

#include <stdlib.h>

#define MUST_BE_BINARIES "must be a list of binaries, none of which begins in the middle of a byte"

#define ROOT_LEFT 0    /* messages that are not counted, or not taken yet */
#define ROOT_DIGESTS 1 /* the list that is made from its end */

/* The number of messages that are counted in the time in which a block is permuted. */
#define COUNTS_PER_BLOCK 16

struct many {
    struct hash_many *work; /* owned; its pointers go into it, and this struct moves */
    unsigned char *digests; /* owned; one behind the other */
    size_t digest;          /* bytes of one */
    size_t count, taken, made;
    int counted;
};

static enum tame_status many_init(struct tame_call *call, void *state)
{
    struct many *s = state;
    const struct hasher_spec *spec = get_sha3(call, 0);

    if (spec == NULL)
        return TAME_FAILED;
    s->work = malloc(sizeof *s->work); /* freed by many_cleanup */
    if (s->work == NULL)
        return tame_enomem(call);
    hash_many_init(s->work, library_keccak, &spec->kind, spec->kind.digest);
    s->digest = spec->kind.digest;
    call->root[ROOT_LEFT] = call->argv[1];
    return tame_ok(call, TAME_UNKNOWN);
}

/* Returns TAME_DONE when all are counted. */
static enum tame_status many_count(struct tame_call *call, struct many *s, size_t *blocks)
{
    ERL_NIF_TERM head, *left = &call->root[ROOT_LEFT];

    for (; *blocks > 0; --*blocks)
        for (int i = 0; i < COUNTS_PER_BLOCK; i++) {
            if (!enif_get_list_cell(call->env, *left, &head, left)) {
                if (!enif_is_empty_list(call->env, *left))
                    return tame_badarg(call, 2, MUST_BE_BINARIES);
                s->digests = malloc(s->count * s->digest + 1); /* freed by many_cleanup */
                if (s->digests == NULL)
                    return tame_enomem(call);
                *left = call->argv[1];
                s->counted = 1;
                return TAME_DONE;
            }
            s->count++;
        }
    return TAME_MORE;
}

/* What lies outside the heap stays where it is while its term lives; what lies on the heap is no
 * longer than 64 bytes, less than a block, and hash_many copies that. A binary that begins in the
 * middle of a byte is copied each time that it is looked at, so two looks at its start differ: at none
 * of its bytes before OTP 27, at the first 65 later, which is too late not to look at all of it. */
static inline int same_place(ErlNifEnv *env, ERL_NIF_TERM message, size_t size)
{
    const ERL_NIF_TERM start = enif_make_sub_binary(env, message, 0, size);
    ErlNifBinary one, two;

    return enif_inspect_binary(env, start, &one) && enif_inspect_binary(env, start, &two) &&
           one.data == two.data;
}

static inline int look_at(ErlNifEnv *env, ERL_NIF_TERM message, ErlNifBinary *bytes)
{
    return enif_is_binary(env, message) && same_place(env, message, 0) &&
           enif_inspect_binary(env, message, bytes) &&
           (bytes->size < 65 || same_place(env, message, 65));
}

/* Puts messages into the works as long as there is a place. */
static enum tame_status many_take(struct tame_call *call, struct many *s)
{
    ERL_NIF_TERM head, tail;
    ErlNifBinary bytes;

    while (enif_get_list_cell(call->env, call->root[ROOT_LEFT], &head, &tail)) {
        if (!look_at(call->env, head, &bytes))
            return tame_badarg(call, 2, MUST_BE_BINARIES);
        if (!hash_many_put(s->work, bytes.data, bytes.size, s->digests + s->taken * s->digest))
            break;
        s->taken++;
        call->root[ROOT_LEFT] = tail;
    }
    return TAME_MORE;
}

/* A unit is a permutation. */
static enum tame_status many_step(struct tame_call *call, void *state, size_t units)
{
    struct many *s = state;
    enum tame_status status;
    size_t blocks = units;

    if (!s->counted) {
        status = many_count(call, s, &blocks);
        if (status != TAME_DONE)
            return status;
    }
    for (;;) {
        status = many_take(call, s);
        if (status != TAME_MORE)
            return status;
        if (hash_many_busy(s->work) == 0)
            return TAME_DONE;
        if (blocks == 0)
            return TAME_MORE;
        hash_many_step(s->work, &blocks);
    }
}

/* A unit is a digest. */
static enum tame_status many_build(struct tame_call *call, void *state, size_t units)
{
    struct many *s = state;
    ERL_NIF_TERM digest;

    for (; units > 0 && s->made < s->count; units--, s->made++) {
        unsigned char *to = enif_make_new_binary(call->env, s->digest, &digest);

        memcpy(to, s->digests + (s->count - 1 - s->made) * s->digest, s->digest);
        call->root[ROOT_DIGESTS] = enif_make_list_cell(call->env, digest, call->root[ROOT_DIGESTS]);
    }
    return s->made < s->count ? TAME_MORE : TAME_DONE;
}

static ERL_NIF_TERM many_result(struct tame_call *call, void *state)
{
    (void)state;
    return call->root[ROOT_DIGESTS];
}

static void many_cleanup(void *state)
{
    struct many *s = state;

    if (s->work != NULL)
        wipe(s->work, sizeof *s->work);
    free(s->work);
    free(s->digests);
}

static const struct tame_job many = {
    .state_size = sizeof(struct many),
    .init = many_init,
    .step = many_step,
    .build = many_build,
    .result = many_result,
    .cleanup = many_cleanup,
    .terms = 1,
};

/* ---- the bare permutation ---- */

#define STATE_BYTES (8 * KECCAK_LANES)

struct permutation {
    uint64_t lanes[KECCAK_LANES];
};

static enum tame_status permutation_init(struct tame_call *call, void *state)
{
    struct permutation *s = state;
    ErlNifBinary bytes;

    if (!enif_inspect_binary(call->env, call->argv[0], &bytes) || bytes.size != STATE_BYTES)
        return tame_badarg(call, 1, "must be a binary of 200 bytes");
    for (unsigned l = 0; l < KECCAK_LANES; l++)
        s->lanes[l] = lane_load(bytes.data + 8 * l);
    return tame_ok(call, 1);
}

static enum tame_status permutation_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)units;
    keccak_permute(library_keccak, ((struct permutation *)state)->lanes, 24);
    return TAME_DONE;
}

static ERL_NIF_TERM permutation_result(struct tame_call *call, void *state)
{
    const struct permutation *s = state;
    ERL_NIF_TERM term;
    unsigned char *to = enif_make_new_binary(call->env, STATE_BYTES, &term);

    for (unsigned l = 0; l < KECCAK_LANES; l++)
        lane_store_some(to + 8 * l, s->lanes[l], 8);
    return term;
}

static void permutation_cleanup(void *state)
{
    wipe(state, sizeof(struct permutation));
}

static const struct tame_job permutation = {
    .state_size = sizeof(struct permutation),
    .init = permutation_init,
    .step = permutation_step,
    .result = permutation_result,
    .cleanup = permutation_cleanup,
};

#endif
