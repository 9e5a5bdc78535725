/* control.h - what is asked of a socket besides messages: addresses, options, statistics.
 *
 * Bytes in, bytes out, the same for the NIF and the driver; tame_nng_control.erl has the other
 * half. All of it may block, for a name to be resolved or for nng's locks, and runs outside. */
#ifndef TAME_NNG_CONTROL_H
#define TAME_NNG_CONTROL_H

#include <stdint.h>
#include <stdio.h>

#include "dialing.h"
#include "socket.h"

enum tn_control_code {
    TN_LISTEN = 1, /* url */
    TN_DIAL,       /* url: tries in the background */
    TN_DIAL_WAIT,  /* url: returns when the first try has ended */
    TN_HANG_UP,    /* 1: a listener, or 0: a dialer; id:32 */
    TN_URL,        /* the same */
    TN_SET,        /* size:8, name, value: 8 bytes, or a topic */
    TN_GET,        /* size:8, name */
    TN_STATISTICS
};

/* A reply's first byte; what follows. */
enum tn_reply_kind {
    TN_REPLY_OK,
    TN_REPLY_NUMBER, /* number:64 */
    TN_REPLY_BYTES,  /* bytes */
    TN_REPLY_ERROR,  /* a name */
    TN_REPLY_WAIT    /* ms:64, or nothing; of the driver alone: a message comes */
};

#define TN_REPLY_MAX 512

/* ---- replies ---- */

static inline void tn_write64(unsigned char *to, uint64_t value)
{
    for (int i = 8; i-- > 0; value >>= 8)
        to[i] = (unsigned char)(value & 0xff);
}

static inline uint64_t tn_read(const unsigned char *from, size_t size)
{
    uint64_t value = 0;

    for (size_t i = 0; i < size; i++)
        value = value << 8 | from[i];
    return value;
}

static inline size_t tn_reply_bytes(unsigned char *reply, enum tn_reply_kind kind,
                                    const char *bytes)
{
    reply[0] = (unsigned char)kind;
    return 1 + (size_t)snprintf((char *)reply + 1, TN_REPLY_MAX - 1, "%.500s", bytes);
}

static inline size_t tn_reply_number(unsigned char *reply, uint64_t number)
{
    reply[0] = TN_REPLY_NUMBER;
    tn_write64(reply + 1, number);
    return 9;
}

/* ok, or the error. */
static inline size_t tn_reply_done(unsigned char *reply, int error)
{
    if (error != 0)
        return tn_reply_bytes(reply, TN_REPLY_ERROR, tn_error_name(error));
    reply[0] = TN_REPLY_OK;
    return 1;
}

/* ---- addresses ---- */

static inline size_t tn_control_address(struct tn_socket *socket, unsigned code, const char *bytes,
                                        size_t size, unsigned char *reply)
{
    char url[NNG_MAXADDRLEN + 1];
    nng_listener listener = NNG_LISTENER_INITIALIZER;
    nng_dialer dialer = NNG_DIALER_INITIALIZER;
    struct tn_dialing dialing;
    int error = 0;

    if (size >= sizeof url || memchr(bytes, 0, size) != NULL)
        return tn_reply_done(reply, NNG_EINVAL);
    memcpy(url, bytes, size);
    url[size] = 0;
    if (code == TN_LISTEN) {
        error = nng_listen(socket->nng, url, &listener, 0);
    } else if (code == TN_DIAL) {
        error = nng_dial(socket->nng, url, &dialer, NNG_FLAG_NONBLOCK);
    } else if ((error = tn_dialing_begin(&dialing, socket->nng)) == 0) {
        error = nng_dial(socket->nng, url, &dialer, 0);
        tn_dialing_end(&dialing);
    }
    if (error != 0)
        return tn_reply_done(reply, error);
    return tn_reply_number(reply, code == TN_LISTEN ? listener.id : dialer.id);
}

/* 0, NNG_ENOENT of another socket's, or nng's error. nng asks the socket for what an end point does
 * not have; the name of a socket is its own. */
static inline int tn_end_point_of(const struct tn_socket *socket, int is_listener,
                                  nng_listener listener, nng_dialer dialer)
{
    char *ours = NULL, *its = NULL;
    int error = nng_socket_get_string(socket->nng, NNG_OPT_SOCKNAME, &ours);

    if (error == 0)
        error = is_listener ? nng_listener_get_string(listener, NNG_OPT_SOCKNAME, &its)
                            : nng_dialer_get_string(dialer, NNG_OPT_SOCKNAME, &its);
    if (error == 0 && strcmp(ours, its) != 0)
        error = NNG_ENOENT;
    nng_strfree(ours);
    nng_strfree(its);
    return error;
}

