/* options.h - what can be set and asked: the system's options by their names, and our own. */
#ifndef TAME_TCP_OPTIONS_H
#define TAME_TCP_OPTIONS_H

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "address.h"
#include "socket.h"

/* X(name in inet, level, option, is it true or false) */
#define TCP_OPTIONS(X)                             \
    X("nodelay", IPPROTO_TCP, TCP_NODELAY, 1)      \
    X("keepalive", SOL_SOCKET, SO_KEEPALIVE, 1)    \
    X("reuseaddr", SOL_SOCKET, SO_REUSEADDR, 1)    \
    X("reuseport", SOL_SOCKET, SO_REUSEPORT, 1)    \
    X("dontroute", SOL_SOCKET, SO_DONTROUTE, 1)    \
    X("ipv6_v6only", IPPROTO_IPV6, IPV6_V6ONLY, 1) \
    X("sndbuf", SOL_SOCKET, SO_SNDBUF, 0)          \
    X("recbuf", SOL_SOCKET, SO_RCVBUF, 0)          \
    X("priority", SOL_SOCKET, SO_PRIORITY, 0)      \
    X("tos", IPPROTO_IP, IP_TOS, 0)                \
    X("ttl", IPPROTO_IP, IP_TTL, 0)                \
    X("tclass", IPPROTO_IPV6, IPV6_TCLASS, 0)

struct tcp_option {
    const char *name;
    int level, option, is_boolean;
};

#define TCP_OPTION_ROW(NAME, LEVEL, OPTION, BOOLEAN) {NAME, LEVEL, OPTION, BOOLEAN},
static const struct tcp_option tcp_options[] = {TCP_OPTIONS(TCP_OPTION_ROW){NULL, 0, 0, 0}};

/* The longest, and its end. */
#define TCP_OPTION_NAME (sizeof "send_timeout_close")

/* An atom's name, which is compared with ours: to look up an atom for each of ours takes more than a
 * microsecond, and each send that waits asks for one. No option has the name "". Whether it is one. */
static int tcp_option_name(ErlNifEnv *env, ERL_NIF_TERM term, char *name)
{
    if (!enif_get_atom(env, term, name, TCP_OPTION_NAME, ERL_NIF_LATIN1))
        name[0] = '\0';
    return enif_is_atom(env, term);
}

/* One that is ours alone, and its least and most; value NULL: it is none, or none of this socket. */
struct tcp_own_option {
    const char *name;
    int64_t *value, least, most;
};

static struct tcp_own_option tcp_own_option(struct tcp_socket *socket, const char *name)
{
    const struct tcp_own_option own[] = {
        {"send_timeout", &socket->send_timeout_ms, -1, UINT32_MAX},
        {"send_timeout_close", &socket->send_timeout_close, 0, 1},
        {"buffer", &socket->buffer, 1, TCP_BUFFER_MAX},
        {"accept_active", tcp_listens(socket) ? &socket->accept_active : NULL, TCP_ALWAYS,
         TCP_ACCEPT_ONCE},
        {NULL, NULL, 0, 0},
    };
    int i = 0;

    while (own[i].name != NULL && strcmp(name, own[i].name) != 0)
        i++;
    return own[i];
}

static const struct tcp_option *tcp_option_find(const char *name)
{
    const struct tcp_option *option = tcp_options;

    while (option->name != NULL && strcmp(name, option->name) != 0)
        option++;
    return option->name == NULL ? NULL : option;
}

