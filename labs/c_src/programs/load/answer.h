/* What a server answers, read from bytes as they come: HTTP/1.1 and HTTP/2. Plain C, no memory of
 * its own, no system call; test/c/answer_test.c cuts the same bytes at every place.
 *
 * Only what a load generator has to know is read: which request is over, and its status. All else
 * is skipped. Bytes that are no such answer are an error, after which the connection is of no use.
 */
#ifndef TAME_LOAD_ANSWER_H
#define TAME_LOAD_ANSWER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

/* The longest head of an HTTP/1.1 answer, and the longest frame that a client has to take unless
 * it says otherwise (RFC 9113, 6.5.2). */
#define ANSWER_HEAD_BYTES 16384
#define FRAME_HEADER_BYTES 9
#define FRAME_PAYLOAD_BYTES 16384

/* What one look at the bytes came to. */
enum answer_kind {
    ANSWER_MORE,     /* not yet: more bytes are needed */
    ANSWER_NOTHING,  /* something that ends no request: look again */
    ANSWER_STATUS,   /* HTTP/2: a stream's status, which goes on */
    ANSWER_DONE,     /* a request is over */
    ANSWER_RESET,    /* HTTP/2: a stream was given up by the server */
    ANSWER_SETTINGS, /* HTTP/2: has to be acknowledged; streams is the limit, if it says one */
    ANSWER_PING,     /* HTTP/2: payload is to be sent back */
    ANSWER_ERROR,    /* no answer, or the server is about to close the connection */
};

struct answer {
    enum answer_kind kind;
    size_t used;         /* bytes that are dealt with */
    int status;          /* 0 where it is not known yet */
    int close;           /* HTTP/1.1: the server closes the connection after it */
    uint64_t body_bytes; /* HTTP/1.1: that follow and are to be skipped */
    uint32_t stream;
    uint32_t streams;
    size_t data_bytes; /* HTTP/2: that count against the window */
    const unsigned char *payload;
};

static inline struct answer answer_error(void)
{
    return (struct answer){.kind = ANSWER_ERROR};
}

/* ---- HTTP/1.1 ------------------------------------------------------------------------------- */

static inline int digits_of_status(const unsigned char *p)
{
    for (int i = 0; i < 3; i++)
        if (p[i] < '0' || p[i] > '9')
            return 0;
    return 100 * (p[0] - '0') + 10 * (p[1] - '0') + (p[2] - '0');
}

/* Length of the head with its empty line; 0 while that has not come. */
static inline size_t head_bytes(const unsigned char *p, size_t size)
{
    for (size_t i = 3; i < size; i++)
        if (p[i] == '\n' && memcmp(p + i - 3, "\r\n\r\n", 4) == 0)
            return i + 1;
    return 0;
}

/* Looks at one header line; 0 when it makes the answer one that we cannot read. */
static inline int h1_line(struct answer *answer, const char *line, size_t size, int *length_known)
{
    static const char length[] = "content-length:", chunked[] = "transfer-encoding:",
                      connection[] = "connection:";

    if (size > sizeof length - 1 && strncasecmp(line, length, sizeof length - 1) == 0) {
        size_t i = sizeof length - 1;
        uint64_t bytes = 0;
        int digits = 0;

        while (i < size && line[i] == ' ')
            i++;
        for (; i < size && line[i] >= '0' && line[i] <= '9' && digits < 15; i++, digits++)
            bytes = 10 * bytes + (uint64_t)(line[i] - '0');
        if (digits == 0 || (i < size && line[i] != ' '))
            return 0;
        answer->body_bytes = bytes;
        *length_known = 1;
    } else if (size >= sizeof chunked - 1 && strncasecmp(line, chunked, sizeof chunked - 1) == 0) {
        return 0;
    } else if (size > sizeof connection - 1 &&
               strncasecmp(line, connection, sizeof connection - 1) == 0) {
        for (size_t i = sizeof connection - 1; i + 5 <= size; i++)
            if (strncasecmp(line + i, "close", 5) == 0)
                answer->close = 1;
    }
    return 1;
}

/* Looks at the head of an answer, at the beginning of size bytes. */
static inline struct answer h1_answer(const unsigned char *p, size_t size)
{
    size_t head = head_bytes(p, size);
    struct answer answer = {.kind = ANSWER_DONE, .used = head};
    int length_known = 0;

    if (head == 0)
        return size > ANSWER_HEAD_BYTES ? answer_error() : (struct answer){.kind = ANSWER_MORE};
    if (head < 16 || memcmp(p, "HTTP/1.", 7) != 0 || p[8] != ' ')
        return answer_error();
    answer.status = digits_of_status(p + 9);
    if (answer.status < 100)
        return answer_error();

    for (size_t from = 0, to; from < head; from = to + 2) {
        for (to = from; p[to] != '\r' || p[to + 1] != '\n'; to++) {
        }
        if (!h1_line(&answer, (const char *)p + from, to - from, &length_known))
            return answer_error();
        if (to == from)
            break;
    }
    if (answer.status < 200)
        answer.kind = ANSWER_NOTHING;
    else if (answer.status == 204 || answer.status == 304)
        answer.body_bytes = 0;
    else if (!length_known)
        return answer_error();
    return answer;
}

