/* Environments, see env.h. */
#include <stdlib.h>

#include "memory/alloc.h"
#include "memory/env.h"

void env_init(ErlNifEnv *env, enum env_kind kind)
{
    *env = (ErlNifEnv){.kind = kind};
}

static void add_chunk(ErlNifEnv *env, size_t size)
{
    struct env_chunk *chunk = host_malloc(sizeof *chunk + size);

    chunk->size = size;
    chunk->next = env->chunks;
    env->chunks = chunk;
    env->at = chunk->bytes;
    env->end = chunk->bytes + size;
}

void *env_alloc(ErlNifEnv *env, size_t size)
{
    size_t rounded = size == 0 ? 16 : (size + 15) & ~(size_t)15;

    if (rounded > (size_t)(env->end - env->at)) {
        /* Each chunk is as large as all before it, so that there are few. */
        size_t least = env->used_bytes < 1 << 20 ? env->used_bytes : 1 << 20;
        if (least < ENV_CHUNK_BYTES)
            least = ENV_CHUNK_BYTES;
        add_chunk(env, rounded > least ? rounded : least);
    }
    unsigned char *place = env->at;
    env->at += rounded;
    env->used_bytes += rounded;
    return place;
}

void *env_found_new(size_t size)
{
    struct env_found *found = host_malloc(sizeof *found + size);

    return found->bytes;
}

struct env_findings *env_findings(ErlNifEnv *env)
{
    if (env->findings == NULL) {
        env->findings = env_alloc(env, sizeof *env->findings);
        *env->findings = (struct env_findings){NULL};
    }
    return env->findings;
}

void env_found(struct env_findings *findings, void *bytes)
{
    struct env_found *found = (void *)((unsigned char *)bytes - offsetof(struct env_found, bytes));

    found->next = findings->first;
    while (!atomic_compare_exchange_weak(&findings->first, &found->next, found)) {
    }
}

static void free_findings(ErlNifEnv *env)
{
    struct env_found *found = env->findings->first;

    env->findings = NULL;
    while (found != NULL) {
        struct env_found *next = found->next;
        free(found);
        found = next;
    }
}

void env_keep(ErlNifEnv *env, struct shared *shared)
{
    struct env_keep *keep;

    /* A parser makes thousands of parts of one binary in a row. */
    if (shared == NULL || (env->keeps != NULL && env->keeps->shared == shared))
        return;
    keep = env_alloc(env, sizeof *keep);
    shared_keep(shared);
    keep->shared = shared;
    keep->next = env->keeps;
    env->keeps = keep;
}

void env_reset(ErlNifEnv *env)
{
    const size_t most = env->kind == ENV_CALL ? ENV_CALL_SPARE_BYTES : ENV_CHUNK_BYTES;
    struct env_keep *keep = env->keeps;
    struct env_chunk *spare = NULL; /* the largest that may be kept */

    if (env->findings != NULL)
        free_findings(env);
    env->keeps = NULL;
    while (keep != NULL) {
        struct shared *shared = keep->shared;
        keep = keep->next; /* lies in a chunk, and chunks are freed below */
        shared_drop(shared);
    }
    while (env->chunks != NULL) {
        struct env_chunk *chunk = env->chunks;
        env->chunks = chunk->next;
        if (chunk->size > most || (spare != NULL && chunk->size <= spare->size)) {
            free(chunk);
        } else {
            free(spare);
            spare = chunk;
        }
    }
    env->at = env->end = NULL;
    if (spare != NULL) {
        spare->next = NULL;
        env->chunks = spare;
        env->at = spare->bytes;
        env->end = spare->bytes + spare->size;
    }
    env->used_bytes = 0;
    env->id = 0;
    env->exception = TERM_NONE;
    env->hop = (struct hop){0};
}

void env_destroy(ErlNifEnv *env)
{
    env_reset(env);
    free(env->chunks);
    env->chunks = NULL;
    env->at = env->end = NULL;
}