/* Seconds to linger would block a scheduler in close(2): 0, which resets, is all that is taken. */
static int tcp_set_linger(int number, int seconds)
{
    const struct linger linger = {seconds == 0, 0};

    if (seconds > 0) {
        errno = EINVAL;
        return -1;
    }
    return setsockopt(number, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
}

/* (Socket, Name, Integer) -> ok | {error, Reason}. Linger: seconds, or -1. */
static ERL_NIF_TERM tcp_setopt(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    const struct tcp_option *option;
    struct tcp_own_option own;
    char name[TCP_OPTION_NAME];
    int value, number, error = 0;
    ErlNifSInt64 term;

    (void)argc;
    if (socket == NULL || !tcp_option_name(env, argv[1], name))
        return enif_make_badarg(env);
    if (!enif_get_int64(env, argv[2], &term))
        return tcp_error(env, "einval");
    own = tcp_own_option(socket, name);
    option = tcp_option_find(name);
    value = (int)term;
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    if (own.value != NULL && term >= own.least && term <= own.most)
        __atomic_store_n(own.value, term, __ATOMIC_RELAXED);
    else if (own.value != NULL || term != value)
        error = EINVAL;
    else if (option != NULL)
        error = setsockopt(number, option->level, option->option, &value, sizeof value) == 0
                    ? 0
                    : errno;
    else if (strcmp(name, "linger") == 0)
        error = tcp_set_linger(number, value) == 0 ? 0 : errno;
    else
        error = EINVAL;
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* The credit that it has; of a listening socket, that those that it accepts begin with. */
static ERL_NIF_TERM tcp_credit_term(ErlNifEnv *env, struct tcp_socket *socket)
{
    const int listens = tcp_listens(socket);
    const int credit = listens ? (int)__atomic_load_n(&socket->accept_active, __ATOMIC_RELAXED)
                               : __atomic_load_n(&socket->credit, __ATOMIC_ACQUIRE);
    const int once =
        listens ? credit == TCP_ACCEPT_ONCE : __atomic_load_n(&socket->once, __ATOMIC_ACQUIRE);

    if (credit == TCP_PASSIVE)
        return tcp_atom(env, "false");
    if (credit == TCP_ALWAYS)
        return tcp_atom(env, "true");
    return once ? tcp_words.once : enif_make_int(env, credit);
}

static ERL_NIF_TERM tcp_linger_term(ErlNifEnv *env, int number)
{
    struct linger linger = {0, 0};
    socklen_t size = sizeof linger;

    if (getsockopt(number, SOL_SOCKET, SO_LINGER, &linger, &size) != 0)
        return tcp_errno(env, errno);
    return tcp_ok(env, enif_make_tuple2(env, tcp_atom(env, linger.l_onoff ? "true" : "false"),
                                        enif_make_int(env, linger.l_linger)));
}

static ERL_NIF_TERM tcp_getopt_open(ErlNifEnv *env, struct tcp_socket *socket, int number,
                                    const char *name)
{
    const struct tcp_option *option = tcp_option_find(name);
    const int64_t *own = tcp_own_option(socket, name).value;
    int value = 0;
    socklen_t size = sizeof value;

    if (own != NULL)
        return tcp_ok(env, enif_make_int64(env, __atomic_load_n(own, __ATOMIC_RELAXED)));
    if (strcmp(name, "active") == 0)
        return tcp_ok(env, tcp_credit_term(env, socket));
    if (strcmp(name, "linger") == 0)
        return tcp_linger_term(env, number);
    if (strcmp(name, "send_oct") == 0)
        return tcp_ok(env, enif_make_int64(env, __atomic_load_n(&socket->sent, __ATOMIC_RELAXED)));
    if (strcmp(name, "recv_oct") == 0)
        return tcp_ok(env,
                      enif_make_int64(env, __atomic_load_n(&socket->received, __ATOMIC_RELAXED)));
    if (option == NULL)
        return tcp_error(env, "einval");
    if (getsockopt(number, option->level, option->option, &value, &size) != 0)
        return tcp_errno(env, errno);
    return tcp_ok(env, option->is_boolean ? tcp_atom(env, value ? "true" : "false")
                                          : enif_make_int(env, value));
}

/* (Socket, Name) -> {ok, Value} | {error, Reason} */
static ERL_NIF_TERM tcp_getopt(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    char name[TCP_OPTION_NAME];
    ERL_NIF_TERM term;
    int number;

    (void)argc;
    if (socket == NULL || !tcp_option_name(env, argv[1], name))
        return enif_make_badarg(env);
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    term = tcp_getopt_open(env, socket, number, name);
    tame_fd_unuse(env, &socket->fd);
    return term;
}

/* What getraw gives at most. */
#define TCP_RAW_MAX 1024

/* (Socket, Level, Option, Binary) -> ok | {error, Reason}: for setsockopt as it is; but no linger. */
static ERL_NIF_TERM tcp_setraw(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    int level, option, number, error;
    ErlNifBinary value;

    (void)argc;
    if (socket == NULL || !enif_get_int(env, argv[1], &level) ||
        !enif_get_int(env, argv[2], &option) || !enif_inspect_binary(env, argv[3], &value))
        return enif_make_badarg(env);
    if (level == SOL_SOCKET && option == SO_LINGER)
        return tcp_error(env, "einval");
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    error = setsockopt(number, level, option, value.data, (socklen_t)value.size) == 0 ? 0 : errno;
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_words.ok : tcp_errno(env, error);
}

/* (Socket, Level, Option, Size) -> {ok, Binary} | {error, Reason} */
static ERL_NIF_TERM tcp_getraw(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    unsigned char value[TCP_RAW_MAX];
    int level, option, number, error;
    ERL_NIF_TERM term;
    unsigned most;
    socklen_t size;

    (void)argc;
    if (socket == NULL || !enif_get_int(env, argv[1], &level) ||
        !enif_get_int(env, argv[2], &option) || !enif_get_uint(env, argv[3], &most))
        return enif_make_badarg(env);
    if (most > TCP_RAW_MAX)
        return tcp_error(env, "einval");
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    size = (socklen_t)most;
    error = getsockopt(number, level, option, value, &size) == 0 ? 0 : errno;
    tame_fd_unuse(env, &socket->fd);
    if (error != 0)
        return tcp_errno(env, error);
    size = size < most ? size : most;
    memcpy(enif_make_new_binary(env, size, &term), value, size);
    return tcp_ok(env, term);
}

/* (Socket, sockname | peername) -> {ok, Address} | {error, Reason} */
static ERL_NIF_TERM tcp_name(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_socket *socket = tcp_get(env, argv[0]);
    const int peer = enif_is_identical(argv[1], tcp_atom(env, "peername"));
    struct tcp_address address;
    int number, error;

    (void)argc;
    if (socket == NULL)
        return enif_make_badarg(env);
    number = tame_fd_use(&socket->fd);
    if (number < 0)
        return tcp_error(env, "closed");
    memset(&address, 0, sizeof address);
    address.size = sizeof address.to;
    error = (peer ? getpeername(number, &address.to.any, &address.size)
                  : getsockname(number, &address.to.any, &address.size)) == 0
                ? 0
                : errno;
    tame_fd_unuse(env, &socket->fd);
    return error == 0 ? tcp_ok(env, tcp_address_term(env, &address)) : tcp_errno(env, error);
}

#endif
