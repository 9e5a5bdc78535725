/* tame_nng_nif.c - nng as a NIF on tame/fd.h: the function table. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <erl_nif.h>

#include "nif/active.h"
#include "nif/contexts.h"
#include "nif/handle.h"
#include "nif/message.h"
#include "nif/moving.h"
#include "nif/opening.h"

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)priv_data;
    (void)load_info;
    if (tame_fd_load(env, &tn_handles) || tame_fd_load(env, &tn_sends) || tn_message_load(env) ||
        tn_nif_contexts_load(env) || tn_library_open())
        return 1;
    return tn_reaper_open();
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

/* No socket and no context of this library is left; what of them the reaper has, it ends. */
static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    (void)priv_data;
    tn_reaper_close();
}

static ErlNifFunc functions[] = {
    {"open", 1, tn_nif_open, 0},
    {"close", 2, tn_nif_close_nif, 0},
    {"control", 3, tn_nif_control, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"recv", 2, tn_nif_recv, 0},
    {"send", 3, tn_nif_send, 0},
    {"cancel", 2, tn_nif_cancel, 0},
    {"push", 1, tn_nif_push, 0},
    {"credit", 3, tn_nif_credit, 0},
    {"passive", 2, tn_nif_passive, 0},
    {"active", 1, tn_nif_active, 0},
    {"give", 2, tn_nif_give, 0},
    {"owner", 1, tn_nif_owner, 0},
    {"context_open", 1, tn_nif_context_open, 0},
    {"context_set", 2, tn_nif_context_set, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"context_recv", 3, tn_nif_context_recv, 0},
    {"context_send", 4, tn_nif_context_send, 0},
    {"context_close", 1, tn_nif_context_close, 0},
};

ERL_NIF_INIT(tame_nng_nif, functions, load, NULL, upgrade, unload)
