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
    struct env_keep *keep = env->keeps;
    struct env_chunk *first = NULL;

    env->keeps = NULL;
    while (keep != NULL) {
        struct shared *shared = keep->shared;
        keep = keep->next; /* lies in a chunk, and chunks are freed below */
        shared_drop(shared);
    }
    while (env->chunks != NULL) {
        struct env_chunk *chunk = env->chunks;
        env->chunks = chunk->next;
        if (first == NULL && chunk->size == ENV_CHUNK_BYTES) {
            first = chunk;
        } else {
            free(chunk);
        }
    }
    env->at = env->end = NULL;
    if (first != NULL) {
        first->next = NULL;
        env->chunks = first;
        env->at = first->bytes;
        env->end = first->bytes + first->size;
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
