/* What outlives a call: contexts of libzstd, and dictionaries, which many contexts share. */
#ifndef ZSTD_CONTEXT_H
#define ZSTD_CONTEXT_H

#include <tame.h>
#include <zstd.h>

/* Digested once; nobody writes to it once it is made. The contexts that use it keep it. */
struct dictionary {
    ZSTD_CDict *cdict;
    ZSTD_DDict *ddict;
};

struct compressor {
    ZSTD_CCtx *cctx;
    struct dictionary *dictionary; /* kept, or NULL */
    size_t block;                  /* bytes in the block that is not closed yet */
};

struct decompressor {
    ZSTD_DCtx *dctx;
    struct dictionary *dictionary; /* kept, or NULL */
    uint64_t read, written;        /* of the frames since the session began */
    size_t wants;                  /* what libzstd said last; 0: a frame is complete */
};

static inline void dictionary_destroy(struct dictionary *d)
{
    ZSTD_freeCDict(d->cdict); /* NULL is nothing to free */
    ZSTD_freeDDict(d->ddict);
}

static inline void compressor_destroy(struct compressor *c)
{
    ZSTD_freeCCtx(c->cctx);
    if (c->dictionary != NULL)
        tame_resource_release(c->dictionary);
}

static inline void decompressor_destroy(struct decompressor *d)
{
    ZSTD_freeDCtx(d->dctx);
    if (d->dictionary != NULL)
        tame_resource_release(d->dictionary);
}

TAME_RESOURCE(dictionary, struct dictionary, dictionary_destroy);
TAME_RESOURCE(compressor, struct compressor, compressor_destroy);
TAME_RESOURCE(decompressor, struct decompressor, decompressor_destroy);

/* ---- plain NIFs; on dirty schedulers, because libzstd makes tables of some MiB here ---- */

static inline ERL_NIF_TERM raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

static inline ERL_NIF_TERM new_dictionary(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Bytes, Level) -> Dictionary; badarg when the bytes are none */
    struct dictionary *d;
    ErlNifBinary bytes;
    int level;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes) || !enif_get_int(env, argv[1], &level))
        return enif_make_badarg(env);
    d = tame_resource_new(env, &dictionary);
    if (d == NULL)
        return raise_enomem(env);
    d->cdict = ZSTD_createCDict(bytes.data, bytes.size, level);
    d->ddict = ZSTD_createDDict(bytes.data, bytes.size);
    if (d->cdict == NULL || d->ddict == NULL) {
        tame_resource_release(d);
        return enif_make_badarg(env);
    }
    return tame_resource_term(env, d);
}

/* The dictionary of an argument, kept for a context, or NULL for the atom nil; 0 when it is neither. */
static inline int keep_dictionary(ErlNifEnv *env, ERL_NIF_TERM term, struct dictionary **kept)
{
    *kept = tame_resource_get(env, term, &dictionary);
    if (*kept != NULL)
        tame_resource_keep(*kept);
    return *kept != NULL || enif_is_identical(term, enif_make_atom(env, "nil"));
}

/* Sets the context up, and begins a frame that is thrown away: so the tables are made here, and the
 * first slice of a job finds them. */
static inline int compressor_open(struct compressor *c, int level, int checksum)
{
    char byte = 0, out[64];
    ZSTD_inBuffer from = {&byte, 1, 0};
    ZSTD_outBuffer to = {out, sizeof out, 0};

    c->cctx = ZSTD_createCCtx();
    return c->cctx != NULL &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(c->cctx, ZSTD_c_compressionLevel, level)) &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(c->cctx, ZSTD_c_checksumFlag, checksum)) &&
           (c->dictionary == NULL ||
            !ZSTD_isError(ZSTD_CCtx_refCDict(c->cctx, c->dictionary->cdict))) &&
           !ZSTD_isError(ZSTD_compressStream2(c->cctx, &to, &from, ZSTD_e_continue)) &&
           !ZSTD_isError(ZSTD_CCtx_reset(c->cctx, ZSTD_reset_session_only));
}

static inline ERL_NIF_TERM new_compressor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Level, Checksum :: 0 | 1, Dictionary | nil) -> Compressor */
    struct compressor *c;
    int level, checksum;

    (void)argc;
    if (!enif_get_int(env, argv[0], &level) || !enif_get_int(env, argv[1], &checksum))
        return enif_make_badarg(env);
    c = tame_resource_new(env, &compressor);
    if (c == NULL)
        return raise_enomem(env);
    if (!keep_dictionary(env, argv[2], &c->dictionary)) {
        tame_resource_release(c);
        return enif_make_badarg(env);
    }
    if (!compressor_open(c, level, checksum)) {
        tame_resource_release(c);
        return raise_enomem(env);
    }
    return tame_resource_term(env, c);
}

static inline ERL_NIF_TERM new_decompressor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Dictionary | nil) -> Decompressor */
    struct decompressor *d = tame_resource_new(env, &decompressor);

    (void)argc;
    if (d == NULL)
        return raise_enomem(env);
    if (!keep_dictionary(env, argv[0], &d->dictionary)) {
        tame_resource_release(d);
        return enif_make_badarg(env);
    }
    d->dctx = ZSTD_createDCtx();
    if (d->dctx == NULL || (d->dictionary != NULL &&
                            ZSTD_isError(ZSTD_DCtx_refDDict(d->dctx, d->dictionary->ddict)))) {
        tame_resource_release(d);
        return raise_enomem(env);
    }
    return tame_resource_term(env, d);
}

#endif
