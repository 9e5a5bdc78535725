/* tame_echo: gives every frame back unchanged (frames: see frame.h).
 *
 *     tame_echo stdio        frames on standard input and output
 *     tame_echo unix PATH    connects to the AF_UNIX socket PATH
 *     tame_echo tcp PORT     connects to 127.0.0.1:PORT
 *
 * An empty frame, or the end of the stream, ends it with status 0. With a socket, a byte on
 * standard input or its end does so too, at once (watch.h). Anything wrong is one line on standard
 * error and status 1; a wrong command line is status 2.
 *
 * Memory: one buffer of STREAM_BUFFER_BYTES, whatever the frames' length.
 */
#define _GNU_SOURCE /* F_SETPIPE_SZ */

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "stream.h"
#include "watch.h"

/* What Linux lets every user have (/proc/sys/fs/pipe-max-size). A frame of 64 KiB with its header
 * is just too long for a pipe as it is made, and needs two more turns on both sides: 97 us there
 * and back in place of 60, measured with OTP 25 on two cores of a virtual machine. */
#define PIPE_BYTES (1 << 20)

static unsigned char buffer[STREAM_BUFFER_BYTES];

static int usage(const char *what, const char *value)
{
    fprintf(stderr, "tame_echo: %s: %s; expected: stdio | unix PATH | tcp PORT\n", what, value);
    return 2;
}

static int failed(const char *what, const char *value)
{
    fprintf(stderr, "tame_echo: cannot %s %s: %s\n", what, value, strerror(errno));
    return 1;
}

static int echo(int in, int out)
{
    struct frame_scan scan = {0};

    switch (stream_echo(in, out, &scan, buffer, sizeof buffer)) {
    case STREAM_EOF:
    case STREAM_GOODBYE:
    case STREAM_READER_GONE:
        return 0;
    case STREAM_TOO_LONG:
        fprintf(stderr, "tame_echo: refused a frame of %u bytes; the limit is %u\n",
                (unsigned)scan.refused_bytes, FRAME_MAX_BYTES);
        return 1;
    case STREAM_ERROR:
        break;
    }
    return failed("echo", "frames");
}

/* Connects, then echoes until one of the two sides ends. */
static int echo_socket(int fd, const struct sockaddr *address, socklen_t size, const char *name)
{
    int error = watch_stdin();

    if (error != 0) {
        errno = error;
        return failed("watch", "standard input");
    }
    if (fd < 0)
        return failed("make a socket for", name);
    if (connect(fd, address, size) < 0)
        return failed("connect to", name);
    return echo(fd, fd);
}

static int echo_stdio(void)
{
#ifdef F_SETPIPE_SZ
    /* Either may fail, where there is less to have or it is no pipe: then they stay as they are. */
    (void)fcntl(STDIN_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
    (void)fcntl(STDOUT_FILENO, F_SETPIPE_SZ, PIPE_BYTES);
#endif
    return echo(STDIN_FILENO, STDOUT_FILENO);
}

static int echo_unix(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (strlen(path) >= sizeof address.sun_path)
        return usage("path too long for an AF_UNIX socket", path);
    strcpy(address.sun_path, path);
    return echo_socket(socket(AF_UNIX, SOCK_STREAM, 0), (const struct sockaddr *)&address,
                       sizeof address, path);
}

static int echo_tcp(const char *text)
{
    char *end;
    long port = strtol(text, &end, 10);
    int fd, one = 1;

    if (end == text || *end != '\0' || port < 1 || port > 65535)
        return usage("not a port number from 1 to 65535", text);

    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) < 0)
        return failed("set TCP_NODELAY for port", text);
    return echo_socket(fd, (const struct sockaddr *)&address, sizeof address, text);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 1 ? argv[1] : "(nothing)";

    signal(SIGPIPE, SIG_IGN); /* a reader that is gone is a return value of write() */

    if (strcmp(mode, "stdio") == 0 && argc == 2)
        return echo_stdio();
    if (strcmp(mode, "unix") == 0 && argc == 3)
        return echo_unix(argv[2]);
    if (strcmp(mode, "tcp") == 0 && argc == 3)
        return echo_tcp(argv[2]);
    return usage("bad command line", mode);
}
