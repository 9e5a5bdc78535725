/* floor.h: the kernel's part of an answer. It reads what clients ask, finds where each request ends, and writes what a static
 * route says, by HTTP/1.1 or by HTTP/2 with prior knowledge: one thread, nothing but epoll_wait, accept4, read and writev. It
 * is no server: it believes its clients, whose requests have no bodies, and answers all of them alike.
 *
 * With `says_megabytes` each answer is one. With `ask` it asks somebody before it answers, and waits awake for what that says: what a server does at least whose
 * handlers are the VM's. floor.c asks a thread, floor_vm.c a process. Where `ask` returns 0, whom it asked sends what is said. */
#pragma once
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

enum { EVENTS = 64, INPUT = 16 * 1024, FRAME_HEAD = 9, PREFACE = 24 };
/* Most is said to a reading that is nothing but ends of requests of HTTP/1.1, four bytes each. */
enum { OUTPUT = INPUT / 4 * 160 };

enum frame { DATA = 0, HEADERS = 1, SETTINGS = 4, PING = 6 };
enum flag { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };

struct client {
    int fd;
    int is_h2;
    int has_table; /* of headers, after the first answer */
    int has_left;
    size_t length; /* of what was read and not yet taken */
    unsigned char input[INPUT];
};

static unsigned char output[OUTPUT];
static size_t said;

static const char h1_answer[] =
    "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n"
    "date: Thu, 26 Nov 2026 00:00:00 GMT\r\n\r\nHello world";

/* :status 200; then content-type, content-length and date, which go into the table of the connection,
 * and after that are said by their places in it (RFC 7541, 6.1 and 6.2.1). */
static const char h2_first[] = "\x88\x5f\x0atext/plain\x5c\x02"
                               "11\x61\x1dThu, 26 Nov 2026 00:00:00 GMT";
static const char h2_later[] = "\x88\xc0\xbf\xbe";

/* A body of this size is sent from where it is, in place of "Hello world". Over HTTP/2 in frames of 16 KB; the client's window
 * is believed to be wide. */
enum { MEGABYTE = 1000 * 1000, FRAME = 16 * 1024, FRAMES = (MEGABYTE + FRAME - 1) / FRAME };

static int says_megabytes;
static char megabyte[MEGABYTE];

static const char h1_megabyte[] = "HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n"
                                  "date: Thu, 26 Nov 2026 00:00:00 GMT\r\n\r\n";

/* All of it, or the client has left. */
static void send_pieces(struct client *client, struct iovec *pieces, int count)
{
    while (count > 0) {
        ssize_t n = writev(client->fd, pieces, count);

        if (n < 0 && errno == EAGAIN) {
            struct pollfd full = {.fd = client->fd, .events = POLLOUT};

            (void)poll(&full, 1, -1);
        } else if (n < 0) {
            client->has_left = 1;
            return;
        }
        for (; count > 0 && n >= (ssize_t)pieces->iov_len; pieces++, count--)
            n -= (ssize_t)pieces->iov_len;
        if (count > 0 && n > 0) {
            pieces->iov_base = (char *)pieces->iov_base + n;
            pieces->iov_len -= (size_t)n;
        }
    }
}

static void send_said(struct client *client)
{
    struct iovec all = {output, said};

    said = 0; /* before the client can say more, where another thread reads that */
    if (all.iov_len > 0)
        send_pieces(client, &all, 1);
}

static void say(const void *bytes, size_t length)
{
    memcpy(output + said, bytes, length);
    said += length;
}

static void frame_head(unsigned char head[FRAME_HEAD], enum frame type, int flags,
                       const unsigned char stream[4], size_t length)
{
    head[0] = (unsigned char)(length >> 16);
    head[1] = (unsigned char)(length >> 8);
    head[2] = (unsigned char)length;
    head[3] = (unsigned char)type;
    head[4] = (unsigned char)flags;
    memcpy(head + 5, stream, 4);
}

static void say_frame(enum frame type, int flags, const unsigned char stream[4],
                      const void *payload, size_t length)
{
    unsigned char head[FRAME_HEAD];

    frame_head(head, type, flags, stream, length);
    say(head, sizeof head);
    say(payload, length);
}

static void send_megabyte_h1(struct client *client)
{
    struct iovec pieces[] = {{output, said}, {megabyte, MEGABYTE}};

    send_pieces(client, pieces, 2);
    said = 0;
}

static void send_megabyte_h2(struct client *client, const unsigned char stream[4])
{
    unsigned char heads[FRAMES][FRAME_HEAD];
    struct iovec pieces[1 + 2 * FRAMES] = {{output, said}};
    size_t sent = 0;

    for (int i = 0; i < FRAMES; i++) {
        const size_t length = MEGABYTE - sent < FRAME ? MEGABYTE - sent : FRAME;

        frame_head(heads[i], DATA, i + 1 == FRAMES ? END_STREAM : 0, stream, length);
        pieces[1 + 2 * i] = (struct iovec){heads[i], FRAME_HEAD};
        pieces[2 + 2 * i] = (struct iovec){megabyte + sent, length};
        sent += length;
    }
    send_pieces(client, pieces, 1 + 2 * FRAMES);
    said = 0;
}

