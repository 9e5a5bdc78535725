/* A NIF that copies a binary. */
#include <erl_nif.h>
#include <string.h>

static ERL_NIF_TERM copy(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Binary) -> Binary */
    ErlNifBinary from;
    ERL_NIF_TERM to;
    unsigned char *bytes;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &from))
        return enif_make_badarg(env);
    bytes = enif_make_new_binary(env, from.size, &to); /* the term owns them */
    memcpy(bytes, from.data, from.size);
    return to;
}

static ErlNifFunc functions[] = {{"copy", 1, copy, 0}};

ERL_NIF_INIT(Elixir.Copycat, functions, NULL, NULL, NULL, NULL)
