/* tame_warden: runs a program, and leaves nothing behind of what it starts.
 *
 *     tame_warden PROGRAM [ARGUMENT...]
 *
 * When PROGRAM ends, or when nobody can write to standard input any more, all that it started is
 * killed; then the warden ends, with PROGRAM's status as a shell says it. Standard input is
 * PROGRAM's: the warden reads nothing.
 *
 * A process whose parent has ended becomes the warden's child, in whatever session it is
 * (PR_SET_CHILD_SUBREAPER of prctl(2)). So the warden kills its children until it has none. Those of
 * another user stay where the warden is not root, and so does all when the warden itself is killed;
 * PROGRAM ends then. On other systems than Linux PROGRAM alone is killed.
 */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* As a shell says it: a signal, and a program that cannot be run. */
#define STATUS_SIGNAL 128
#define STATUS_NO_PROGRAM 127

/* For how long children that do not end are killed again. */
#define LEFT_MS 5000

static int wake[2];

static void child_changed(int signal)
{
    const int before = errno;

    (void)signal;
    (void)!write(wake[1], "", 1); /* a full pipe wakes as well */
    errno = before;
}

static void end_with_warden(pid_t warden)
{
    if (os_refusal() == NULL)
        os_end_with_parent();
    if (getppid() != warden)
        _exit(STATUS_NO_PROGRAM);
}

/* In a group of its own, so that a signal to PROGRAM's group is none to the warden. */
static pid_t start(char **argv)
{
    const pid_t warden = getpid(), program = fork();

    if (program == 0) {
        end_with_warden(warden);
        setpgid(0, 0);
        signal(SIGCHLD, SIG_DFL);
        execvp(argv[0], argv);
        fprintf(stderr, "tame_warden: %s: %s\n", argv[0], strerror(errno));
        _exit(STATUS_NO_PROGRAM);
    }
    return program;
}

static int status_of(int how)
{
    return WIFSIGNALED(how) ? STATUS_SIGNAL + WTERMSIG(how) : WEXITSTATUS(how);
}

/* Collects those that have ended. Was PROGRAM one of them? */
static int has_ended(pid_t program, int *status)
{
    pid_t child;
    int how, ended = 0;

    while ((child = waitpid(-1, &how, WNOHANG)) > 0 || (child < 0 && errno == EINTR)) {
        if (child == program) {
            ended = 1;
            *status = status_of(how);
        }
    }
    return ended;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = child_changed, .sa_flags = SA_RESTART};
    struct pollfd fds[2] = {{.fd = STDIN_FILENO}, {.events = POLLIN}};
    int status = STATUS_NO_PROGRAM, ended = 0, how;
    char bytes[64];
    pid_t program;

    if (argc < 2) {
        fprintf(stderr, "tame_warden: nothing to run; expected: PROGRAM [ARGUMENT...]\n");
        return 2;
    }
    if (pipe(wake) < 0) {
        perror("tame_warden: pipe");
        return STATUS_NO_PROGRAM;
    }
    for (int i = 0; i < 2; i++) {
        fcntl(wake[i], F_SETFD, FD_CLOEXEC);
        fcntl(wake[i], F_SETFL, O_NONBLOCK);
    }
    fds[1].fd = wake[0];
    sigaction(SIGCHLD, &action, NULL);
    if (os_refusal() == NULL)
        os_adopt();
    program = start(argv + 1);
    if (program < 0) {
        perror("tame_warden: fork");
        return STATUS_NO_PROGRAM;
    }
    /* No events of standard input: only its end is told. */
    while (!ended && fds[0].revents == 0) {
        if (poll(fds, 2, -1) < 0)
            fds[0].revents = 0;
        while (read(wake[0], bytes, sizeof bytes) > 0) {
        }
        ended = has_ended(program, &status);
    }
    if (!ended) {
        kill(program, SIGKILL);
        if (waitpid(program, &how, 0) == program)
            status = status_of(how);
    }
    if (os_refusal() == NULL)
        os_end_children(LEFT_MS);
    return status;
}
