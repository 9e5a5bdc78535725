/* The host's standard error, see relay.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/os.h"
#include "wire/relay.h"

/* In relay_finish: how much is read at most, and how long a reader of ours may take. */
#define FINISH_BYTES_MAX (1u << 20)
#define FINISH_MS 100
#define FINISH_WRITES_MAX 100

/* Standard error is shared with the VM: it cannot be made non-blocking without the VM's being so.
 * A pipe or terminal can be opened once more, with a mode of its own. */
void relay_init(struct relay *relay, int from)
{
    struct stat file;
    int own;

    *relay = (struct relay){.from = from, .to = STDERR_FILENO, .kind = RELAY_FILE};
    fcntl(from, F_SETFL, fcntl(from, F_GETFL) | O_NONBLOCK);
    if (fstat(STDERR_FILENO, &file) < 0) {
        relay->to = -1;
    } else if (S_ISSOCK(file.st_mode)) {
        relay->kind = RELAY_SOCKET;
    } else if (!S_ISREG(file.st_mode)) {
        own = os_reopen(STDERR_FILENO);
        relay->kind = own < 0 ? RELAY_POLLED : RELAY_NON_BLOCKING;
        if (own >= 0)
            relay->to = own;
    }
}

void relay_poll(const struct relay *relay, struct pollfd fds[2])
{
    fds[0] = (struct pollfd){.fd = relay->from, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = relay->pending_len > 0 ? relay->to : -1, .events = POLLOUT};
}

static void keep(struct relay *relay, const char *bytes, size_t size)
{
    if (size > sizeof relay->tail) {
        bytes += size - sizeof relay->tail;
        size = sizeof relay->tail;
    }
    size_t old = relay->tail_len, room = sizeof relay->tail - size;
    if (old > room) {
        memmove(relay->tail, relay->tail + old - room, room);
        old = room;
    }
    memcpy(relay->tail + old, bytes, size);
    relay->tail_len = old + size;
}

/* Returns 0 when there is nothing to read now. */
static size_t read_some(struct relay *relay)
{
    char bytes[16 * 1024];

    if (relay->from < 0)
        return 0;
    ssize_t n = read(relay->from, bytes, sizeof bytes);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        close(relay->from);
        relay->from = -1;
    }
    if (n <= 0)
        return 0;
    keep(relay, bytes, (size_t)n);
    size_t room = sizeof relay->pending - relay->pending_len;
    size_t taken = (size_t)n < room ? (size_t)n : room;
    memcpy(relay->pending + relay->pending_len, bytes, taken);
    relay->pending_len += taken;
    return (size_t)n;
}

/* write() that does not wait: -1 with EAGAIN. The program ignores SIGPIPE. */
static ssize_t write_now(const struct relay *relay, const char *bytes, size_t size)
{
    struct pollfd out = {.fd = relay->to, .events = POLLOUT};

    if (relay->kind == RELAY_SOCKET)
        return send(relay->to, bytes, size, MSG_DONTWAIT);
    if (relay->kind == RELAY_POLLED) {
        /* A pipe that can be written to takes so much without waiting, unless another writer is
         * faster. */
        if (poll(&out, 1, 0) <= 0) {
            errno = EAGAIN;
            return -1;
        }
        size = size < PIPE_BUF ? size : PIPE_BUF;
    }
    return write(relay->to, bytes, size);
}

static void write_some(struct relay *relay)
{
    size_t done = 0;

    while (relay->to >= 0 && done < relay->pending_len) {
        ssize_t n = write_now(relay, relay->pending + done, relay->pending_len - done);
        if (n > 0)
            done += (size_t)n;
        else if (errno == EAGAIN)
            break;
        else if (errno != EINTR)
            relay->to = -1; /* nobody reads it */
    }
    if (relay->to < 0)
        done = relay->pending_len;
    relay->pending_len -= done;
    memmove(relay->pending, relay->pending + done, relay->pending_len);
}

void relay_work(struct relay *relay)
{
    (void)read_some(relay);
    write_some(relay);
}

void relay_finish(struct relay *relay)
{
    size_t total = 0, n;

    while (total < FINISH_BYTES_MAX && (n = read_some(relay)) > 0) {
        total += n;
        write_some(relay);
    }
    for (int i = 0; i < FINISH_WRITES_MAX && relay->pending_len > 0; i++) {
        struct pollfd out = {.fd = relay->to, .events = POLLOUT};
        if (poll(&out, 1, FINISH_MS) <= 0)
            return;
        write_some(relay);
    }
}
