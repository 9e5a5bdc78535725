/* The tables of NIF libraries that are linked into the emulator itself (prim_file, zlib, ...).
 *
 * There is no file to look at, but the emulator exports their nif_init functions by name, and each
 * does no more than return its table. For tame_builtin.erl. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <erl_nif.h>
#include <stdio.h>

#include "../stateless.h"

/* table(Module) -> [{Name, Arity, Flags}], or undefined where the emulator has no such library. */
static ERL_NIF_TERM table(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifEntry *(*nif_init)(void) = NULL;
    char module[256], symbol[sizeof module + 16];

    (void)argc;
    if (enif_get_atom(env, argv[0], module, sizeof module, ERL_NIF_LATIN1) == 0)
        return enif_make_badarg(env);
    snprintf(symbol, sizeof symbol, "%s_nif_init", module);
    *(void **)&nif_init = dlsym(RTLD_DEFAULT, symbol);
    ErlNifEntry *entry = nif_init == NULL ? NULL : nif_init();
    if (entry == NULL)
        return enif_make_atom(env, "undefined");

    ERL_NIF_TERM list = enif_make_list(env, 0);
    for (int i = entry->num_of_funcs; i-- > 0;) {
        const ErlNifFunc *function = &entry->funcs[i];
        list = enif_make_list_cell(env,
                                   enif_make_tuple3(env, enif_make_atom(env, function->name),
                                                    enif_make_uint(env, function->arity),
                                                    enif_make_uint(env, function->flags)),
                                   list);
    }
    return list;
}

static ErlNifFunc functions[] = {{"table", 1, table, 0}};

ERL_NIF_INIT(tame_builtin, functions, NULL, NULL, stateless_upgrade, NULL)
