/* tame_load: GET requests to a server on the loopback interface at a fixed rate, as users come.
 *
 *     tame_load PORT h1|h2 PATH RATE COUNT CONNECTIONS STREAMS START_NS WAIT_MS
 *
 * Request i is planned for START_NS + i / RATE of the monotonic clock (0: now), whether or not the
 * ones before it are answered. One for which no stream is free waits, and is late by that: its time
 * is counted from the planned start by who reads the result. So a server that stands still is seen
 * in every request that was planned meanwhile. At most CONNECTIONS * STREAMS are under way; what is
 * not answered WAIT_MS after the last planned start is given up.
 *
 * Standard output gets a line "tame_load COUNT START_NS CPU_NS", and then each request as struct
 * request (plan.h). It is written at the end: nothing but requests is done meanwhile. A server that
 * cannot be connected to at the start is one line on standard error and status 1, a wrong command
 * line is status 2. It ends at once when its standard input does (watch.h).
 *
 * Memory: 24 bytes a request, and about 100 KB a connection.
 */
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <time.h>

#include "../watch.h"
#include "connection.h"

#define MAX_COUNT 2000000
#define MAX_RATE 1000000
/* select() knows descriptors below FD_SETSIZE, which is 1024 everywhere. */
#define MAX_CONNECTIONS 1000
/* How long the first connections may take. */
#define CONNECT_NS INT64_C(5000000000)

struct run {
    struct target to;
    uint32_t rate, count, connections;
    int64_t start_ns, wait_ns; /* by the monotonic clock; a time */
    struct request *requests;  /* owned by main, as are these */
    struct connection *all;
    uint32_t next, cursor;
};

static int64_t clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t now_ns(const struct run *run)
{
    return clock_ns() - run->start_ns;
}

/* ---- one turn ------------------------------------------------------------------------------- */

/* A connection with a free stream, by turns; those that are gone are opened again on the way. */
static struct connection *some_connection(struct run *run, int64_t now)
{
    for (uint32_t i = 0; i < run->connections; i++) {
        struct connection *c = &run->all[(run->cursor + i) % run->connections];

        if (c->fd < 0 && now >= c->again_ns && connection_open(c, &run->to) < 0)
            c->again_ns = now + AGAIN_NS;
        if (can_send(c)) {
            run->cursor = (run->cursor + i + 1) % run->connections;
            return c;
        }
    }
    return NULL;
}

/* Sends what is due. Whether a stream is free for the next one. */
static int send_due(struct run *run, int at_once)
{
    struct connection *c = NULL;

    while (run->next < run->count) {
        int64_t now = now_ns(run);

        c = some_connection(run, now);
        if (c == NULL || planned_ns(run->next, run->rate) > now)
            break;
        run->requests[run->next] =
            (struct request){.sent_ns = now, .done_ns = -1, .at_once = at_once};
        if (connection_send(c, &run->to, run->next++) < 0 || connection_flush(c) < 0)
            connection_close(c, run->requests, now);
    }
    return c != NULL;
}

static int under_way(const struct run *run)
{
    uint32_t busy = 0;

    for (uint32_t i = 0; i < run->connections; i++)
        busy += run->all[i].busy;
    return busy > 0;
}

/* There is no connection, and none is being made: the server refuses them, or is gone. */
static int all_lost(const struct run *run)
{
    for (uint32_t i = 0; i < run->connections; i++)
        if (run->all[i].fd >= 0)
            return 0;
    return 1;
}

/* Waits for a socket, until that time at most, and deals with those that are ready. */
static void wait_until(struct run *run, int64_t until)
{
    fd_set in, out;
    int highest = -1;
    int64_t left = until - now_ns(run);

    if (left < 0)
        left = 0;
    FD_ZERO(&in);
    FD_ZERO(&out);
    for (uint32_t i = 0; i < run->connections; i++) {
        struct connection *c = &run->all[i];

        if (c->fd < 0)
            continue;
        FD_SET(c->fd, &in);
        if (!c->ready || c->out_size > 0)
            FD_SET(c->fd, &out);
        if (c->fd > highest)
            highest = c->fd;
    }
    struct timespec limit = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};

    if (pselect(highest + 1, &in, &out, NULL, &limit, NULL) <= 0)
        return;

    for (uint32_t i = 0; i < run->connections; i++) {
        struct connection *c = &run->all[i];
        int lost = 0;

        if (c->fd < 0)
            continue;
        if (!c->ready && FD_ISSET(c->fd, &out))
            lost = connection_connected(c) < 0;
        if (!lost && c->ready && FD_ISSET(c->fd, &in))
            lost = connection_read(c, &run->to, run->requests, now_ns(run)) < 0;
        if (!lost && c->ready && c->out_size > 0)
            lost = connection_flush(c) < 0;
        if (lost)
            connection_close(c, run->requests, now_ns(run));
    }
}

