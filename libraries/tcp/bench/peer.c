/* peer.c - the other end of the bench, in C on epoll, so that what is measured is the VM's side.
 *
 *   peer echo | sink            listens, prints its port, serves until its standard input ends
 *   peer connect PORT TIMES     connects and waits for the end, one after the other; prints "done"
 *   peer hold PORT COUNT        connects, prints "held", holds them until its standard input ends
 *   peer ping PORT COUNT TRIPS BYTES   connects, prints "ready", waits for a line; then TRIPS round trips over all
 *                               connections at once, each with one message under way; prints "done" */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static char buffer[1 << 20];

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

/* As all ways send (ways.ex); who is accepted has it of who listens. */
static void set_congestion(int number)
{
    const char *said = getenv("BENCH_CONGESTION"), *name = said == NULL ? "reno" : said;

    if (setsockopt(number, IPPROTO_TCP, TCP_CONGESTION, name, (socklen_t)strlen(name)) != 0)
        fail("congestion");
}

static struct sockaddr_in loopback(int port)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return to;
}

static void send_all(int number, const char *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = send(number, bytes, size, MSG_NOSIGNAL);

        if (n >= 0) {
            bytes += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN) {
            struct pollfd until = {.fd = number, .events = POLLOUT};

            (void)poll(&until, 1, -1);
        } else if (errno != EINTR) {
            return;
        }
    }
}

static void watch(int poller, int number)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = number};

    if (epoll_ctl(poller, EPOLL_CTL_ADD, number, &event) != 0)
        fail("epoll_ctl");
}

static void serve(int echo)
{
    struct sockaddr_in at = loopback(0);
    socklen_t size = sizeof at;
    const int listening = socket(AF_INET, SOCK_STREAM, 0), poller = epoll_create1(0), one = 1;
    struct epoll_event events[64];

    set_congestion(listening);
    if (bind(listening, (struct sockaddr *)&at, size) != 0 || listen(listening, 1024) != 0 ||
        getsockname(listening, (struct sockaddr *)&at, &size) != 0)
        fail("listen");
    printf("%d\n", ntohs(at.sin_port));
    fflush(stdout);
    watch(poller, listening);
    watch(poller, 0);
    for (;;) {
        const int ready = epoll_wait(poller, events, 64, -1);

        for (int i = 0; i < ready; i++) {
            const int number = events[i].data.fd;
            ssize_t n;

            if (number == 0)
                exit(0);
            if (number == listening) {
                const int accepted = accept4(listening, NULL, NULL, SOCK_NONBLOCK);

                (void)setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
                watch(poller, accepted);
                continue;
            }
            n = recv(number, buffer, sizeof buffer, 0);
            if (n == 0 || (n < 0 && errno != EAGAIN))
                (void)close(number);
            else if (echo && n > 0)
                send_all(number, buffer, (size_t)n);
        }
    }
}

static int connected(int port)
{
    const struct sockaddr_in to = loopback(port);
    const int number = socket(AF_INET, SOCK_STREAM, 0), one = 1;

    set_congestion(number);
    if (number < 0 || connect(number, (const struct sockaddr *)&to, sizeof to) != 0)
        fail("connect");
    (void)setsockopt(number, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return number;
}

static void say(const char *what)
{
    puts(what);
    fflush(stdout);
}

static void ping(int port, int count, long trips, size_t bytes)
{
    size_t *got = calloc((size_t)count + 1024, sizeof *got);
    const int poller = epoll_create1(0);
    struct epoll_event events[64];
    long begun = 0, done = 0;
    int *numbers = calloc((size_t)count, sizeof *numbers);
    char line[16];

    for (int i = 0; i < count; i++) {
        numbers[i] = connected(port);
        watch(poller, numbers[i]);
    }
    say("ready");
    if (fgets(line, sizeof line, stdin) == NULL)
        exit(1);
    for (int i = 0; i < count && begun < trips; i++, begun++)
        send_all(numbers[i], buffer, bytes);
    while (done < trips) {
        const int ready = epoll_wait(poller, events, 64, -1);

        for (int i = 0; i < ready; i++) {
            const int number = events[i].data.fd;
            const ssize_t n = recv(number, buffer, bytes, 0);

            if (n <= 0)
                fail("recv");
            got[number] += (size_t)n;
            if (got[number] < bytes)
                continue;
            got[number] = 0;
            done++;
            if (begun < trips) {
                begun++;
                send_all(number, buffer, bytes);
            }
        }
    }
    say("done");
}

int main(int argc, char **argv)
{
    const int port = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 0;

    if (argc == 2 && (strcmp(argv[1], "echo") == 0 || strcmp(argv[1], "sink") == 0))
        serve(argv[1][0] == 'e');
    if (argc == 4 && strcmp(argv[1], "connect") == 0) {
        for (int i = 0; i < count; i++) {
            const int number = connected(port);

            while (recv(number, buffer, sizeof buffer, 0) > 0) {
            }
            (void)close(number);
        }
        say("done");
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "hold") == 0) {
        for (int i = 0; i < count; i++)
            (void)connected(port);
        say("held");
        while (read(0, buffer, 1) > 0) {
        }
        return 0;
    }
    if (argc == 6 && strcmp(argv[1], "ping") == 0) {
        ping(port, count, atol(argv[4]), (size_t)atol(argv[5]));
        while (read(0, buffer, 1) > 0) {
        }
        return 0;
    }
    fprintf(stderr, "peer: expected echo | sink | connect PORT TIMES | hold PORT COUNT | "
                    "ping PORT COUNT TRIPS BYTES\n");
    return 1;
}
