/* The guard, see guard.h. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard.h"
#include "host.h"

/* As shells and the VM's ports say it: a signal is 128 and its number. */
#define STATUS_SIGNAL 128

static void child_changed(int signal)
{
    (void)signal; /* it only has to interrupt ppoll */
}

static void end_as(int status)
{
    _exit(WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status));
}

__attribute__((noreturn)) static void guard(pid_t child, int control_in, const sigset_t *unblocked)
{
    /* No events: only the pipe's end is reported, never its content, which is the host's. */
    struct pollfd pipe = {.fd = control_in};
    int status;

    prctl(PR_SET_NAME, "tame_host_guard");
    for (;;) {
        pid_t ended = waitpid(child, &status, WNOHANG);
        if (ended == child && !WIFSTOPPED(status))
            end_as(status);
        if (ppoll(&pipe, 1, NULL, unblocked) > 0) {
            kill(child, SIGKILL); /* also one that is stopped or blocks every other signal */
            while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
            }
            _exit(0);
        }
    }
}

void guard_split(int control_in, int control_out)
{
    struct sigaction action = {.sa_handler = child_changed};
    sigset_t child_signal, unblocked;
    pid_t guard_pid = getpid(), child;

    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_signal, &unblocked);
    sigdelset(&unblocked, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);

    child = fork();
    if (child < 0)
        host_die("cannot fork: %s", strerror(errno));
    if (child > 0) {
        close(control_out);
        guard(child, control_in, &unblocked);
    }
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &unblocked, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != guard_pid)
        _exit(0);
}
