/* The same core in a NIF as it is written by hand, without tame.h: SHA3-256 of one binary, in one go on
 * a regular scheduler, charged to nobody; nothing can stop it. What a short call of tame_sha3 is
 * compared with, for bench.exs alone. */
#include <erl_nif.h>
#include <stdlib.h>

#include "sponge.h"

#define DIGEST_BYTES 32
#define INPUT_BYTES_MAX 65536

static const struct keccak *keccak;

static ERL_NIF_TERM sha3_256(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Data) -> digest */
    struct sponge sponge;
    ErlNifBinary data;
    ERL_NIF_TERM digest;

    (void)argc;
    if (!enif_inspect_iolist_as_binary(env, argv[0], &data) || data.size > INPUT_BYTES_MAX)
        return enif_make_badarg(env);
    sponge_init(&sponge, keccak, &sponge_sha3_256);
    sponge_absorb(&sponge, data.data, data.size);
    sponge_squeeze(&sponge, enif_make_new_binary(env, DIGEST_BYTES, &digest), DIGEST_BYTES);
    return digest;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    (void)env;
    (void)priv_data;
    (void)info;
    keccak = keccak_choose(getenv("TAME_SHA3_IMPL"));
    return keccak == NULL ? -1 : 0;
}

static ErlNifFunc functions[] = {{"sha3_256", 1, sha3_256, 0}};

ERL_NIF_INIT(by_hand, functions, load, NULL, NULL, NULL)
