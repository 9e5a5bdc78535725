/* Frames through two pipes, see port.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/alloc.h"
#include "os/os.h"
#include "port/port.h"

/* A pipe's whole content in one read. */
#define READ_BYTES (64u * 1024)

/* Ours lie above what a library may expect to be free, or write to by mistake. */
#define PORT_LEAST_FD 100

struct port port = {.in = -1, .out = -1};

/* ---- opening -------------------------------------------------------------------------- */

int port_open(void)
{
    int in = fcntl(PORT_IN_FD, F_DUPFD_CLOEXEC, PORT_LEAST_FD);
    int out = fcntl(PORT_OUT_FD, F_DUPFD_CLOEXEC, PORT_LEAST_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in < 0 || out < 0 || null < 0)
        return -1;
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        dup2(null, STDERR_FILENO);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    os_close_all_but(in, out);
    port.in = in;
    port.out = out;
    return 0;
}

static void close_port(void)
{
    close(port.in);
    close(port.out);
}

int port_close_in_children(void)
{
    return pthread_atfork(NULL, NULL, close_port);
}

/* ---- writing -------------------------------------------------------------------------- */

void port_put_length(unsigned char *frame, size_t size)
{
    size_t length = size - PORT_LENGTH_BYTES;

    for (int i = 0; i < PORT_LENGTH_BYTES; i++)
        frame[i] = (unsigned char)(length >> (24 - 8 * i));
}

void port_write(unsigned char *frame, size_t size)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    /* What a pipe takes in one piece cannot be half written. */
    _Atomic int *torn = size > PIPE_BUF ? port.torn : NULL;

    port_put_length(frame, size);
    pthread_mutex_lock(&lock);
    if (torn != NULL)
        *torn = 1;
    while (size > 0) {
        ssize_t n = write(port.out, frame, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(0); /* nobody reads: the VM is gone, or has closed the port */
        frame += n;
        size -= (size_t)n;
    }
    if (torn != NULL)
        *torn = 0;
    pthread_mutex_unlock(&lock);
}

/* ---- reading -------------------------------------------------------------------------- */

/* What was read: of have bytes, those up to done were given out. */
static struct {
    unsigned char *bytes; /* the program's, for its whole life */
    size_t max, have, done;
} input;

/* Reads more behind what is left, into room for a frame of size bytes. Returns 0 at the end of the
 * stream. */
static int read_more(size_t size)
{
    ssize_t n;

    input.have -= input.done;
    if (input.have > 0)
        memmove(input.bytes, input.bytes + input.done, input.have);
    input.done = 0;
    /* One large frame is not kept for ever. */
    if (size > input.max || (input.have == 0 && input.max > READ_BYTES)) {
        input.max = size < READ_BYTES ? READ_BYTES : size;
        input.bytes = host_realloc(input.bytes, input.max);
    }
    do {
        n = read(port.in, input.bytes + input.have, input.max - input.have);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        input.have += (size_t)n;
    return n > 0;
}

const unsigned char *port_read(size_t *size)
{
    for (;;) {
        size_t left = input.have - input.done, needed = PORT_LENGTH_BYTES;

        if (left >= PORT_LENGTH_BYTES) {
            const unsigned char *frame = input.bytes + input.done;
            *size =
                (size_t)frame[0] << 24 | (size_t)frame[1] << 16 | (size_t)frame[2] << 8 | frame[3];
            needed += *size;
            if (left >= needed) {
                input.done += needed;
                return frame + PORT_LENGTH_BYTES;
            }
        }
        if (!read_more(needed))
            return NULL;
    }
}
