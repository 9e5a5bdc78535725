/* A state that outlives calls: init, update, final and clone. One call holds it at a time; the others
 * take turns. A call that was ended before its end leaves a state that says so, and never a wrong
 * digest. */
#ifndef SHA3_STREAMING_H
#define SHA3_STREAMING_H

#include "digest.h"

static inline void context_destroy(struct context *context)
{
    hasher_close(&context->hasher);
}

TAME_RESOURCE(context, struct context, context_destroy);

/* ---- init(Algorithm) ---- */

#define MUST_BE_ALGORITHM "must be an algorithm, as init/1 describes them"

/* The strength behind a name that begins as this one does, 128 or 256; or 0. */
static inline unsigned bits_of(const char *name, const char *begin)
{
    const size_t length = strlen(begin);

    if (strncmp(name, begin, length) != 0)
        return 0;
    return strcmp(name + length, "128") == 0 ? 128 : strcmp(name + length, "256") == 0 ? 256 : 0;
}

/* `name`, and the other elements of its tuple. Returns 0 when it is none. */
static inline int spec_of(ErlNifEnv *env, const char *name, const ERL_NIF_TERM *of, int count,
                          struct hasher_spec *spec)
{
    const struct sponge_kind *kind = sponge_find(name);
    unsigned char domain = 0x1f;
    unsigned bits;

    if (kind != NULL) {
        spec->form = HASHER_SPONGE;
        spec->kind = *kind;
        return count == 0;
    }
    if ((bits = bits_of(name, "turboshake")) != 0) {
        spec->form = HASHER_SPONGE;
        if (count > 1 || (count == 1 && !domain_of(env, of[0], &domain)))
            return 0;
        spec->kind = sponge_turboshake(bits, domain);
        return 1;
    }
    if ((spec->bits = bits_of(name, "kt")) != 0) {
        spec->form = HASHER_KT;
        return count == 0 ||
               (count == 1 && string_of(env, of[0], HASHER_KT_CUSTOM_MAX, &spec->custom));
    }
    if (count != 2 || !string_of(env, of[1], HASHER_STRING_MAX, &spec->custom))
        return 0;
    if ((spec->bits = bits_of(name, "cshake")) != 0) {
        spec->form = HASHER_CSHAKE;
        return string_of(env, of[0], HASHER_STRING_MAX, &spec->name);
    }
    spec->extendable = bits_of(name, "kmacxof") != 0;
    if ((spec->bits = bits_of(name, spec->extendable ? "kmacxof" : "kmac")) != 0) {
        spec->form = HASHER_KMAC;
        return string_of(env, of[0], HASHER_STRING_MAX, &spec->key);
    }
    spec->extendable = bits_of(name, "parallel_hash_xof") != 0;
    spec->bits = bits_of(name, spec->extendable ? "parallel_hash_xof" : "parallel_hash");
    spec->form = HASHER_PARALLEL;
    return spec->bits != 0 && leaf_size_of(env, of[0], &spec->leaf_size);
}

struct begin {
    struct context *context; /* owned until it is a term */
};

static enum tame_status begin_init(struct tame_call *call, void *state)
{
    struct begin *s = state;
    struct hasher_spec spec = {.form = HASHER_SPONGE};
    const ERL_NIF_TERM *elements = call->argv;
    char name[NAME_MAX_BYTES];
    int count = 1;

    if (!enif_is_atom(call->env, call->argv[0]) &&
        (!enif_get_tuple(call->env, call->argv[0], &count, &elements) || count < 2))
        return tame_badarg(call, 1, MUST_BE_ALGORITHM);
    if (!name_of(call->env, elements[0], name) ||
        !spec_of(call->env, name, elements + 1, count - 1, &spec))
        return tame_badarg(call, 1, MUST_BE_ALGORITHM);
    s->context = tame_resource_new(call->env, &context);
    if (s->context == NULL || !hasher_open(&s->context->hasher, library_keccak, &spec))
        return tame_enomem(call);
    s->context->whole = 1;
    return tame_ok(call, 1);
}

