/* Terms as a whole, and messages. */
#include "threads.h"

OP(copy)
{
    ErlNifEnv *other = enif_alloc_env();
    const ERL_NIF_TERM back = enif_make_copy(env, enif_make_copy(other, term));

    enif_free_env(other);
    return back;
}

OP(to_binary)
{
    ErlNifBinary binary;

    return enif_term_to_binary(env, term, &binary) ? enif_make_binary(env, &binary)
                                                   : atom(env, "refused");
}

OP(from_binary)
{
    ErlNifBinary binary;
    ERL_NIF_TERM decoded;

    return enif_inspect_binary(env, term, &binary) &&
                   enif_binary_to_term(env, binary.data, binary.size, &decoded, 0) == binary.size
               ? decoded
               : atom(env, "refused");
}

OP(hash_phash2)
{
    return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, term, 0));
}

/* Its value is the emulator's own: the test compares it with that of another thread. */
OP(hash_internal)
{
    return enif_make_uint64(env, enif_hash(ERL_NIF_INTERNAL_HASH, term, 17));
}

OP(compare)
{
    const ERL_NIF_TERM other = enif_make_copy(env, term);

    return enif_compare(term, other) == 0 && enif_is_identical(term, other) &&
                   enif_compare(term, atom(env, "a")) != 0
               ? atom(env, "equal")
               : atom(env, "different");
}

OP(print)
{
    const size_t size = 4096;
    char *text = enif_alloc(size); /* freed below */
    ERL_NIF_TERM printed;

    enif_snprintf(text, size, "%T", term);
    printed = enif_make_string(env, text, ERL_NIF_LATIN1);
    enif_free(text);
    return printed;
}

/* A message that is copied: without an environment of its own. */
OP(send_copied)
{
    return enif_send(caller, pid, NULL, enif_make_tuple2(env, atom(env, "message"), term))
               ? atom(env, "sent")
               : atom(env, "refused");
}

/* A message that is moved: its environment goes with it. */
OP(send_moved)
{
    ErlNifEnv *message = enif_alloc_env();
    const int sent = enif_send(
        caller, pid, message,
        enif_make_tuple2(message, atom(message, "message"), enif_make_copy(message, term)));

    enif_free_env(message);
    return sent ? atom(env, "sent") : atom(env, "refused");
}