static inline size_t tn_control_end_point(const struct tn_socket *socket, unsigned code,
                                          const unsigned char *bytes, unsigned char *reply)
{
    const uint32_t id = (uint32_t)tn_read(bytes + 1, 4);
    const nng_listener listener = {id};
    const nng_dialer dialer = {id};
    char *url = NULL;
    size_t size;
    int error = tn_end_point_of(socket, bytes[0], listener, dialer);

    if (error != 0)
        return tn_reply_done(reply, error);
    if (code == TN_HANG_UP)
        return tn_reply_done(reply,
                             bytes[0] ? nng_listener_close(listener) : nng_dialer_close(dialer));
    error = bytes[0] ? nng_listener_get_string(listener, NNG_OPT_URL, &url)
                     : nng_dialer_get_string(dialer, NNG_OPT_URL, &url);
    if (error != 0)
        return tn_reply_done(reply, error);
    size = tn_reply_bytes(reply, TN_REPLY_BYTES, url);
    nng_strfree(url);
    return size;
}

/* ---- options ---- */

enum tn_option_type { TN_BOOL, TN_INT, TN_SIZE, TN_MS, TN_SURVEY, TN_TOPIC };

struct tn_option {
    const char *name, *nng;
    enum tn_option_type type;
};

static const struct tn_option tn_options[] = {
    {"recv_buffer", NNG_OPT_RECVBUF, TN_INT},
    {"send_buffer", NNG_OPT_SENDBUF, TN_INT},
    {"recv_max_size", NNG_OPT_RECVMAXSZ, TN_SIZE},
    {"reconnect_min", NNG_OPT_RECONNMINT, TN_MS},
    {"reconnect_max", NNG_OPT_RECONNMAXT, TN_MS},
    {"ttl", NNG_OPT_MAXTTL, TN_INT},
    {"nodelay", NNG_OPT_TCP_NODELAY, TN_BOOL},
    {"keepalive", NNG_OPT_TCP_KEEPALIVE, TN_BOOL},
    {"resend_time", NNG_OPT_REQ_RESENDTIME, TN_MS},
    {"survey_time", NNG_OPT_SURVEYOR_SURVEYTIME, TN_SURVEY},
    {"prefer_new", NNG_OPT_SUB_PREFNEW, TN_BOOL},
    {"subscribe", NNG_OPT_SUB_SUBSCRIBE, TN_TOPIC},
    {"unsubscribe", NNG_OPT_SUB_UNSUBSCRIBE, TN_TOPIC},
};

/* name: size:8 and the bytes; what follows is at *value. NULL: there is none of that name. */
static inline const struct tn_option *tn_option_find(const unsigned char *bytes, size_t size,
                                                     const unsigned char **value)
{
    const size_t name = size > 0 ? bytes[0] : 0;

    if (size < 1 + name)
        return NULL;
    *value = bytes + 1 + name;
    for (size_t i = 0; i < sizeof tn_options / sizeof tn_options[0]; i++)
        if (strlen(tn_options[i].name) == name && memcmp(tn_options[i].name, bytes + 1, name) == 0)
            return &tn_options[i];
    return NULL;
}

/* Of a socket, or of a context when there is one; `survey' is theirs, or NULL. */
static inline int tn_option_set(nng_socket nng, const nng_ctx *context, struct tn_survey *survey,
                                const struct tn_option *option, const unsigned char *value,
                                size_t size)
{
    const int64_t number = size == 8 ? (int64_t)tn_read(value, 8) : 0;

    if (option->type == TN_TOPIC)
        return context != NULL ? nng_ctx_set(*context, option->nng, value, size)
                               : nng_socket_set(nng, option->nng, value, size);
    if (size != 8 || (option->type != TN_SIZE && (number < INT32_MIN || number > INT32_MAX)) ||
        (option->type != TN_MS && option->type != TN_SURVEY && number < 0) || number < -1 ||
        (option->type == TN_BOOL && number > 1))
        return NNG_EINVAL;
    switch (option->type) {
    case TN_SURVEY:
        if (survey == NULL)
            return NNG_ENOTSUP;
        __atomic_store_n(&survey->time, number, __ATOMIC_RELAXED);
        return 0;
    case TN_BOOL:
        return context != NULL ? nng_ctx_set_bool(*context, option->nng, number != 0)
                               : nng_socket_set_bool(nng, option->nng, number != 0);
    case TN_INT:
        return context != NULL ? nng_ctx_set_int(*context, option->nng, (int)number)
                               : nng_socket_set_int(nng, option->nng, (int)number);
    case TN_SIZE:
        return context != NULL ? nng_ctx_set_size(*context, option->nng, (size_t)number)
                               : nng_socket_set_size(nng, option->nng, (size_t)number);
    default:
        return context != NULL ? nng_ctx_set_ms(*context, option->nng, (nng_duration)number)
                               : nng_socket_set_ms(nng, option->nng, (nng_duration)number);
    }
}

/* NULL: it does not survey. */
static inline struct tn_survey *tn_survey_of(struct tn_socket *socket)
{
    return socket->protocol->traits & TN_SURVEYS ? &socket->survey : NULL;
}