static enum tame_status begin_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    return TAME_DONE;
}

static ERL_NIF_TERM begin_result(struct tame_call *call, void *state)
{
    struct begin *s = state;
    const ERL_NIF_TERM term = tame_resource_term(call->env, s->context);

    s->context = NULL;
    return term;
}

static void begin_cleanup(void *state)
{
    struct begin *s = state;

    if (s->context != NULL)
        tame_resource_release(s->context);
}

static const struct tame_job begin = {
    .state_size = sizeof(struct begin),
    .init = begin_init,
    .step = begin_step,
    .result = begin_result,
    .cleanup = begin_cleanup,
};

/* ---- what goes on with one; argument 1 is the state ---- */

#define MUST_NOT_BE_FINAL "must be a state whose digest was not taken"
#define MUST_BE_WHOLE "must be a state of which no update was ended before its end"

/* NULL: return TAME_FAILED. */
static inline struct context *claim(struct tame_call *call)
{
    struct context *claimed = tame_claim(call, 0, &context);

    if (claimed == NULL)
        return NULL;
    if (claimed->final || !claimed->whole) {
        (void)tame_badarg(call, 1, claimed->final ? MUST_NOT_BE_FINAL : MUST_BE_WHOLE);
        return NULL;
    }
    return claimed;
}

/* update(State, Data) */
static enum tame_status update_init(struct tame_call *call, void *state)
{
    struct digest *s = state;

    s->context = claim(call);
    if (s->context == NULL)
        return TAME_FAILED;
    s->data = 1;
    if (!tame_input_iodata(call, 1, ROOT_CHUNK, &s->in))
        return tame_badarg(call, 2, MUST_BE_IODATA);
    s->context->whole = 0;
    return tame_ok(call, TAME_UNKNOWN);
}
DIGEST_JOB(update, update_init);

static inline enum tame_status final_begin(struct tame_call *call, struct digest *s, size_t size)
{
    s->context->final = 1;
    s->size = size;
    s->phase = ENDS;
    return tame_ok(call, size / 136 + 1);
}

/* final(State) */
static enum tame_status final_init(struct tame_call *call, void *state)
{
    struct digest *s = state;

    s->context = claim(call);
    if (s->context == NULL)
        return TAME_FAILED;
    if (s->context->hasher.digest == 0)
        return tame_badarg(call, 1, "must be a state of SHA-3: the others have final/2");
    return final_begin(call, s, s->context->hasher.digest);
}
DIGEST_JOB(final, final_init);

/* final(State, Length) */
static enum tame_status final_length_init(struct tame_call *call, void *state)
{
    struct digest *s = state;
    size_t size;

    s->context = claim(call);
    if (s->context == NULL || !get_digest_size(call, 1, &size))
        return TAME_FAILED;
    if (s->context->hasher.digest != 0)
        return tame_badarg(call, 1, "must be a state of another than SHA-3, which has final/1");
    return final_begin(call, s, size);
}
DIGEST_JOB(final_length, final_length_init);

/* clone(State) */
static enum tame_status clone_init(struct tame_call *call, void *state)
{
    struct begin *s = state;
    const struct context *from = claim(call);

    if (from == NULL)
        return TAME_FAILED;
    s->context = tame_resource_new(call->env, &context);
    if (s->context == NULL || !hasher_clone(&s->context->hasher, &from->hasher))
        return tame_enomem(call);
    s->context->whole = 1;
    return tame_ok(call, 1);
}

static const struct tame_job clone_job = {
    .state_size = sizeof(struct begin),
    .init = clone_init,
    .step = begin_step,
    .result = begin_result,
    .cleanup = begin_cleanup,
};

#define STREAMING_ROWS(JOB)                    \
    JOB(init_nif, 1, begin, TAME_AUTO)         \
    JOB(update_nif, 2, update, TAME_AUTO)      \
    JOB(final_nif, 1, final, TAME_AUTO)        \
    JOB(final_nif, 2, final_length, TAME_AUTO) \
    JOB(clone_nif, 1, clone_job, TAME_AUTO)

#endif