/* ---- HTTP/2 --------------------------------------------------------------------------------- */

enum {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PUSH_PROMISE = 5,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8
};
enum {
    FLAG_END_STREAM = 1,
    FLAG_ACK = 1,
    FLAG_END_HEADERS = 4,
    FLAG_PADDED = 8,
    FLAG_PRIORITY = 32
};
enum { SETTING_STREAMS = 3 };

static inline uint32_t big_endian(const unsigned char *p, int bytes)
{
    uint32_t value = 0;
    for (int i = 0; i < bytes; i++)
        value = value << 8 | p[i];
    return value;
}

/* A digit in Huffman's code of RFC 7541: 0 to 2 have five bits, 3 to 9 have six. */
static inline int huffman_status(const unsigned char *p, size_t size)
{
    uint32_t bits = 0, at = 32;
    int status = 0;

    for (size_t i = 0; i < 4 && i < size; i++)
        bits |= (uint32_t)p[i] << (24 - 8 * i);
    for (int i = 0; i < 3; i++) {
        uint32_t five = bits >> (at - 5) & 31, six = bits >> (at - 6) & 63;

        if (five <= 2)
            status = 10 * status + (int)five, at -= 5;
        else if (six >= 25 && six <= 31)
            status = 10 * status + (int)six - 22, at -= 6;
        else
            return 0;
    }
    return size * 8 >= 32 - at ? status : 0;
}

/* The status at the beginning of a header block, which is where it has to be (RFC 9113, 8.3); 0 of
 * one that is written in a way that no server uses for it. We allow no dynamic table, so an index
 * is one of the static table. */
static inline int hpack_status(const unsigned char *p, size_t size)
{
    static const int statuses[] = {200, 204, 206, 304, 400, 404, 500};

    while (size > 0 && (p[0] & 0xe0) == 0x20) /* how large the dynamic table is */
        p++, size--;
    if (size > 0 && p[0] >= 0x88 && p[0] <= 0x8e)
        return statuses[p[0] - 0x88];
    if (size < 2)
        return 0;

    /* With an indexed name, to be indexed or not. */
    int name = (p[0] & 0xc0) == 0x40 ? p[0] & 0x3f : (p[0] & 0xe0) == 0 ? p[0] & 0x0f : 0;
    size_t length = p[1] & 0x7f;

    if (name < 8 || name > 14 || length > size - 2)
        return 0;
    if (p[1] & 0x80)
        return huffman_status(p + 2, length);
    return length == 3 ? digits_of_status(p + 2) : 0;
}

/* The header block within the payload of a HEADERS frame: after what pads it, and a priority. */
static inline int header_block_status(const unsigned char *p, size_t size, int flags)
{
    size_t before = (flags & FLAG_PADDED ? 1 : 0) + (flags & FLAG_PRIORITY ? 5 : 0);

    return size > before ? hpack_status(p + before, size - before) : 0;
}

static inline uint32_t streams_of_settings(const unsigned char *p, size_t size)
{
    uint32_t streams = 0;

    for (; size >= 6; p += 6, size -= 6)
        if (big_endian(p, 2) == SETTING_STREAMS)
            streams = big_endian(p + 2, 4);
    return streams;
}

/* Looks at the frame at the beginning of size bytes. */
static inline struct answer h2_answer(const unsigned char *p, size_t size)
{
    struct answer answer = {.kind = ANSWER_NOTHING};

    if (size < FRAME_HEADER_BYTES)
        return (struct answer){.kind = ANSWER_MORE};

    size_t payload = big_endian(p, 3);
    int type = p[3], flags = p[4];

    if (payload > FRAME_PAYLOAD_BYTES)
        return answer_error();
    if (size < FRAME_HEADER_BYTES + payload)
        return (struct answer){.kind = ANSWER_MORE};
    answer.used = FRAME_HEADER_BYTES + payload;
    answer.stream = big_endian(p + 5, 4) & 0x7fffffff;
    answer.payload = p + FRAME_HEADER_BYTES;

    switch (type) {
    case FRAME_DATA:
        answer.data_bytes = payload;
        answer.kind = flags & FLAG_END_STREAM ? ANSWER_DONE : ANSWER_NOTHING;
        break;
    case FRAME_HEADERS:
        answer.status = header_block_status(answer.payload, payload, flags);
        answer.kind = flags & FLAG_END_STREAM ? ANSWER_DONE : ANSWER_STATUS;
        break;
    case FRAME_RST_STREAM:
        answer.kind = ANSWER_RESET;
        break;
    case FRAME_SETTINGS:
        if (!(flags & FLAG_ACK)) {
            answer.kind = ANSWER_SETTINGS;
            answer.streams = streams_of_settings(answer.payload, payload);
        }
        break;
    case FRAME_PING:
        if (payload != 8)
            return answer_error();
        if (!(flags & FLAG_ACK))
            answer.kind = ANSWER_PING;
        break;
    case FRAME_GOAWAY:
    case FRAME_PUSH_PROMISE: /* which we have forbidden */
        return answer_error();
    default:
        break;
    }
    return answer;
}

#endif
