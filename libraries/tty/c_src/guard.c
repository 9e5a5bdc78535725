/* tame_tty_guard - turns a terminal back when the VM ends without doing so itself.
 *
 *     tame_tty_guard PATH
 *
 * PATH is the terminal. Standard input is a pipe from the VM with packets of two bytes of length:
 * one with what to write when the terminal is turned back (answered by "armed"), an empty one when
 * the VM has done so itself. The end of the pipe is the end of the VM, or of the session's process,
 * and the guard ends with it always. Standard output has one packet at the start: "ready", or why
 * not.
 *
 * The guard holds a lock on the terminal as long as it lives, so that the next one begins when this
 * one has ended, and two VMs do not share a terminal. */
#include "mode.h"

#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

/* How long the guard before this one may take to end. */
#define LOCK_MS 3000
/* The terminal may be stopped, or its driver hang: then SIGALRM ends the guard. */
#define RESTORE_S 2

static void say(const char *text)
{
    unsigned char packet[2 + 200];
    const size_t len = strlen(text);

    packet[0] = (unsigned char)(len >> 8);
    packet[1] = (unsigned char)(len & 0xff);
    memcpy(packet + 2, text, len);
    /* A VM that does not read has ended: the next read says so. */
    if (write(STDOUT_FILENO, packet, len + 2) < 0)
        return;
}

static int refuse(const char *what, int error)
{
    char text[200];

    snprintf(text, sizeof text, "%s: %s", what, strerror(error));
    say(text);
    return 1;
}

/* The terminal, opened anew; or standard error, which is the VM's, where another user owns the
 * terminal (su). -1 with errno. */
static int open_terminal(const char *path)
{
    struct stat wanted, found;
    const int fd = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    const int error = errno;

    if (fd >= 0)
        return fd;
    if (stat(path, &wanted) == 0 && fstat(STDERR_FILENO, &found) == 0 &&
        wanted.st_rdev == found.st_rdev && isatty(STDERR_FILENO))
        return STDERR_FILENO;
    errno = error;
    return -1;
}

static int lock(int fd)
{
    const struct timespec pause = {0, 10 * 1000 * 1000};

    for (int waited_ms = 0; flock(fd, LOCK_EX | LOCK_NB) != 0; waited_ms += 10) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return -1;
        if (waited_ms >= LOCK_MS)
            return -1;
        (void)nanosleep(&pause, NULL);
    }
    return 0;
}

/* Exactly `size` bytes; 0 at the end of the pipe. */
static int read_all(void *to, size_t size)
{
    char *at = to;

    while (size > 0) {
        const ssize_t len = read(STDIN_FILENO, at, size);

        if (len < 0 && errno == EINTR)
            continue;
        if (len <= 0)
            return 0;
        at += len;
        size -= (size_t)len;
    }
    return 1;
}

static void ignore_signals(void)
{
    const int ignored[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGTSTP,
                           SIGTTIN, SIGTTOU, SIGPIPE, SIGUSR1, SIGUSR2};

    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
        (void)signal(ignored[i], SIG_IGN);
}

int main(int argc, char **argv)
{
    char leave[TTY_LEAVE_SIZE];
    size_t leave_len = 0;
    struct termios saved;
    unsigned char head[2];
    int fd;

    if (argc != 2) {
        fprintf(stderr, "tame_tty_guard: expected the path of a terminal\n");
        return 1;
    }
    ignore_signals();
    /* Already so, where the VM's own helper started it. */
    (void)setsid();
    fd = open_terminal(argv[1]);
    if (fd < 0)
        return refuse("the guard does not open the terminal", errno);
    if (lock(fd) != 0)
        return refuse("another VM has the terminal, or its guard hangs", errno);
    if (tcgetattr(fd, &saved) != 0)
        return refuse("the guard does not read the terminal's settings", errno);
    say("ready");
    while (read_all(head, sizeof head)) {
        const size_t len = (size_t)head[0] << 8 | head[1];

        if (len == 0)
            return 0;
        if (len > sizeof leave || !read_all(leave, len))
            break;
        leave_len = len;
        say("armed");
    }
    (void)signal(SIGALRM, SIG_DFL);
    (void)alarm(RESTORE_S);
    tty_restore(fd, &saved, leave, leave_len, TTY_PATIENT);
    return 0;
}
