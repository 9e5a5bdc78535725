/* The contract of erl_nif, clause by clause: each case is a NIF that takes one term and returns
 * what the API said. It runs in the VM and in tame_host, and the results must be the same
 * (test/host).
 *
 * Above each case stands the sentence of the erl_nif manual that it checks.
 *
 * A new case goes into the file of its category and into that file's list in cases.h. The build
 * refuses one without the other.
 */
#ifndef CONTRACT_H
#define CONTRACT_H

#include <erl_nif.h>
#include <string.h>
#include "cases.h"

typedef ERL_NIF_TERM term;

/* The prefix keeps the case `send` apart from send(2). */
#define CASE(name)                                                                             \
    term case_##name(ErlNifEnv *env __attribute__((unused)), int argc __attribute__((unused)), \
                     const term argv[] __attribute__((unused)))
#define IN (argv[0])

/* Hidden, so that the linker refuses a prototype whose function does not exist. */
#define PROTOTYPE(name) case_##name(ErlNifEnv *env, int argc, const term argv[])
__attribute__((visibility("hidden"))) term CASES(PROTOTYPE);
#undef PROTOTYPE

/* The private data. */
struct private_data {
    ErlNifEnv *env; /* owned; holds load_info and the maps of maps.c */
    term load_info;
};

/* The parts of load and unload. Those that can fail return 0, or what load returns then. */
void load_maps(ErlNifEnv *private_env);
void load_threads(void);
void unload_threads(void);
int load_resources(ErlNifEnv *env);
int load_monitors(ErlNifEnv *env);
int load_select(ErlNifEnv *env);

/* Has no callbacks. */
extern ErlNifResourceType *plain_type;

/* Results are gathered into a list, in order. */
struct results {
    term items[256];
    unsigned len;
};

static inline void add(struct results *results, term t)
{
    results->items[results->len++] = t;
}

static inline void add_int(ErlNifEnv *env, struct results *results, long value)
{
    add(results, enif_make_long(env, value));
}

static inline term all(ErlNifEnv *env, const struct results *results)
{
    return enif_make_list_from_array(env, results->items, results->len);
}

static inline term bytes(ErlNifEnv *env, const void *data, size_t size)
{
    term made;
    unsigned char *to = enif_make_new_binary(env, size, &made);

    if (size > 0)
        memcpy(to, data, size);
    return made;
}

static inline term text(ErlNifEnv *env, const char *s)
{
    return bytes(env, s, strlen(s));
}

/* IN: {Term, Times, Depth}: a list that has the term as often, in as many pairs {_, 0}. What is large where it is
 * written, and not here. */
static inline term large_term(ErlNifEnv *env, term in)
{
    const term *parts;
    int arity;
    unsigned times, depth;
    term made = enif_make_list(env, 0);

    if (!enif_get_tuple(env, in, &arity, &parts) || arity != 3 ||
        !enif_get_uint(env, parts[1], &times) || !enif_get_uint(env, parts[2], &depth))
        return enif_make_badarg(env);
    while (times-- > 0)
        made = enif_make_list_cell(env, parts[0], made);
    while (depth-- > 0)
        made = enif_make_tuple2(env, made, enif_make_int(env, 0));
    return made;
}

static inline term boolean(ErlNifEnv *env, int value)
{
    return enif_make_atom(env, value ? "true" : "false");
}

#endif
