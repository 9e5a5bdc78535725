/* tame_iovec.c - binaries whose bytes begin in the middle of a byte: src/job/tame_iovec.erl. The VM
 * copies such a one each time that it is looked at, as a whole and in one go. */
#include <erl_nif.h>
#include <string.h>
#include <tame/charge.h>
#include <tame/slice.h>

/* What is looked at at once: some 15 us. */
#define PIECE_BYTES ((size_t)16 * 1024)

/* A copy under way, which the hops' arguments hold: it ends with the process that makes it. */
struct copy {
    ErlNifBinary binary; /* owned, unless its data is NULL */
    size_t done;
};

static void destroy(ErlNifEnv *env, void *object)
{
    struct copy *copy = object;

    (void)env;
    if (copy->binary.data != NULL)
        enif_release_binary(&copy->binary);
}

/* Whether a binary's bytes are seen where they lie: else they are copied to another place each time. */
static ERL_NIF_TERM nif_in_place(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary one, two;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &one) || !enif_inspect_binary(env, argv[0], &two))
        return enif_make_badarg(env);
    return enif_make_atom(env, one.data == two.data ? "true" : "false");
}

/* (Bits, Copy): one slice. What was looked at is the VM's until the NIF returns. */
static ERL_NIF_TERM copy_on(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const uint64_t start_ns = tame_impl_meter_begin();
    struct copy *copy;
    uint64_t used_ns;
    ERL_NIF_TERM term;
    void *object;

    if (!enif_get_resource(env, argv[1], enif_priv_data(env), &object))
        return enif_make_badarg(env);
    copy = object;
    do {
        const size_t left = copy->binary.size - copy->done;
        const size_t size = left < PIECE_BYTES ? left : PIECE_BYTES;
        ErlNifBinary piece;

        term = enif_make_sub_binary(env, argv[0], copy->done, size);
        if (!enif_inspect_binary(env, term, &piece))
            return enif_make_badarg(env);
        memcpy(copy->binary.data + copy->done, piece.data, size);
        copy->done += size;
        used_ns = tame_impl_meter_now_ns() - start_ns;
    } while (copy->done < copy->binary.size && used_ns < TAME_SLICE_US * UINT64_C(1000));
    if (copy->done < copy->binary.size) {
        /* A hop that has not used up its timeslice would stay. */
        (void)enif_consume_timeslice(env, 100);
        return enif_schedule_nif(env, "copy", 0, copy_on, argc, argv);
    }
    (void)tame_charge(env, used_ns);
    term = enif_make_binary(env, &copy->binary);
    copy->binary.data = NULL; /* the term's */
    return term;
}

/* (Bits, Size): the binary has that many bytes, which its module sees to. */
static ERL_NIF_TERM nif_copy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct copy *copy = enif_alloc_resource(enif_priv_data(env), sizeof *copy);
    ERL_NIF_TERM next[2];
    ErlNifUInt64 size;

    (void)argc;
    if (copy == NULL)
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    memset(copy, 0, sizeof *copy);
    next[0] = argv[0];
    next[1] = enif_make_resource(env, copy);
    enif_release_resource(copy); /* the term owns it now */
    if (!enif_is_binary(env, argv[0]) || !enif_get_uint64(env, argv[1], &size))
        return enif_make_badarg(env);
    if (!enif_alloc_binary((size_t)size, &copy->binary)) {
        copy->binary.data = NULL;
        return enif_raise_exception(env, enif_make_atom(env, "enomem"));
    }
    return copy_on(env, 2, next);
}

static ErlNifFunc functions[] = {{"in_place", 1, nif_in_place, 0}, {"copy", 2, nif_copy, 0}};

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)load_info;
    *priv_data = enif_open_resource_type(env, NULL, "tame_copy", destroy,
                                         ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    return *priv_data == NULL;
}

/* Copies under way are as the new library's own: their type is. */
static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

ERL_NIF_INIT(tame_iovec, functions, load, NULL, upgrade, NULL)
