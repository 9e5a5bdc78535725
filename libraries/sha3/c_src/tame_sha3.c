/* SHA-3 on the BEAM. Every function is a job that runs where tame.h decides, and none holds a
 * scheduler. hasher.h is the door to the algorithms, which know nothing of the VM. */
#include "many.h"
#include "one_call.h"
#include "streaming.h"

#include <stdio.h>
#include <stdlib.h>

const struct keccak *library_keccak;
ERL_NIF_TERM library_sha3_names[SHA3S];

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    const char *forced = getenv("TAME_SHA3_IMPL");

    (void)data;
    (void)load_info;
    for (int i = 0; i < SHA3S; i++)
        library_sha3_names[i] = enif_make_atom(env, sha3s[i]->name);
    library_keccak = keccak_choose(forced);
    if (library_keccak == NULL) {
        fprintf(stderr,
                "tame_sha3: TAME_SHA3_IMPL=%s: expected portable, avx2 or avx512, and of these one "
                "that this machine and this build have\n",
                forced);
        return -1;
    }
    return 0;
}

static ERL_NIF_TERM implementation(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_atom(env, library_keccak->name);
}

static const struct tame_resource *const resources[] = {&context, NULL};

#define FUNCTIONS(JOB, NIF)                          \
    JOB(hash_nif, 2, hash, TAME_AUTO)                \
    STRENGTH_ROWS(JOB, 128)                          \
    STRENGTH_ROWS(JOB, 256)                          \
    STREAMING_ROWS(JOB)                              \
    JOB(hash_many_nif, 2, many, TAME_AUTO)           \
    JOB(keccak_f1600_nif, 1, permutation, TAME_AUTO) \
    NIF(implementation, 0, implementation, TAME_INLINE)

TAME_NIF_INIT(tame_sha3, FUNCTIONS, .resources = resources, .upgrade = TAME_UPGRADE_KEEPS,
              .load = load)
