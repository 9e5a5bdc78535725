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
#define _GNU_SOURCE

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

/* As a shell says it: a signal, and a program that cannot be run. */
#define STATUS_SIGNAL 128
#define STATUS_NO_PROGRAM 127

static int wake[2];

static void child_changed(int signal)
{
    const int before = errno;

    (void)signal;
    (void)!write(wake[1], "", 1); /* a full pipe wakes as well */
    errno = before;
}

static void adopt(void)
{
#ifdef __linux__
    prctl(PR_SET_CHILD_SUBREAPER, 1);
#endif
}

static void end_with_warden(pid_t warden)
{
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
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

/* Collects those that have ended; waits for one when it may. 0: there is no child any more. */
static int collect(pid_t program, int *status, int *ended, int options)
{
    pid_t child;
    int how;

    while ((child = waitpid(-1, &how, options)) > 0 || (child < 0 && errno == EINTR)) {
        if (child == program) {
            *ended = 1;
            *status = WIFSIGNALED(how) ? STATUS_SIGNAL + WTERMSIG(how) : WEXITSTATUS(how);
        }
        options = WNOHANG;
    }
    return child == 0;
}

/* proc(5): the fourth field of stat; the second stands in brackets, and may hold any byte. */
static int is_child(const char *pid)
{
    char path[64], text[512], *name_end;
    int file, parent = 0;
    ssize_t size;

    snprintf(path, sizeof path, "/proc/%.20s/stat", pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    size = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (size <= 0)
        return 0;
    text[size] = '\0';
    name_end = strrchr(text, ')');
    return name_end != NULL && sscanf(name_end + 1, " %*c %d", &parent) == 1 && parent == getpid();
}

/* How many children it could kill. Their numbers are theirs as long as they are not collected. */
static int kill_children(void)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;
    int killed = 0;

    while (processes != NULL && (entry = readdir(processes)) != NULL)
        if (isdigit((unsigned char)entry->d_name[0]) && is_child(entry->d_name))
            killed += kill((pid_t)atoi(entry->d_name), SIGKILL) == 0;
    if (processes != NULL)
        closedir(processes);
    return killed;
}

int main(int argc, char **argv)
{
    const struct sigaction action = {.sa_handler = child_changed, .sa_flags = SA_RESTART};
    struct pollfd fds[2] = {{.fd = STDIN_FILENO}, {.events = POLLIN}};
    int status = STATUS_NO_PROGRAM, ended = 0;
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
    adopt();
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
        collect(program, &status, &ended, WNOHANG);
    }
    if (!ended)
        kill(program, SIGKILL);
    while (kill_children() > 0 && collect(program, &status, &ended, 0)) {
    }
    return status;
}
