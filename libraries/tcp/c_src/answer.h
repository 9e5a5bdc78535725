/* answer.h - what the functions return: ok, {ok, Term}, {error, Reason}, wait. */
#ifndef TAME_TCP_ANSWER_H
#define TAME_TCP_ANSWER_H

#include <erl_driver.h>
#include <erl_nif.h>
#include <errno.h>

static inline ERL_NIF_TERM tcp_atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

/* What most calls say, looked up once: the VM hashes a name and takes a lock to find its atom. */
static struct {
    ERL_NIF_TERM ok, wait, tcp, once, always;
} tcp_words;

static inline void tcp_words_load(ErlNifEnv *env)
{
    tcp_words.ok = tcp_atom(env, "ok");
    tcp_words.wait = tcp_atom(env, "wait");
    tcp_words.tcp = tcp_atom(env, "tcp");
    tcp_words.once = tcp_atom(env, "once");
    tcp_words.always = tcp_atom(env, "true");
}

static inline ERL_NIF_TERM tcp_ok(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return enif_make_tuple2(env, tcp_words.ok, term);
}

static inline ERL_NIF_TERM tcp_error(ErlNifEnv *env, const char *reason)
{
    return enif_make_tuple2(env, tcp_atom(env, "error"), tcp_atom(env, reason));
}

/* The names that gen_tcp gives. A connection that its peer has ended or reset is `closed` there as well. */
static inline const char *tcp_errno_name(int error)
{
    return error == EPIPE || error == ECONNRESET ? "closed" : erl_errno_id(error);
}

static inline ERL_NIF_TERM tcp_errno(ErlNifEnv *env, int error)
{
    return tcp_error(env, tcp_errno_name(error));
}

static inline int tcp_would_block(int error)
{
    return error == EAGAIN || error == EWOULDBLOCK;
}

#endif
