/* The guard as a process on a pseudo-terminal, and the rule by which a terminal is turned back. */
#include "check.h"
#include "mode.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <pty.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>

static const char *guard_path;

/* A terminal, and a guard on it when `pid` is not 0. */
struct scene {
    int main_fd, fd;
    char path[64];
    struct termios before;
    pid_t pid;
    int to, from;
};

static void check(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "guard_test: %s: %s\n", what, strerror(errno));
        exit(1);
    }
}

static struct scene scene_open(void)
{
    struct scene s = {0};

    check(openpty(&s.main_fd, &s.fd, s.path, NULL, NULL) == 0, "openpty");
    check(tcgetattr(s.fd, &s.before) == 0, "tcgetattr");
    return s;
}

static void start(struct scene *s, const char *path)
{
    int in[2], out[2];

    check(pipe(in) == 0 && pipe(out) == 0, "pipe");
    s->pid = fork();
    check(s->pid >= 0, "fork");
    if (s->pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        close(in[1]);
        close(out[0]);
        execl(guard_path, guard_path, path, (char *)NULL);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    s->to = in[1];
    s->from = out[0];
}

/* The next packet begins with `expected`; in 10 s at most. */
static int says(const struct scene *s, const char *expected)
{
    unsigned char head[2];
    char text[300] = "";
    struct pollfd ready = {s->from, POLLIN, 0};

    if (poll(&ready, 1, 10000) != 1 || read(s->from, head, 2) != 2)
        return 0;
    if (read(s->from, text, (size_t)head[0] << 8 | head[1]) < 0)
        return 0;
    return strncmp(text, expected, strlen(expected)) == 0;
}

static void packet(const struct scene *s, const char *text)
{
    const unsigned char head[2] = {0, (unsigned char)strlen(text)};

    check(write(s->to, head, 2) == 2, "write");
    check(write(s->to, text, strlen(text)) == (ssize_t)strlen(text), "write");
}

static int status(const struct scene *s)
{
    int status;

    check(waitpid(s->pid, &status, 0) == s->pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void make_raw(const struct scene *s)
{
    const struct termios raw = tty_raw_of(&s->before);

    check(tty_set(s->fd, &raw) == 0, "tty_set");
}

static int as_before(const struct scene *s)
{
    struct termios now;

    check(tcgetattr(s->fd, &now) == 0, "tcgetattr");
    return tty_same(&now, &s->before);
}

/* What was written to the terminal is `expected`. */
static int written(const struct scene *s, const char *expected)
{
    char text[300] = "";
    struct pollfd ready = {s->main_fd, POLLIN, 0};

    if (poll(&ready, 1, 0) == 1)
        check(read(s->main_fd, text, sizeof text - 1) >= 0, "read");
    return strcmp(text, expected) == 0;
}

static void scene_close(struct scene *s)
{
    close(s->main_fd);
    close(s->fd);
    close(s->from);
}

static void an_end_of_the_pipe_turns_the_terminal_back(void)
{
    struct scene s = scene_open();

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    packet(&s, "leave");
    CHECK_EQ(says(&s, "armed"), 1);
    make_raw(&s);
    CHECK_EQ(as_before(&s), 0);
    close(s.to);
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 1);
    CHECK_EQ(written(&s, "leave"), 1);
    scene_close(&s);
}

static void an_empty_packet_ends_it_and_nothing_is_touched(void)
{
    struct scene s = scene_open();

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    packet(&s, "leave");
    CHECK_EQ(says(&s, "armed"), 1);
    make_raw(&s);
    packet(&s, "");
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 0);
    CHECK_EQ(written(&s, ""), 1);
    close(s.to);
    scene_close(&s);
}

static void settings_of_somebody_else_stay(void)
{
    struct scene s = scene_open();
    struct termios other;

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    packet(&s, "leave");
    CHECK_EQ(says(&s, "armed"), 1);
    make_raw(&s);
    check(tcgetattr(s.fd, &other) == 0, "tcgetattr");
    other.c_lflag |= ECHO;
    check(tcsetattr(s.fd, TCSANOW, &other) == 0, "tcsetattr");
    close(s.to);
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 0);
    CHECK_EQ(written(&s, ""), 1);
    scene_close(&s);
}

/* As the helper of a newer VM does. */
static void settings_that_are_back_leave_the_screen_to_the_guard(void)
{
    struct scene s = scene_open();

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    packet(&s, "leave");
    CHECK_EQ(says(&s, "armed"), 1);
    close(s.to);
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 1);
    CHECK_EQ(written(&s, "leave"), 1);
    scene_close(&s);
}

static void the_next_guard_waits_for_the_one_before(void)
{
    struct scene s = scene_open(), next = s;

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    start(&next, s.path);
    packet(&s, "");
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(says(&next, "ready"), 1);
    close(next.to);
    CHECK_EQ(status(&next), 0);
    close(s.to);
    close(next.from);
    scene_close(&s);
}

static void one_that_does_not_end_is_named(void)
{
    struct scene s = scene_open(), next = s;

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    start(&next, s.path);
    CHECK_EQ(says(&next, "another VM has the terminal"), 1);
    CHECK_EQ(status(&next), 1);
    close(s.to);
    CHECK_EQ(status(&s), 0);
    close(next.to);
    close(next.from);
    scene_close(&s);
}

