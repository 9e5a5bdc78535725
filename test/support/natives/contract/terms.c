/* Terms as a whole: copied, encoded and decoded, compared, hashed. */
#include "contract.h"

CASE(echo)
{
    return IN;
}

/* "Makes a copy of term src_term. The copy is created in environment dst_env." */
CASE(copy_there_and_back)
{
    ErlNifEnv *other = enif_alloc_env();
    term copy = enif_make_copy(other, IN);
    term back = enif_make_copy(env, copy);

    enif_free_env(other);
    return back;
}

/* "Invalidates all terms in the environment and clears it": it can be used again. */
CASE(clear_env_and_use_again)
{
    ErlNifEnv *other = enif_alloc_env();
    term back;

    for (int i = 0; i < 3; i++) {
        enif_make_copy(other, IN);
        enif_clear_env(other);
    }
    back = enif_make_copy(env, enif_make_copy(other, IN));
    enif_free_env(other);
    return back;
}

/* "Allocates a new binary with enif_alloc_binary and stores the result of encoding term according
 * to the Erlang external term format." */
CASE(term_to_binary)
{
    ErlNifBinary bin;

    if (!enif_term_to_binary(env, IN, &bin))
        return enif_make_badarg(env);
    return enif_make_binary(env, &bin);
}

/* "Creates a term that is the result of decoding the binary data ... Returns the number of bytes
 * read from data on success, 0 on failure." */
CASE(binary_to_term)
{
    ErlNifBinary bin;
    term made = enif_make_atom(env, "none");
    size_t size;

    enif_inspect_binary(env, IN, &bin);
    size = enif_binary_to_term(env, bin.data, bin.size, &made, 0);
    return enif_make_tuple2(env, enif_make_ulong(env, size),
                            size == 0 ? enif_make_atom(env, "none") : made);
}

/* "ERL_NIF_BIN2TERM_SAFE: use this option when receiving data from untrusted sources." */
CASE(binary_to_term_safe)
{
    ErlNifBinary bin;
    term made;

    enif_inspect_binary(env, IN, &bin);
    return enif_make_ulong(
        env, enif_binary_to_term(env, bin.data, bin.size, &made, ERL_NIF_BIN2TERM_SAFE));
}

/* "Returns an integer < 0 if lhs < rhs, 0 if lhs = rhs, and > 0 if lhs > rhs. Corresponds to the
 * Erlang operators == ..."; "enif_is_identical corresponds to =:=". */
CASE(order)
{
    const term *pair;
    int arity;

    if (!enif_get_tuple(env, IN, &arity, &pair) || arity != 2)
        return enif_make_badarg(env);
    int order = enif_compare(pair[0], pair[1]);
    return enif_make_tuple2(env, enif_make_int(env, order < 0 ? -1 : order > 0),
                            enif_make_int(env, enif_is_identical(pair[0], pair[1]) != 0));
}

/* "ERL_NIF_PHASH2: hash value similar to what is returned by erlang:phash2/2 ... salt is ignored"
 */
CASE(phash2)
{
    return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, IN, 42));
}

/* IN: as of large_term. */
CASE(phash2_large)
{
    return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, large_term(env, IN), 42));
}

/* Of an atom that may be new. IN: its name */
CASE(phash2_of_atom)
{
    ErlNifBinary name;

    if (!enif_inspect_binary(env, IN, &name))
        return enif_make_badarg(env);
    return enif_make_uint64(
        env, enif_hash(ERL_NIF_PHASH2, enif_make_atom_len(env, (char *)name.data, name.size), 42));
}

/* "Hashes term": the same for identical terms, whatever they were made of. */
CASE(internal_hash_of_a_copy)
{
    ErlNifEnv *other = enif_alloc_env();
    term copy = enif_make_copy(other, IN);
    int same = enif_hash(ERL_NIF_INTERNAL_HASH, IN, 5) == enif_hash(ERL_NIF_INTERNAL_HASH, copy, 5);

    enif_free_env(other);
    return boolean(env, same);
}
