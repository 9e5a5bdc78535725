/* Environments: arenas from which terms are allocated, and what their terms keep alive.
 *
 * All memory of an environment is given back at once. A call's environment keeps a chunk from one
 * call to the next, so that most calls allocate nothing.
 */
#ifndef TAME_HOST_ENV_H
#define TAME_HOST_ENV_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "memory/nif.h"
#include "memory/shared.h"

#define ENV_CHUNK_BYTES (16u * 1024)

/* A call's environment keeps a chunk of up to this size for the next call, any other one of the
 * usual size: there may be many of those. */
#define ENV_CALL_SPARE_BYTES (256u * 1024)

enum env_kind {
    ENV_CALL,        /* of a NIF: its terms end with the call */
    ENV_CALLBACK,    /* of load, a destructor, a monitor's callback */
    ENV_INDEPENDENT, /* enif_alloc_env, or our own */
};

typedef ERL_NIF_TERM nif_function(ErlNifEnv *, int, const ERL_NIF_TERM[]);

/* What a NIF asked for with enif_schedule_nif; function is NULL when it did not. */
struct hop {
    nif_function *function;
    int flags;
    int argc;
    term *argv; /* in the environment */
};

struct env_chunk {
    struct env_chunk *next;
    size_t size;
    _Alignas(16) unsigned char bytes[];
};

struct env_keep {
    struct env_keep *next;
    struct shared *shared;
};

/* What a reader of the environment, on any thread, found out about a term of it. */
struct env_found {
    struct env_found *next;
    _Alignas(16) unsigned char bytes[];
};

/* All of it. It lies in a chunk: the environment itself may move. */
struct env_findings {
    _Atomic(struct env_found *) first;
};

struct enif_environment_t {
    enum env_kind kind;
    unsigned char *at, *end;
    struct env_chunk *chunks; /* newest first */
    struct env_keep *keeps;
    struct env_findings *findings; /* NULL until it is asked for */
    size_t used_bytes;
    uint64_t id;    /* 0 until a map is made in it; never used twice, and not after a reset */
    term exception; /* its reason; TERM_NONE: none */
    struct hop hop;
    struct library *library; /* whose code it is for; NULL: none's */
    struct call *call;       /* of a NIF; else NULL */
    term loader;             /* in load and upgrade: who loads the library; else TERM_NONE */
    uint64_t call_id;        /* the VM's */
    uint64_t call_number;    /* ours: never used twice; 0: no call */
};

void env_init(ErlNifEnv *env, enum env_kind kind);

/* Gives back everything but one chunk; the environment can be used again. */
void env_reset(ErlNifEnv *env);
void env_destroy(ErlNifEnv *env);

/* Never NULL: there is no way on without memory (alloc.h). Aligned to 16 bytes. */
void *env_alloc(ErlNifEnv *env, size_t size);

/* Where readers may leave what they find out about terms that env makes from now on. */
struct env_findings *env_findings(ErlNifEnv *env);

/* Memory for what a reader finds out; it is the caller's until env_found puts it there, until the
 * environment's reset or end. */
void *env_found_new(size_t size);
void env_found(struct env_findings *findings, void *found);

/* Keeps shared, which may be NULL, until the environment is reset: the count is raised here, at most once for each
 * call. */
void env_keep(ErlNifEnv *env, struct shared *shared);

#endif