/* ---- the run -------------------------------------------------------------------------------- */

static int connect_all(struct run *run)
{
    int64_t until = now_ns(run) + CONNECT_NS;

    for (uint32_t i = 0; i < run->connections; i++)
        if (connection_open(&run->all[i], &run->to) < 0)
            return -1;
    for (;;) {
        uint32_t ready = 0;

        for (uint32_t i = 0; i < run->connections; i++) {
            if (run->all[i].fd < 0)
                return -1;
            ready += run->all[i].ready != 0;
        }
        if (ready == run->connections)
            return 0;
        if (now_ns(run) > until)
            return -1;
        wait_until(run, until);
    }
}

static void all_requests(struct run *run)
{
    int64_t last = planned_ns(run->count - 1, run->rate), end = last + run->wait_ns;
    int at_once = 1;

    while (now_ns(run) < end && (run->next < run->count || under_way(run))) {
        at_once = send_due(run, at_once);
        int64_t due = run->next < run->count ? planned_ns(run->next, run->rate) : end;
        /* Without a free stream an answer comes first, or a connection that may be tried again. */
        wait_until(run, at_once ? due : now_ns(run) + AGAIN_NS);
        if (now_ns(run) > last && all_lost(run))
            break;
    }
}

static int64_t cpu_ns(void)
{
    struct rusage used;

    getrusage(RUSAGE_SELF, &used);
    return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000 +
           ((int64_t)used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000;
}

static int write_result(const struct run *run, int64_t cpu)
{
    printf("tame_load %u %lld %lld\n", (unsigned)run->count, (long long)run->start_ns,
           (long long)cpu);
    fwrite(run->requests, sizeof *run->requests, run->count, stdout);
    return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
}

static int64_t number(const char *text, const char *name, int64_t least, int64_t most)
{
    char *end;

    errno = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != 0 || value < least || value > most) {
        fprintf(stderr, "tame_load: %s %s: expected a whole number from %lld to %lld\n", name, text,
                (long long)least, (long long)most);
        exit(2);
    }
    return value;
}

static void refuse(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "tame_load: %s %s: expected %s\n", name, value, expected);
    exit(2);
}

int main(int argc, char **argv)
{
    struct run run = {0};

    if (argc != 10)
        refuse("arguments", argc > 1 ? argv[1] : "none",
               "PORT h1|h2 PATH RATE COUNT CONNECTIONS STREAMS START_NS WAIT_MS");
    run.to.port = (uint16_t)number(argv[1], "port", 1, 65535);
    run.to.h2 = strcmp(argv[2], "h2") == 0;
    if (!run.to.h2 && strcmp(argv[2], "h1") != 0)
        refuse("protocol", argv[2], "h1 or h2");
    run.to.path = argv[3];
    /* HPACK writes a length up to 126 in one byte. */
    if (argv[3][0] != '/' || strlen(argv[3]) > 126 || strpbrk(argv[3], " \r\n") != NULL)
        refuse("path", argv[3], "one that begins with / and has no space, of at most 126 bytes");
    run.rate = (uint32_t)number(argv[4], "rate", 1, MAX_RATE);
    run.count = (uint32_t)number(argv[5], "count", 1, MAX_COUNT);
    run.connections = (uint32_t)number(argv[6], "connections", 1, MAX_CONNECTIONS);
    run.to.streams = (uint32_t)number(argv[7], "streams", 1, run.to.h2 ? MAX_STREAMS : 1);
    run.start_ns = number(argv[8], "start", 0, INT64_MAX);
    run.wait_ns = number(argv[9], "wait", 0, 600000) * 1000000;

    signal(SIGPIPE, SIG_IGN);
    if (watch_stdin() != 0) {
        fprintf(stderr, "tame_load: no thread to watch standard input with\n");
        return 1;
    }
    run.requests = malloc(run.count * sizeof *run.requests);
    run.all = calloc(run.connections, sizeof *run.all);
    if (run.requests == NULL || run.all == NULL) {
        fprintf(stderr, "tame_load: no memory for %u requests\n", (unsigned)run.count);
        return 1;
    }
    for (uint32_t i = 0; i < run.count; i++)
        run.requests[i] = (struct request){.sent_ns = -1, .done_ns = -1};
    for (uint32_t i = 0; i < run.connections; i++)
        run.all[i].fd = -1;

    if (connect_all(&run) < 0) {
        fprintf(stderr, "tame_load: cannot connect %u times to 127.0.0.1:%u\n",
                (unsigned)run.connections, (unsigned)run.to.port);
        return 1;
    }
    if (run.start_ns == 0)
        run.start_ns = clock_ns();
    int64_t before = cpu_ns();

    all_requests(&run);
    return write_result(&run, cpu_ns() - before);
}