static void what_is_no_terminal_is_refused(void)
{
    struct scene s = scene_open();

    start(&s, "/dev/null");
    CHECK_EQ(says(&s, "the guard does not read the terminal's settings"), 1);
    CHECK_EQ(status(&s), 1);
    close(s.to);
    close(s.from);
    start(&s, "/nowhere");
    CHECK_EQ(says(&s, "the guard does not open the terminal: No such file"), 1);
    CHECK_EQ(status(&s), 1);
    close(s.to);
    scene_close(&s);
}

static void a_terminal_that_takes_no_more_does_not_hold_it(void)
{
    struct scene s = scene_open();
    char full[4096];

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    packet(&s, "leave");
    CHECK_EQ(says(&s, "armed"), 1);
    make_raw(&s);
    memset(full, 'x', sizeof full);
    check(fcntl(s.fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    while (write(s.fd, full, sizeof full) > 0) {
    }
    close(s.to);
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 1);
    scene_close(&s);
}

static void who_must_not_wait_leaves_the_screen_to_the_guard(void)
{
    struct scene s = scene_open();
    char bytes[4096];
    ssize_t len, filled = 0, shown = 0;

    make_raw(&s);
    memset(bytes, 'x', sizeof bytes);
    check(fcntl(s.fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    while ((len = write(s.fd, bytes, sizeof bytes)) > 0)
        filled += len;
    tty_restore(s.fd, &s.before, "leave", 5, TTY_AT_ONCE);
    CHECK_EQ(as_before(&s), 1);
    check(fcntl(s.main_fd, F_SETFL, O_NONBLOCK) == 0, "fcntl");
    while ((len = read(s.main_fd, bytes, sizeof bytes)) > 0)
        shown += len;
    CHECK_EQ(shown, filled);
    close(s.main_fd);
    close(s.fd);
}

#define OTHERS 60000

/* Reads all that is to be written, when the terminal is full already; returns how much it was. */
static void *late_reader(void *context)
{
    const int fd = *(int *)context;
    const struct timespec late = {0, 20 * 1000 * 1000};
    struct pollfd ready = {fd, POLLIN, 0};
    char bytes[4096];
    intptr_t all = 0;

    (void)nanosleep(&late, NULL);
    while (all < OTHERS + 5 && poll(&ready, 1, 10000) == 1) {
        const ssize_t len = read(fd, bytes, sizeof bytes);

        check(len > 0, "read");
        all += len;
    }
    return (void *)all;
}

/* While another process writes, the system lets nobody else do so. */
static void what_others_write_is_not_given_up(void)
{
    struct scene s = scene_open();
    const int fd = open(s.path, O_RDWR | O_NOCTTY | O_NONBLOCK);
    pthread_t reader;
    void *read_bytes;
    pid_t other;
    int queued;

    make_raw(&s);
    other = fork();
    check(other >= 0, "fork");
    if (other == 0) {
        static char bytes[OTHERS];

        memset(bytes, 'x', sizeof bytes);
        _exit(write(s.fd, bytes, sizeof bytes) == sizeof bytes ? 0 : 1);
    }
    do
        check(ioctl(s.main_fd, FIONREAD, &queued) == 0, "FIONREAD");
    while (queued == 0);
    check(pthread_create(&reader, NULL, late_reader, &s.main_fd) == 0, "pthread_create");
    tty_restore(fd, &s.before, "leave", 5, TTY_PATIENT);
    check(pthread_join(reader, &read_bytes) == 0, "pthread_join");
    CHECK_EQ((intptr_t)read_bytes, OTHERS + 5);
    CHECK_EQ(as_before(&s), 1);
    s.pid = other;
    CHECK_EQ(status(&s), 0);
    close(fd);
    close(s.main_fd);
    close(s.fd);
}

static void a_packet_that_is_too_long_is_an_end(void)
{
    struct scene s = scene_open();
    char head[2] = {4, 0};

    start(&s, s.path);
    CHECK_EQ(says(&s, "ready"), 1);
    make_raw(&s);
    check(write(s.to, head, 2) == 2, "write");
    CHECK_EQ(status(&s), 0);
    CHECK_EQ(as_before(&s), 1);
    close(s.to);
    scene_close(&s);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "guard_test: expected the path of the guard\n");
        return 1;
    }
    guard_path = argv[1];
    (void)signal(SIGPIPE, SIG_IGN);
    RUN(an_end_of_the_pipe_turns_the_terminal_back);
    RUN(an_empty_packet_ends_it_and_nothing_is_touched);
    RUN(settings_of_somebody_else_stay);
    RUN(settings_that_are_back_leave_the_screen_to_the_guard);
    RUN(the_next_guard_waits_for_the_one_before);
    RUN(one_that_does_not_end_is_named);
    RUN(what_is_no_terminal_is_refused);
    RUN(a_terminal_that_takes_no_more_does_not_hold_it);
    RUN(who_must_not_wait_leaves_the_screen_to_the_guard);
    RUN(what_others_write_is_not_given_up);
    RUN(a_packet_that_is_too_long_is_an_end);
    return check_report();
}
