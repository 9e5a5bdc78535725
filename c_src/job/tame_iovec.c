/* tame_iovec.c - whether a binary's bytes are seen where they lie: src/job/tame_iovec.erl. */
#include <erl_nif.h>

/* Bytes that begin in the middle of a byte are copied each time that they are looked at, to another
 * place. */
static ERL_NIF_TERM nif_in_place(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary one, two;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &one) || !enif_inspect_binary(env, argv[0], &two))
        return enif_make_badarg(env);
    return enif_make_atom(env, one.data == two.data ? "true" : "false");
}

static ErlNifFunc functions[] = {{"in_place", 1, nif_in_place, 0}};

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)env;
    (void)priv_data;
    (void)old_priv_data;
    (void)load_info;
    return 0;
}

ERL_NIF_INIT(tame_iovec, functions, NULL, NULL, upgrade, NULL)
