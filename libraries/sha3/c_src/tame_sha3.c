/* SHA-3 on the BEAM. Every function is a job that runs where tame.h decides, and none holds a
 * scheduler. hasher.h is the door to the algorithms, which know nothing of the VM. */
#include "many.h"
#include "one_call.h"
#include "streaming.h"

#include <stdio.h>
#include <stdlib.h>

const struct keccak *library_keccak;
struct sha3 library_sha3s[SHA3S];

static const struct sponge_kind *const sha3_kinds[SHA3S] = {&sponge_sha3_256, &sponge_sha3_512,
                                                            &sponge_sha3_384, &sponge_sha3_224};

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    const char *forced = getenv("TAME_SHA3_IMPL");

    (void)data;
    (void)load_info;
    for (int i = 0; i < SHA3S; i++) {
        library_sha3s[i].name = enif_make_atom(env, sha3_kinds[i]->name);
        library_sha3s[i].spec.form = HASHER_SPONGE;
        library_sha3s[i].spec.kind = *sha3_kinds[i];
    }
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
