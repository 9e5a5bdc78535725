/* Binaries. */
#include "contract.h"
#include <stdint.h>

/* "Initializes the structure pointed to by bin with information about binary term bin_term. Returns
 * true on success, or false if bin_term is not a binary." And of iolists. */
CASE(inspect)
{
    struct results r = {.len = 0};
    ErlNifBinary bin;

    int ok = enif_inspect_binary(env, IN, &bin);
    add_int(env, &r, ok != 0);
    if (ok)
        add(&r, bytes(env, bin.data, bin.size));
    ok = enif_inspect_iolist_as_binary(env, IN, &bin);
    add_int(env, &r, ok != 0);
    if (ok) {
        add(&r, bytes(env, bin.data, bin.size));
        add(&r, enif_make_binary(env, &bin));
    }
    return all(env, &r);
}

/* "Ownership of the binary data is transferred to the created term ... bin is to be considered
 * read-only for the rest of the NIF call": it can still be read. */
CASE(make_binary_leaves_data_readable)
{
    ErlNifBinary bin;
    term a, b;

    enif_alloc_binary(200, &bin);
    memset(bin.data, 'x', 200);
    a = enif_make_binary(env, &bin);
    b = bytes(env, bin.data, bin.size);
    return enif_make_tuple2(env, a, b);
}

/* "Changes the size of a binary bin. The source binary can be read-only, in which case it is left
 * untouched and a mutable copy is allocated and assigned to *bin." */
CASE(realloc_binary)
{
    struct results r = {.len = 0};
    ErlNifBinary bin;

    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    size_t size = bin.size;
    add_int(env, &r, enif_realloc_binary(&bin, size + 100) != 0);
    memset(bin.data + size, 'y', 100);
    if (size > 0)
        bin.data[0] = 'z';
    add_int(env, &r, enif_realloc_binary(&bin, size + 50) != 0);
    add(&r, enif_make_binary(env, &bin));
    add(&r, IN);
    return all(env, &r);
}

/* "Releases a binary obtained from enif_alloc_binary": of one only looked at it does nothing. */
CASE(release_binary)
{
    ErlNifBinary bin, own;

    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    enif_release_binary(&bin);
    enif_alloc_binary(0, &own);
    enif_release_binary(&own);
    enif_alloc_binary(1000, &own);
    enif_release_binary(&own);
    return IN;
}

/* "Ownership of the binary data is transferred": what becomes of one whose data and size the
 * library has changed meanwhile is not said. IN: {Allocated, Moved, Size}. */
CASE(make_binary_moved)
{
    const term *in;
    int arity, allocated, moved, size;
    ErlNifBinary bin;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 3 ||
        !enif_get_int(env, in[0], &allocated) || !enif_get_int(env, in[1], &moved) ||
        !enif_get_int(env, in[2], &size) || !enif_alloc_binary((size_t)allocated, &bin))
        return enif_make_badarg(env);
    for (int i = 0; i < allocated; i++)
        bin.data[i] = (unsigned char)i;
    bin.data += moved;
    bin.size = (size_t)size;
    term made = enif_make_binary(env, &bin);
    /* A small one is a copy. */
    if (size > 0 && size <= 64)
        bin.data[0] ^= 0xff;
    return made;
}

/* Many libraries end a text with a zero byte behind it; where it stands the VM has room. What comes
 * after is damaged when there is none: so the byte is not zero here. IN: size */
CASE(write_past_end)
{
    ErlNifBinary bins[50];
    struct results r = {.len = 0};
    unsigned size;

    if (!enif_get_uint(env, IN, &size))
        return enif_make_badarg(env);
    for (int i = 0; i < 50; i++) {
        enif_alloc_binary(i % 2 == 0 ? size : size / 2, &bins[i]);
        memset(bins[i].data, i, bins[i].size);
        bins[i].data[bins[i].size] = 0xff;
        if (i % 2 == 1)
            enif_realloc_binary(&bins[i], size);
        memset(bins[i].data, i, size);
        bins[i].data[size] = 0xff;
    }
    for (int i = 0; i < 50; i++) {
        if (i % 3 == 0)
            enif_release_binary(&bins[i]);
        else
            add(&r, enif_make_binary(env, &bins[i]));
    }
    return all(env, &r);
}

/* The same of what the environment owns, and of arguments: more than the VM has room for in each
 * case, so it is tried in a host only. IN: a list of binaries. */
CASE(write_past_arguments)
{
    term head, tail = IN, made[20];
    ErlNifBinary bin;
    int len = 0;

    while (enif_get_list_cell(env, tail, &head, &tail) && enif_inspect_binary(env, head, &bin)) {
        memset(bin.data + bin.size, 0xff, 7);
        if (len < 20) {
            unsigned char *data = enif_make_new_binary(env, bin.size, &made[len++]);
            memcpy(data, bin.data, bin.size);
            memset(data + bin.size, 0xff, 7);
        }
        if (enif_inspect_iolist_as_binary(env, enif_make_list1(env, head), &bin))
            memset(bin.data + bin.size, 0xff, 7);
        if (enif_term_to_binary(env, head, &bin)) {
            memset(bin.data + bin.size, 0xff, 7);
            enif_release_binary(&bin);
        }
    }
    return enif_make_tuple2(env, IN, enif_make_list_from_array(env, made, (unsigned)len));
}

/* A binary's bytes are where any type of C may be. IN: a list of binaries. */
CASE(alignment)
{
    struct results r = {.len = 0};
    term head, tail = IN;
    ErlNifBinary bin;

    while (enif_get_list_cell(env, tail, &head, &tail) && enif_inspect_binary(env, head, &bin))
        add_int(env, &r, (uintptr_t)bin.data % 8);
    return all(env, &r);
}

/* "Makes a subbinary of binary bin_term, starting at zero-based position pos with a length of size
 * bytes. bin_term must be a binary or bitstring. pos+size must be less or equal to the number of
 * whole bytes in bin_term." */
CASE(sub_binaries)
{
    struct results r = {.len = 0};
    ErlNifEnv *other = enif_alloc_env();
    ErlNifBinary bin;

    enif_inspect_binary(env, IN, &bin);
    add(&r, enif_make_sub_binary(env, IN, 0, bin.size));
    add(&r, enif_make_sub_binary(env, IN, bin.size, 0));
    add(&r, enif_make_sub_binary(env, IN, bin.size / 2, bin.size - bin.size / 2));
    term part = enif_make_sub_binary(env, IN, bin.size / 3, bin.size / 3);
    add(&r, enif_make_sub_binary(env, part, 0, bin.size / 6));
    add(&r, enif_make_copy(env, enif_make_copy(other, part)));
    enif_free_env(other);
    return all(env, &r);
}

/* "Allocates a binary of size size bytes and creates an owning term. The binary data is mutable
 * until the calling NIF returns." */
CASE(make_new_binary)
{
    term small, large;
    unsigned char *s = enif_make_new_binary(env, 3, &small);
    unsigned char *l = enif_make_new_binary(env, 3000, &large);
    term both = enif_make_tuple2(env, small, large);

    memcpy(s, "abc", 3);
    memset(l, 'l', 3000);
    return both;
}