static inline size_t tn_option_get(struct tn_socket *socket, const struct tn_option *option,
                                   unsigned char *reply)
{
    const struct tn_survey *survey = tn_survey_of(socket);
    const nng_socket nng = socket->nng;
    nng_duration ms = 0;
    bool truth = false;
    size_t size = 0;
    int number = 0, error;

    switch (option->type) {
    case TN_SURVEY:
        error = survey == NULL ? NNG_ENOTSUP : 0;
        ms = survey == NULL ? 0 : (nng_duration)__atomic_load_n(&survey->time, __ATOMIC_RELAXED);
        break;
    case TN_BOOL:
        error = nng_socket_get_bool(nng, option->nng, &truth);
        break;
    case TN_INT:
        error = nng_socket_get_int(nng, option->nng, &number);
        break;
    case TN_SIZE:
        error = nng_socket_get_size(nng, option->nng, &size);
        break;
    case TN_MS:
        error = nng_socket_get_ms(nng, option->nng, &ms);
        break;
    default:
        return tn_reply_done(reply, NNG_EINVAL);
    }
    if (error != 0)
        return tn_reply_done(reply, error);
    return tn_reply_number(reply,
                           (uint64_t)truth + (uint64_t)number + size + (uint64_t)(int64_t)ms);
}

static inline size_t tn_control_option(struct tn_socket *socket, unsigned code,
                                       const unsigned char *bytes, size_t size,
                                       unsigned char *reply)
{
    const unsigned char *value;
    const struct tn_option *option = tn_option_find(bytes, size, &value);

    if (option == NULL)
        return tn_reply_done(reply, NNG_EINVAL);
    if (code == TN_GET)
        return tn_option_get(socket, option, reply);
    return tn_reply_done(reply, tn_option_set(socket->nng, NULL, tn_survey_of(socket), option,
                                              value, size - (size_t)(value - bytes)));
}

/* What TN_SET has, for a context and its survey, or NULL. Returns nng's error. */
static inline int tn_control_context(nng_ctx context, struct tn_survey *survey,
                                     const unsigned char *bytes, size_t size)
{
    const unsigned char *value;
    const struct tn_option *option = tn_option_find(bytes, size, &value);

    return option == NULL ? NNG_EINVAL
                          : tn_option_set((nng_socket)NNG_SOCKET_INITIALIZER, &context, survey,
                                          option, value, size - (size_t)(value - bytes));
}

/* ---- statistics ---- */

/* Of nng, after ours; in the order of tame_nng_control:value/2. */
static const char *const tn_statistics[] = {"pipes", "reject"};

static inline nng_stat *tn_stat_child(nng_stat *scope, const char *name)
{
    nng_stat *stat = nng_stat_child(scope);

    while (stat != NULL && strcmp(nng_stat_name(stat), name) != 0)
        stat = nng_stat_next(stat);
    return stat;
}

/* NULL when it is closed. nng_stat_find_socket may find what a connection knows of its socket. */
static inline nng_stat *tn_stat_socket(nng_stat *all, nng_socket socket)
{
    nng_stat *scope;

    for (scope = nng_stat_child(all); scope != NULL; scope = nng_stat_next(scope)) {
        nng_stat *id;

        if (strcmp(nng_stat_name(scope), "socket") != 0)
            continue;
        id = tn_stat_child(scope, "id");
        if (id != NULL && nng_stat_value(id) == (uint64_t)nng_socket_id(socket))
            break;
    }
    return scope;
}

static inline size_t tn_control_statistics(struct tn_socket *socket, unsigned char *reply)
{
    const uint64_t *const counters[] = {&socket->sent, &socket->received, &socket->sent_bytes,
                                        &socket->received_bytes};
    nng_stat *all, *ours;
    size_t size = 1;
    const int error = nng_stats_get(&all);

    if (error != 0)
        return tn_reply_done(reply, error);
    reply[0] = TN_REPLY_BYTES;
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++, size += 8)
        tn_write64(reply + size, __atomic_load_n(counters[i], __ATOMIC_RELAXED));
    ours = tn_stat_socket(all, socket->nng);
    for (size_t i = 0; i < sizeof tn_statistics / sizeof tn_statistics[0]; i++, size += 8) {
        nng_stat *stat = ours == NULL ? NULL : tn_stat_child(ours, tn_statistics[i]);

        tn_write64(reply + size, stat == NULL ? 0 : nng_stat_value(stat));
    }
    nng_stats_free(all);
    return ours == NULL ? tn_reply_done(reply, NNG_ECLOSED) : size;
}

/* Writes TN_REPLY_MAX bytes of reply at most, and returns how many. */
static inline size_t tn_control(struct tn_socket *socket, unsigned code, const void *bytes,
                                size_t size, unsigned char *reply)
{
    switch (code) {
    case TN_LISTEN:
    case TN_DIAL:
    case TN_DIAL_WAIT:
        return tn_control_address(socket, code, (const char *)bytes, size, reply);
    case TN_HANG_UP:
    case TN_URL:
        if (size == 5)
            return tn_control_end_point(socket, code, (const unsigned char *)bytes, reply);
        break;
    case TN_SET:
    case TN_GET:
        return tn_control_option(socket, code, (const unsigned char *)bytes, size, reply);
    case TN_STATISTICS:
        return tn_control_statistics(socket, reply);
    }
    return tn_reply_done(reply, NNG_EINVAL);
}

#endif
