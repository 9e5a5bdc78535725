/* The same work as it is usually written: one dirty NIF that does all of it. For comparison. */
#include <erl_nif.h>
#include <zstd.h>

static ErlNifResourceType *cctx_type, *dctx_type;

static void cctx_destroy(ErlNifEnv *env, void *object)
{
    (void)env;
    ZSTD_freeCCtx(*(ZSTD_CCtx **)object);
}

static void dctx_destroy(ErlNifEnv *env, void *object)
{
    (void)env;
    ZSTD_freeDCtx(*(ZSTD_DCtx **)object);
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    (void)priv;
    (void)info;
    cctx_type = enif_open_resource_type(env, NULL, "cctx", cctx_destroy, ERL_NIF_RT_CREATE, NULL);
    dctx_type = enif_open_resource_type(env, NULL, "dctx", dctx_destroy, ERL_NIF_RT_CREATE, NULL);
    return cctx_type == NULL || dctx_type == NULL;
}

static ERL_NIF_TERM compressor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Level) -> Compressor */
    ZSTD_CCtx **c = enif_alloc_resource(cctx_type, sizeof *c);
    ERL_NIF_TERM term = enif_make_resource(env, c);
    int level;

    (void)argc;
    enif_release_resource(c); /* the term's */
    *c = ZSTD_createCCtx();
    if (*c == NULL || !enif_get_int(env, argv[0], &level) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(*c, ZSTD_c_compressionLevel, level)) ||
        ZSTD_isError(ZSTD_CCtx_setParameter(*c, ZSTD_c_checksumFlag, 1)))
        return enif_make_badarg(env);
    return term;
}

static ERL_NIF_TERM decompressor(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> Decompressor */
    ZSTD_DCtx **d = enif_alloc_resource(dctx_type, sizeof *d);
    ERL_NIF_TERM term = enif_make_resource(env, d);

    (void)argc;
    (void)argv;
    enif_release_resource(d); /* the term's */
    *d = ZSTD_createDCtx();
    return *d == NULL ? enif_make_badarg(env) : term;
}

static ERL_NIF_TERM compress(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Compressor, Iodata) -> binary() */
    ErlNifBinary from, to;
    void *c;
    size_t size;

    (void)argc;
    if (!enif_get_resource(env, argv[0], cctx_type, &c) ||
        !enif_inspect_iolist_as_binary(env, argv[1], &from) ||
        !enif_alloc_binary(ZSTD_compressBound(from.size), &to))
        return enif_make_badarg(env);
    size = ZSTD_compress2(*(ZSTD_CCtx **)c, to.data, to.size, from.data, from.size);
    if (ZSTD_isError(size) || !enif_realloc_binary(&to, size)) {
        enif_release_binary(&to);
        return enif_make_badarg(env);
    }
    return enif_make_binary(env, &to); /* the term's */
}

static ERL_NIF_TERM decompress(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Decompressor, Binary) -> binary(): a frame that says its size */
    ErlNifBinary from, to;
    void *d;
    size_t size;

    (void)argc;
    if (!enif_get_resource(env, argv[0], dctx_type, &d) ||
        !enif_inspect_binary(env, argv[1], &from) ||
        !enif_alloc_binary(ZSTD_getFrameContentSize(from.data, from.size), &to))
        return enif_make_badarg(env);
    size = ZSTD_decompressDCtx(*(ZSTD_DCtx **)d, to.data, to.size, from.data, from.size);
    if (ZSTD_isError(size)) {
        enif_release_binary(&to);
        return enif_make_badarg(env);
    }
    return enif_make_binary(env, &to); /* the term's */
}

static ErlNifFunc functions[] = {{"compressor", 1, compressor, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"decompressor", 0, decompressor, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"compress", 2, compress, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"decompress", 2, decompress, ERL_NIF_DIRTY_JOB_CPU_BOUND}};

ERL_NIF_INIT(Elixir.ZstdDirty, functions, load, NULL, NULL, NULL)
