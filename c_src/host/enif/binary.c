/* The functions of the API on binaries. */
#include <string.h>

#include "memory/otp.h"
#include "memory/vm.h"
#include "term/binary.h"
#include "wire/etf.h"

int enif_is_binary(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return binary_whole(t) != NULL;
}

int enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *bin)
{
    struct box_binary *binary = binary_whole(t);

    if (binary == NULL)
        return 0;
    binary_settle(env, binary);
    *bin = (ErlNifBinary){.data = (unsigned char *)binary->data, .size = binary->size};
    return 1;
}

int enif_alloc_binary(size_t size, ErlNifBinary *bin)
{
    struct binary *binary = binary_try_new(size);

    if (binary == NULL)
        return 0;
    *bin = (ErlNifBinary){.data = binary->data, .size = size, .ref_bin = binary};
    return 1;
}

int enif_realloc_binary(ErlNifBinary *bin, size_t size)
{
    ErlNifBinary old = *bin;

    /* Somebody else may read it by now (enif_ioq_enq_binary, enif_make_binary took it over). */
    if (old.ref_bin != NULL && ((struct binary *)old.ref_bin)->shared.refs == 1) {
        struct binary *binary = binary_try_resize(old.ref_bin, size);
        if (binary == NULL)
            return 0;
        *bin = (ErlNifBinary){.data = binary->data, .size = size, .ref_bin = binary};
        return 1;
    }
    if (!enif_alloc_binary(size, bin))
        return 0;
    if (old.size > 0 && size > 0)
        memcpy(bin->data, old.data, old.size < size ? old.size : size);
    enif_release_binary(&old);
    return 1;
}

void enif_release_binary(ErlNifBinary *bin)
{
    /* One that was only looked at belongs to its term. */
    shared_drop(bin->ref_bin);
    bin->ref_bin = NULL;
}

ERL_NIF_TERM enif_make_binary(ErlNifEnv *env, ErlNifBinary *bin)
{
    struct binary *binary = bin->ref_bin;

    if (binary == NULL) {
        term made;
        unsigned char *data = enif_make_new_binary(env, bin->size, &made);
        if (bin->size > 0)
            memcpy(data, bin->data, bin->size);
        return made;
    }
    /* The term's environment owns it now; data and size may still be read. A small one is copied
     * from where data points to, as in the VM; of a large one the VM up to OTP 26 takes what was
     * allocated, wherever a library has moved data and size to meanwhile. */
    term made;
    if (bin->size <= BINARY_SHARE_BYTES) {
        made = term_small_binary(env, bin->data, bin->size, 0);
        env_keep(env, &binary->shared);
    } else if (!otp_has_binary_parts()) {
        made = term_binary(env, binary->data, binary->size, 0, &binary->shared);
    } else {
        made = term_binary(env, bin->data, bin->size, 0, &binary->shared);
    }
    shared_drop(&binary->shared);
    bin->ref_bin = NULL;
    return made;
}

unsigned char *enif_make_new_binary(ErlNifEnv *env, size_t size, ERL_NIF_TERM *made)
{
    if (size <= BINARY_SHARE_BYTES) {
        unsigned char *data = env_alloc(env, size + BINARY_SLACK_BYTES);
        *made = term_binary(env, data, size, 0, NULL);
        return data;
    }
    struct binary *binary = binary_try_new(size);
    if (binary == NULL)
        return NULL;
    *made = term_binary(env, binary->data, size, 0, &binary->shared);
    shared_drop(&binary->shared);
    return binary->data;
}

ERL_NIF_TERM enif_make_sub_binary(ErlNifEnv *env, ERL_NIF_TERM t, size_t pos, size_t size)
{
    struct box_binary *binary = binary_whole(t);

    if (binary == NULL || pos > binary->size || size > binary->size - pos)
        return enif_make_badarg(env);
    binary_settle(env, binary);
    term part = term_binary(env, binary->data + pos, size, 0, binary->owner);
    ((struct box_binary *)box_of(part))->header = box_header(BOX_BINARY, BINARY_PART);
    return part;
}

int enif_inspect_iolist_as_binary(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *bin)
{
    size_t size;

    if (enif_inspect_binary(env, t, bin))
        return 1;
    if ((t != TERM_NIL && !is_list_cell(t)) || !binary_walk_iolist(t, NULL, &size))
        return 0;
    *bin = (ErlNifBinary){.data = env_alloc(env, size + BINARY_SLACK_BYTES), .size = size};
    return binary_walk_iolist(t, bin->data, &size);
}

/* ---- external format ------------------------------------------------------------------ */

int enif_term_to_binary(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifBinary *bin)
{
    struct etf_out out;
    int ok;

    (void)env;
    etf_out_init(&out);
    etf_size(t, ETF_COMPARABLE | ETF_SHOWN, &out);
    ok = enif_alloc_binary(out.size + 1, bin);
    if (ok) {
        bin->data[0] = ETF_VERSION;
        etf_write(t, bin->data + 1);
    }
    etf_out_free(&out);
    return ok;
}

size_t enif_binary_to_term(ErlNifEnv *env, const unsigned char *data, size_t size,
                           ERL_NIF_TERM *made, unsigned options)
{
    int flags = options & ERL_NIF_BIN2TERM_SAFE ? ETF_SAFE : 0;

    /* Without the version byte it is no external format, in the VM neither. */
    if ((options & ~(unsigned)ERL_NIF_BIN2TERM_SAFE) != 0 || size == 0 || data[0] != ETF_VERSION)
        return 0;
    return etf_read(env, data, size, flags, made);
}