static size_t take_h1(struct client *client)
{
    size_t taken = 0;
    const unsigned char *end;

    while ((end = memmem(client->input + taken, client->length - taken, "\r\n\r\n", 4)) != NULL) {
        if (says_megabytes) {
            say(h1_megabyte, sizeof h1_megabyte - 1);
            send_megabyte_h1(client);
        } else {
            say(h1_answer, sizeof h1_answer - 1);
        }
        taken = (size_t)(end - client->input) + 4;
    }
    return taken;
}

static void answer_frame(struct client *client, const unsigned char *frame, size_t length)
{
    const int type = frame[3], flags = frame[4];
    const unsigned char *stream = frame + 5, *payload = frame + FRAME_HEAD;

    if (type == HEADERS && (flags & END_STREAM) && says_megabytes) {
        say_frame(HEADERS, END_HEADERS, stream, h2_later, 1);
        send_megabyte_h2(client, stream);
    } else if (type == HEADERS && (flags & END_STREAM)) {
        if (client->has_table)
            say_frame(HEADERS, END_HEADERS, stream, h2_later, sizeof h2_later - 1);
        else
            say_frame(HEADERS, END_HEADERS, stream, h2_first, sizeof h2_first - 1);
        client->has_table = 1;
        say_frame(DATA, END_STREAM, stream, "Hello world", 11);
    } else if (type == SETTINGS && !(flags & ACK)) {
        say_frame(SETTINGS, ACK, stream, "", 0);
    } else if (type == PING && !(flags & ACK)) {
        say_frame(PING, ACK, stream, payload, length);
    }
}

static size_t take_h2(struct client *client)
{
    size_t taken = 0;

    while (client->length - taken >= FRAME_HEAD) {
        const unsigned char *frame = client->input + taken;
        const size_t length = (size_t)frame[0] << 16 | (size_t)frame[1] << 8 | frame[2];

        if (client->length - taken < FRAME_HEAD + length)
            break;
        answer_frame(client, frame, length);
        taken += FRAME_HEAD + length;
    }
    return taken;
}

static size_t take(struct client *client)
{
    static const unsigned char nobody[4] = {0};

    if (client->is_h2)
        return take_h2(client);
    if (client->length < PREFACE ||
        memcmp(client->input, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PREFACE) != 0)
        return take_h1(client);
    client->is_h2 = 1;
    say_frame(SETTINGS, 0, nobody, "", 0);
    return PREFACE;
}

/* 0 if the client has left, or asks for more at once than there is room for. */
static int serve(struct client *client, int (*ask)(struct client *))
{
    const ssize_t n = read(client->fd, client->input + client->length, INPUT - client->length);
    size_t taken;

    if (n <= 0)
        return n < 0 && errno == EAGAIN;
    client->length += (size_t)n;
    while ((taken = take(client)) > 0) {
        client->length -= taken;
        memmove(client->input, client->input + taken, client->length);
    }
    if (ask == NULL || said == 0 || ask(client))
        send_said(client);
    return !client->has_left && client->length < INPUT;
}

static int accept_one(int epoll, int listener)
{
    const int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    struct client *client; /* the connection's, until it ends */
    struct epoll_event event = {.events = EPOLLIN};

    if (fd < 0)
        return 0;
    client = calloc(1, sizeof *client);
    if (client == NULL)
        return -1;
    client->fd = fd;
    event.data.ptr = client;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Its port is said by port_of. -1 if there is none to be had. */
static int listen_at(unsigned short port)
{
    const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1;
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 1024) != 0)
        return -1;
    return listener;
}

static unsigned short port_of(int listener)
{
    struct sockaddr_in address = {.sin_port = 0};
    socklen_t size = sizeof address;

    (void)getsockname(listener, (struct sockaddr *)&address, &size);
    return ntohs(address.sin_port);
}

/* Answers until there is something to read from `until`, or its end; 0 then, -1 if the kernel refuses something. */
static int answer_all(int listener, int until, int (*ask)(struct client *))
{
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct client ending = {.fd = until}, listening = {.fd = listener};
    struct epoll_event events[EVENTS] = {{.events = EPOLLIN, .data.ptr = &listening}};

    if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &events[0]) != 0)
        return -1;
    events[0].data.ptr = &ending;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, until, &events[0]) != 0)
        return -1;
    for (;;) {
        const int n = epoll_wait(epoll, events, EVENTS, -1);

        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;

            if (client == &ending) {
                return 0;
            } else if (client == &listening) {
                if (accept_one(epoll, listener) != 0)
                    return -1;
            } else if (!serve(client, ask)) {
                (void)close(client->fd);
                free(client);
            }
        }
    }
}
