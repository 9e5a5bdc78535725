/* address.h - addresses as inet has them: {Ip, Port}, {local, Path}.
 *
 *   {inet, {A, B, C, D}, Port}   {inet6, {A, B, C, D, E, F, G, H}, Port, ScopeId}   {local, Path}
 *
 * are the terms that come in. */
#ifndef TAME_TCP_ADDRESS_H
#define TAME_TCP_ADDRESS_H

#include <arpa/inet.h>
#include <erl_nif.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "answer.h"

struct tcp_address {
    union {
        struct sockaddr any;
        struct sockaddr_in in;
        struct sockaddr_in6 in6;
        struct sockaddr_un un;
        struct sockaddr_storage room;
    } to;
    socklen_t size;
};

static inline int tcp_numbers(ErlNifEnv *env, ERL_NIF_TERM tuple, int length, unsigned limit,
                              unsigned *numbers)
{
    const ERL_NIF_TERM *terms;
    int arity;

    if (!enif_get_tuple(env, tuple, &arity, &terms) || arity != length)
        return 0;
    for (int i = 0; i < length; i++)
        if (!enif_get_uint(env, terms[i], &numbers[i]) || numbers[i] > limit)
            return 0;
    return 1;
}

static inline int tcp_port(ErlNifEnv *env, ERL_NIF_TERM term, in_port_t *port)
{
    unsigned number;

    if (!enif_get_uint(env, term, &number) || number > 65535)
        return 0;
    *port = htons((uint16_t)number);
    return 1;
}

static inline int tcp_address_inet(ErlNifEnv *env, const ERL_NIF_TERM *terms,
                                   struct tcp_address *address)
{
    unsigned ip[4];

    if (!tcp_numbers(env, terms[1], 4, 255, ip) ||
        !tcp_port(env, terms[2], &address->to.in.sin_port))
        return 0;
    address->to.in.sin_family = AF_INET;
    address->to.in.sin_addr.s_addr = htonl(ip[0] << 24 | ip[1] << 16 | ip[2] << 8 | ip[3]);
    address->size = sizeof address->to.in;
    return 1;
}

static inline int tcp_address_inet6(ErlNifEnv *env, const ERL_NIF_TERM *terms,
                                    struct tcp_address *address)
{
    unsigned ip[8], scope;

    if (!tcp_numbers(env, terms[1], 8, 65535, ip) ||
        !tcp_port(env, terms[2], &address->to.in6.sin6_port) ||
        !enif_get_uint(env, terms[3], &scope))
        return 0;
    address->to.in6.sin6_family = AF_INET6;
    address->to.in6.sin6_scope_id = scope;
    for (int i = 0; i < 8; i++) {
        address->to.in6.sin6_addr.s6_addr[2 * i] = (uint8_t)(ip[i] >> 8);
        address->to.in6.sin6_addr.s6_addr[2 * i + 1] = (uint8_t)ip[i];
    }
    address->size = sizeof address->to.in6;
    return 1;
}

static inline int tcp_address_local(ErlNifEnv *env, const ERL_NIF_TERM *terms,
                                    struct tcp_address *address)
{
    ErlNifBinary path;

    if (!enif_inspect_binary(env, terms[1], &path) || path.size == 0 ||
        path.size >= sizeof address->to.un.sun_path)
        return 0;
    address->to.un.sun_family = AF_UNIX;
    memcpy(address->to.un.sun_path, path.data, path.size);
    /* A path ends with a zero; a name without a file begins with one. */
    address->size =
        (socklen_t)(offsetof(struct sockaddr_un, sun_path) + path.size + (path.data[0] != 0));
    return 1;
}

static inline int tcp_address_get(ErlNifEnv *env, ERL_NIF_TERM term, struct tcp_address *address)
{
    const ERL_NIF_TERM *terms;
    int arity;

    memset(address, 0, sizeof *address);
    if (!enif_get_tuple(env, term, &arity, &terms))
        return 0;
    if (arity == 3 && enif_is_identical(terms[0], tcp_atom(env, "inet")))
        return tcp_address_inet(env, terms, address);
    if (arity == 4 && enif_is_identical(terms[0], tcp_atom(env, "inet6")))
        return tcp_address_inet6(env, terms, address);
    if (arity == 2 && enif_is_identical(terms[0], tcp_atom(env, "local")))
        return tcp_address_local(env, terms, address);
    return 0;
}

static inline ERL_NIF_TERM tcp_address_ip6(ErlNifEnv *env, const uint8_t *bytes)
{
    ERL_NIF_TERM numbers[8];

    for (int i = 0; i < 8; i++)
        numbers[i] = enif_make_uint(env, (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1]);
    return enif_make_tuple_from_array(env, numbers, 8);
}

static inline ERL_NIF_TERM tcp_address_path(ErlNifEnv *env, const struct tcp_address *address)
{
    const size_t header = offsetof(struct sockaddr_un, sun_path);
    size_t size = address->size > header ? address->size - header : 0;
    ERL_NIF_TERM path;

    if (size > 0 && address->to.un.sun_path[0] != 0)
        size = strnlen(address->to.un.sun_path, size);
    memcpy(enif_make_new_binary(env, size, &path), address->to.un.sun_path, size);
    return enif_make_tuple2(env, tcp_atom(env, "local"), path);
}

static inline ERL_NIF_TERM tcp_address_term(ErlNifEnv *env, const struct tcp_address *address)
{
    if (address->to.any.sa_family == AF_INET) {
        const uint32_t ip = ntohl(address->to.in.sin_addr.s_addr);

        return enif_make_tuple2(env,
                                enif_make_tuple4(env, enif_make_uint(env, ip >> 24),
                                                 enif_make_uint(env, ip >> 16 & 255),
                                                 enif_make_uint(env, ip >> 8 & 255),
                                                 enif_make_uint(env, ip & 255)),
                                enif_make_uint(env, ntohs(address->to.in.sin_port)));
    }
    if (address->to.any.sa_family == AF_INET6)
        return enif_make_tuple2(env, tcp_address_ip6(env, address->to.in6.sin6_addr.s6_addr),
                                enif_make_uint(env, ntohs(address->to.in6.sin6_port)));
    return tcp_address_path(env, address);
}

#endif
