/* One connection of the generator: connecting, sending, reading, and which requests are under way
 * on it. It never blocks.
 *
 * Memory: its buffers, and as many streams as it was opened with; who opens it owns it.
 */
#ifndef TAME_LOAD_CONNECTION_H
#define TAME_LOAD_CONNECTION_H

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "answer.h"
#include "plan.h"

#define MAX_STREAMS 128
/* A frame that is not whole yet, with as much behind it; or the head of an answer. */
#define IN_BYTES (2 * (FRAME_HEADER_BYTES + FRAME_PAYLOAD_BYTES))
/* All requests that may be under way, and a few frames beside them. */
#define OUT_BYTES (MAX_STREAMS * 512)
#define REQUEST_BYTES 400
/* The window that we give a server, and how much of it is used up before we give more. */
#define WINDOW (1u << 30)
#define WINDOW_AGAIN (1u << 29)
/* After a connection was refused or lost. */
#define AGAIN_NS 10000000

struct target {
    int h2;
    uint16_t port;
    const char *path;
    uint32_t streams;
};

struct stream {
    uint32_t id; /* 0 of one that is free */
    uint32_t request;
    int status;
};

struct connection {
    int fd; /* -1 when there is none */
    int ready;
    int last; /* the server closes it after this answer */
    int64_t again_ns;
    uint32_t next_id, busy, allowed;
    uint64_t skip_bytes, data_bytes;
    size_t in_size, out_size;
    struct stream streams[MAX_STREAMS];
    unsigned char in[IN_BYTES], out[OUT_BYTES];
};

/* ---- bytes out ------------------------------------------------------------------------------ */

/* Room is asked for before (can_send), or the connection is given up. */
static inline int put(struct connection *c, const void *bytes, size_t size)
{
    if (size > sizeof c->out - c->out_size)
        return -1;
    memcpy(c->out + c->out_size, bytes, size);
    c->out_size += size;
    return 0;
}

static inline int put_frame(struct connection *c, int type, int flags, uint32_t stream,
                            const void *payload, size_t size)
{
    unsigned char header[FRAME_HEADER_BYTES] = {
        (unsigned char)(size >> 16),   (unsigned char)(size >> 8),   (unsigned char)size,
        (unsigned char)type,           (unsigned char)flags,         (unsigned char)(stream >> 24),
        (unsigned char)(stream >> 16), (unsigned char)(stream >> 8), (unsigned char)stream};

    return put(c, header, sizeof header) < 0 ? -1 : put(c, payload, size);
}

static inline int put_window(struct connection *c, uint32_t bytes)
{
    unsigned char more[4] = {(unsigned char)(bytes >> 24), (unsigned char)(bytes >> 16),
                             (unsigned char)(bytes >> 8), (unsigned char)bytes};

    return put_frame(c, FRAME_WINDOW_UPDATE, 0, 0, more, sizeof more);
}

/* No dynamic table, no pushing, and streams whose windows are never full. */
static inline int put_preface(struct connection *c)
{
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    static const unsigned char settings[] = {0, 1, 0, 0, 0, 0,    0,    2,    0,
                                             0, 0, 0, 0, 4, 0x7f, 0xff, 0xff, 0xff};

    if (put(c, preface, sizeof preface - 1) < 0 ||
        put_frame(c, FRAME_SETTINGS, 0, 0, settings, sizeof settings) < 0)
        return -1;
    return put_window(c, WINDOW);
}

static inline int put_request(struct connection *c, const struct target *to, uint32_t id)
{
    char text[REQUEST_BYTES], host[24];
    int host_size = snprintf(host, sizeof host, "127.0.0.1:%u", (unsigned)to->port);
    size_t path_size = strlen(to->path);

    if (!to->h2) {
        int size =
            snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nhost: %s\r\n\r\n", to->path, host);
        return put(c, text, (size_t)size);
    }

    /* GET and http from the static table, a path and an authority with names from there. */
    unsigned char block[REQUEST_BYTES] = {0x82, 0x86, 0x04, (unsigned char)path_size};
    size_t at = 4;

    memcpy(block + at, to->path, path_size), at += path_size;
    block[at++] = 0x01;
    block[at++] = (unsigned char)host_size;
    memcpy(block + at, host, (size_t)host_size), at += (size_t)host_size;
    return put_frame(c, FRAME_HEADERS, FLAG_END_STREAM | FLAG_END_HEADERS, id, block, at);
}

/* ---- its life ------------------------------------------------------------------------------- */

/* What was under way is lost. */
static inline void connection_close(struct connection *c, struct request *requests, int64_t now)
{
    for (uint32_t i = 0; i < MAX_STREAMS; i++) {
        if (c->streams[i].id != 0) {
            requests[c->streams[i].request].done_ns = now;
            requests[c->streams[i].request].status = CONNECTION_LOST;
            c->streams[i].id = 0;
        }
    }
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->ready = c->last = 0;
    c->busy = 0;
    c->again_ns = now + AGAIN_NS;
}

