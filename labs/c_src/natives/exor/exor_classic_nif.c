/* exor as it is written by hand, in three forms that tame's own is compared with:
 *
 *   exor_classic   the classic yielding NIF: a byte loop, a fixed number of bytes between two readings of the
 *                  clock, enif_consume_timeslice with the share of a millisecond that passed, and a
 *                  hop with the arguments and the next number of bytes
 *   exor_loop      one loop to the end, inline: the fastest, and the worst neighbour
 *   memcpy         what writing a binary of that size costs without any work
 *
 * None of them follows this project's own advice; they are the reference. */
#include <erl_nif.h>
#include <stdio.h>
#include <string.h>

/* What the classic form does before it first looks at the clock, warm about 1.3 ms at 3 GB/s. The
 * number is a guess made once and for all, and the first slice pays for it: with fresh pages it
 * takes several times as long. */
#define FIRST_BYTES (4u * 1024 * 1024)

#define SLICE_US 1000

/* The result while it is being written. Belongs to the resource until exor_classic returns it. */
struct result {
    ErlNifBinary bin;
    int owns_bin;
};

/* One instance of the loaded library; lives in priv_data. */
struct library {
    ErlNifResourceType *result_type;
};

static ERL_NIF_TERM raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* Two binaries of the same size. */
static int inspect_pair(ErlNifEnv *env, const ERL_NIF_TERM argv[], ErlNifBinary *a, ErlNifBinary *b)
{
    return enif_inspect_binary(env, argv[0], a) && enif_inspect_binary(env, argv[1], b) &&
           a->size == b->size;
}

/* ---- the classic form ------------------------------------------------------------------ */

/* Writes bytes from..to. The compiler makes no vectors of it: for all it knows, a byte written to
 * out->data may be part of one of the three pointers, which are therefore read anew each time. */
static void exor_bytes(const ErlNifBinary *a, const ErlNifBinary *b, ErlNifBinary *out, size_t from,
                       size_t to)
{
    for (size_t i = from; i < to; i++)
        out->data[i] = a->data[i] ^ b->data[i];
}

/* The share of a slice that so much time is, as enif_consume_timeslice wants it: 1 to 100. */
static int share_percent(ErlNifTime used_us)
{
    const ErlNifTime percent = used_us * 100 / SLICE_US;

    return percent < 1 ? 1 : percent > 100 ? 100 : (int)percent;
}

static ERL_NIF_TERM exor_slices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (A :: binary(), B :: binary(), MaxBytes, Offset, Result :: resource) -> binary() */
    const struct library *library = enif_priv_data(env);
    ErlNifBinary a, b;
    ErlNifUInt64 max_bytes, offset;
    struct result *result;

    if (!inspect_pair(env, argv, &a, &b) || !enif_get_uint64(env, argv[2], &max_bytes) ||
        !enif_get_uint64(env, argv[3], &offset) ||
        !enif_get_resource(env, argv[4], library->result_type, (void **)&result))
        return enif_make_badarg(env);

    const ErlNifUInt64 first = offset;
    ErlNifTime slice_us = 0;

    while (offset < a.size) {
        const size_t left = a.size - offset;
        const size_t count = max_bytes < left ? max_bytes : left;
        const ErlNifTime start = enif_monotonic_time(ERL_NIF_USEC);

        exor_bytes(&a, &b, &result->bin, offset, offset + count);
        offset += count;

        const ErlNifTime used_us = enif_monotonic_time(ERL_NIF_USEC) - start;

        slice_us += used_us;
        if (enif_consume_timeslice(env, share_percent(used_us)) && offset < a.size) {
            /* Next time as many bytes as would have taken a slice at this one's pace. */
            max_bytes =
                (offset - first) * SLICE_US / (slice_us > 0 ? (ErlNifUInt64)slice_us : 1) + 1;

            const ERL_NIF_TERM next[] = {argv[0], argv[1], enif_make_uint64(env, max_bytes),
                                         enif_make_uint64(env, offset), argv[4]};
            return enif_schedule_nif(env, "exor_classic", 0, exor_slices, argc, next);
        }
    }
    result->owns_bin = 0; /* the term owns the binary now */
    return enif_make_binary(env, &result->bin);
}

static ERL_NIF_TERM exor_classic(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (A :: binary(), B :: binary()) -> binary() */
    const struct library *library = enif_priv_data(env);
    ErlNifBinary a, b;
    struct result *result;
    ERL_NIF_TERM term;

    (void)argc;
    if (!inspect_pair(env, argv, &a, &b))
        return enif_make_badarg(env);

    result = enif_alloc_resource(library->result_type, sizeof *result);
    if (result == NULL)
        return raise_enomem(env);
    memset(result, 0, sizeof *result);
    if (!enif_alloc_binary(a.size, &result->bin)) {
        enif_release_resource(result);
        return raise_enomem(env);
    }
    result->owns_bin = 1;
    term = enif_make_resource(env, result);
    enif_release_resource(result); /* the term keeps its own reference */

    const ERL_NIF_TERM first[] = {argv[0], argv[1], enif_make_uint64(env, FIRST_BYTES),
                                  enif_make_uint64(env, 0), term};
    return exor_slices(env, 5, first);
}

static void result_free(ErlNifEnv *env, void *object)
{
    struct result *result = object;

    (void)env;
    if (result->owns_bin)
        enif_release_binary(&result->bin);
}

/* ---- uncut ----------------------------------------------------------------------------- */

/* The fastest a compiler makes of it: the buffers do not overlap, and it may know. */
static void exor_all(const unsigned char *restrict a, const unsigned char *restrict b,
                     unsigned char *restrict out, size_t size)
{
    for (size_t i = 0; i < size; i++)
        out[i] = a[i] ^ b[i];
}

static ERL_NIF_TERM exor_loop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (A :: binary(), B :: binary()) -> binary() */
    ErlNifBinary a, b, out;

    (void)argc;
    if (!inspect_pair(env, argv, &a, &b))
        return enif_make_badarg(env);
    if (!enif_alloc_binary(a.size, &out))
        return raise_enomem(env);
    exor_all(a.data, b.data, out.data, out.size);
    return enif_make_binary(env, &out);
}

static ERL_NIF_TERM copy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (A :: binary()) -> binary() */
    ErlNifBinary a, out;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &a))
        return enif_make_badarg(env);
    if (!enif_alloc_binary(a.size, &out))
        return raise_enomem(env);
    memcpy(out.data, a.data, a.size);
    return enif_make_binary(env, &out);
}

/* ---- life cycle ------------------------------------------------------------------------ */

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    struct library *library = enif_alloc(sizeof *library); /* owned by priv_data until unload */
    char name[64];

    (void)load_info;
    if (library == NULL)
        return 1;
    /* A type of its own for each instance: a new build must not free what an old one wrote. */
    snprintf(name, sizeof name, "tame_exor_classic_%p", (void *)library);
    library->result_type =
        enif_open_resource_type(env, NULL, name, result_free, ERL_NIF_RT_CREATE, NULL);
    if (library->result_type == NULL) {
        enif_free(library);
        return 1;
    }
    *priv_data = library;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    enif_free(priv_data);
}

static ErlNifFunc functions[] = {
    {"exor_classic", 2, exor_classic, 0},
    {"exor_loop", 2, exor_loop, 0},
    {"memcpy", 1, copy, 0},
};

ERL_NIF_INIT(tame_exor_classic, functions, load, NULL, upgrade, unload)
