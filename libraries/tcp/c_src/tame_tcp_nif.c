/* tame_tcp_nif.c - the function table. Linux: accept4, sendfile, and flags of socket(2). */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <erl_nif.h>

#include "active.h"
#include "connecting.h"
#include "ending.h"
#include "file.h"
#include "options.h"
#include "receiving.h"
#include "sending.h"
#include "socket.h"

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)priv_data;
    (void)load_info;
    tcp_words_load(env);
    return tame_fd_load(env, &tcp_sockets) + tcp_file_load(env);
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

static ErlNifFunc functions[] = {
    {"open", 1, tcp_open, 0},
    {"bind", 2, tcp_bind, 0},
    {"listen", 2, tcp_listen, 0},
    {"accept", 2, tcp_accept, 0},
    {"connect", 3, tcp_connect, 0},
    {"connected", 2, tcp_connected, 0},
    {"recv", 3, tcp_receive, 0},
    {"send", 3, tcp_send, 0},
    {"sendfile", 5, tcp_sendfile, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"file_open", 1, tcp_file_open, 0},
    {"file_dup", 1, tcp_file_dup, 0},
    {"push", 1, tcp_push_nif, 0},
    {"credit", 3, tcp_credit, 0},
    {"passive", 2, tcp_passive, 0},
    {"setopt", 3, tcp_setopt, 0},
    {"getopt", 2, tcp_getopt, 0},
    {"setraw", 4, tcp_setraw, 0},
    {"getraw", 4, tcp_getraw, 0},
    {"name", 2, tcp_name, 0},
    {"cancel", 2, tcp_cancel, 0},
    {"shutdown", 2, tcp_shutdown, 0},
    {"close", 2, tcp_close, 0},
    {"give", 2, tcp_give, 0},
    {"owner", 1, tcp_owner, 0},
};

ERL_NIF_INIT(tame_tcp_nif, functions, load, NULL, upgrade, NULL)