/* Begins to connect. Returns 0, or -1 when that failed at once. */
static inline int connection_open(struct connection *c, const struct target *to)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    int on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0)
        return -1;
    if (fcntl(c->fd, F_SETFL, O_NONBLOCK) < 0 ||
        setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) < 0 ||
        (connect(c->fd, (struct sockaddr *)&address, sizeof address) < 0 && errno != EINPROGRESS)) {
        close(c->fd);
        c->fd = -1;
        return -1;
    }
    c->next_id = 1;
    c->allowed = to->streams;
    c->in_size = c->out_size = 0;
    c->skip_bytes = c->data_bytes = 0;
    return to->h2 ? put_preface(c) : 0;
}

/* Its socket can be written to for the first time: whether it is connected. */
static inline int connection_connected(struct connection *c)
{
    int error = 0;
    socklen_t size = sizeof error;

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0 || error != 0)
        return -1;
    c->ready = 1;
    return 0;
}

/* Writes what the socket takes. -1 when the connection is lost. */
static inline int connection_flush(struct connection *c)
{
    size_t done = 0;

    while (done < c->out_size) {
        ssize_t n = write(c->fd, c->out + done, c->out_size - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            break;
        if (n <= 0)
            return -1;
        done += (size_t)n;
    }
    memmove(c->out, c->out + done, c->out_size - done);
    c->out_size -= done;
    return 0;
}

static inline int can_send(const struct connection *c)
{
    return c->ready && !c->last && c->busy < c->allowed &&
           sizeof c->out - c->out_size > REQUEST_BYTES + FRAME_HEADER_BYTES;
}

/* Puts a request on a free stream; can_send is true. -1 when the connection is lost. */
static inline int connection_send(struct connection *c, const struct target *to, uint32_t request)
{
    uint32_t i = 0;

    while (c->streams[i].id != 0)
        i++;
    c->streams[i] = (struct stream){.id = c->next_id, .request = request};
    c->next_id += 2;
    c->busy++;
    return put_request(c, to, c->streams[i].id);
}

/* ---- bytes in ------------------------------------------------------------------------------- */

static inline struct stream *stream_of(struct connection *c, const struct target *to, uint32_t id)
{
    for (uint32_t i = 0; i < MAX_STREAMS; i++)
        if (c->streams[i].id != 0 && (!to->h2 || c->streams[i].id == id))
            return &c->streams[i];
    return NULL;
}

static inline void over(struct connection *c, struct stream *stream, struct request *requests,
                        int64_t now, int status)
{
    requests[stream->request].done_ns = now;
    requests[stream->request].status = status;
    stream->id = 0;
    c->busy--;
}

/* Does what an answer asks for. -1 when the connection is of no use any more. */
static inline int heed(struct connection *c, const struct target *to, struct request *requests,
                       int64_t now, const struct answer *answer)
{
    struct stream *stream = stream_of(c, to, answer->stream);

    c->data_bytes += answer->data_bytes;
    if (c->data_bytes >= WINDOW_AGAIN) {
        if (put_window(c, (uint32_t)c->data_bytes) < 0)
            return -1;
        c->data_bytes = 0;
    }
    switch (answer->kind) {
    case ANSWER_STATUS:
        if (stream != NULL && answer->status >= 200)
            stream->status = answer->status;
        return 0;
    case ANSWER_DONE:
        if (stream == NULL)
            return to->h2 ? 0 : -1;
        if (stream->status == 0)
            stream->status = answer->status;
        over(c, stream, requests, now, stream->status ? stream->status : NOT_UNDERSTOOD);
        c->skip_bytes = answer->body_bytes;
        c->last |= answer->close;
        return 0;
    case ANSWER_RESET:
        if (stream != NULL)
            over(c, stream, requests, now, STREAM_RESET);
        return 0;
    case ANSWER_SETTINGS:
        if (answer->streams > 0 && answer->streams < c->allowed)
            c->allowed = answer->streams;
        return put_frame(c, FRAME_SETTINGS, FLAG_ACK, 0, "", 0);
    case ANSWER_PING:
        return put_frame(c, FRAME_PING, FLAG_ACK, 0, answer->payload, 8);
    case ANSWER_ERROR:
        return -1;
    default:
        return 0;
    }
}

/* Reads once and deals with what is whole. -1 when the connection is lost, or has to be. */
static inline int connection_read(struct connection *c, const struct target *to,
                                  struct request *requests, int64_t now)
{
    size_t at = 0;
    ssize_t n = read(c->fd, c->in + c->in_size, sizeof c->in - c->in_size);

    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR))
        return 0;
    if (n <= 0)
        return -1;
    c->in_size += (size_t)n;

    for (;;) {
        size_t skipped = c->in_size - at < c->skip_bytes ? c->in_size - at : (size_t)c->skip_bytes;

        at += skipped;
        c->skip_bytes -= skipped;
        if (at == c->in_size)
            break;

        struct answer answer = to->h2 ? h2_answer(c->in + at, c->in_size - at)
                                      : h1_answer(c->in + at, c->in_size - at);

        if (answer.kind == ANSWER_MORE)
            break;
        if (heed(c, to, requests, now, &answer) < 0)
            return -1;
        at += answer.used;
    }
    memmove(c->in, c->in + at, c->in_size - at);
    c->in_size -= at;
    /* Only once the body is read. */
    return c->last && c->skip_bytes == 0 ? -1 : 0;
}

#endif
