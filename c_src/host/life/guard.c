/* The guard, see guard.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "life/crash.h"
#include "life/guard.h"
#include "life/limits.h"
#include "memory/alloc.h"
#include "memory/die.h"
#include "os/os.h"
#include "term/atom.h"
#include "wire/query.h"
#include "wire/relay.h"
#include "wire/tell.h"

/* As shells and the VM's ports say it: a signal is 128 and its number. */
#define STATUS_SIGNAL 128

/* How long the VM may take to make room for the last frame. */
#define LAST_FRAME_MS 100

struct guarded {
    pid_t host;
    int control_in, control_out;
    const struct crash_record *record;
    struct relay relay;
};

static void child_changed(int signal)
{
    (void)signal; /* it only has to interrupt os_poll */
}

/* ---- the last frame ------------------------------------------------------------------- */

static term text(ErlNifEnv *env, const char *bytes, size_t size)
{
    return term_binary(env, (const unsigned char *)bytes, size, 0, NULL);
}

/* The kernel ends a host at its limit of CPU time: by SIGXCPU, and a second later, where the library
 * has that ignored, by SIGKILL. The host and its children that were collected are all that the
 * guard has collected. */
static int used_up_its_cpu(int signal)
{
    struct rusage used;

    if (limits.cpu_seconds == LIMITS_UNSET)
        return 0;
    if (signal != SIGKILL)
        return signal == SIGXCPU;
    return getrusage(RUSAGE_CHILDREN, &used) == 0 &&
           used.ru_utime.tv_sec + used.ru_stime.tv_sec >= (time_t)limits.cpu_seconds;
}

/* Lengths are bounded here, each word is read once. A record of another signal than the one that
 * ended the host says nothing of its end. */
static term ended_frame(ErlNifEnv *env, const struct guarded *guarded, int status)
{
    const struct crash_record *record = guarded->record;
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    int known = signal != 0 && record->signal == signal;
    size_t backtrace_len = known ? record->backtrace_len : 0;

    if (backtrace_len > CRASH_BACKTRACE_MAX)
        backtrace_len = CRASH_BACKTRACE_MAX;
    enum limit limit = used_up_its_cpu(signal) ? LIMIT_CPU
                       : known || signal == 0  ? limits_known(record->limit)
                                               : LIMIT_NONE;
    return query_term(
        env, "ended", 7, make_small(signal), term_unsigned(env, known ? record->address : 0),
        text(env, record->function, known ? strnlen(record->function, CRASH_FUNCTION_MAX) : 0),
        make_small(known ? (int)(record->arity & 0xff) : 0),
        text(env, record->backtrace, backtrace_len),
        text(env, guarded->relay.tail, guarded->relay.tail_len), atom_named(limits_name(limit)));
}

/* Best effort: the VM may have gone, or not be reading. The host wrote the same pipe, and is dead;
 * when that was in the midst of a frame, there is no place left where another could begin. */
static void tell_end(const struct guarded *guarded, int status)
{
    struct pollfd out = {.fd = guarded->control_out, .events = POLLOUT};
    ErlNifEnv env;
    size_t size, done = 0;

    if (guarded->record->writing_frame)
        return;
    env_init(&env, ENV_INDEPENDENT);
    unsigned char *frame = tell_frame(ended_frame(&env, guarded, status), &size);
    fcntl(out.fd, F_SETFL, fcntl(out.fd, F_GETFL) | O_NONBLOCK);
    while (done < size) {
        ssize_t n = write(out.fd, frame + done, size - done);
        if (n > 0)
            done += (size_t)n;
        else if (n < 0 && errno != EINTR && errno != EAGAIN)
            break;
        else if (n < 0 && errno == EAGAIN && poll(&out, 1, LAST_FRAME_MS) <= 0)
            break;
    }
    free(frame);
    env_destroy(&env);
}

/* ---- the end -------------------------------------------------------------------------- */

/* The host is a zombie or alive: as long as it is not collected, its number is no other's. */
static void kill_group(const struct guarded *guarded)
{
    kill(-guarded->host, SIGKILL);
    kill(guarded->host, SIGKILL); /* also one that is stopped or has changed its group */
}

static int collect(const struct guarded *guarded)
{
    int status = 0;

    while (waitpid(guarded->host, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
}

static int has_ended(const struct guarded *guarded)
{
    siginfo_t info = {.si_pid = 0};

    return waitid(P_PID, (id_t)guarded->host, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == guarded->host;
}

__attribute__((noreturn)) static void guard(struct guarded *guarded, const sigset_t *unblocked)
{
    os_name_process("tame_host_guard");
    os_continue_with_parent(); /* a library can stop its guard */
    for (;;) {
        if (has_ended(guarded)) {
            kill_group(guarded);
            int status = collect(guarded);
            relay_finish(&guarded->relay);
            tell_end(guarded, status);
            _exit(WIFSIGNALED(status) ? STATUS_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status));
        }
        /* No events: only the pipe's end is reported, never its content, which is the host's. */
        struct pollfd fds[3] = {{.fd = guarded->control_in}};
        relay_poll(&guarded->relay, fds + 1);
        if (os_poll(fds, 3, unblocked) <= 0)
            continue;
        if (fds[0].revents != 0) {
            kill_group(guarded);
            (void)collect(guarded);
            relay_finish(&guarded->relay);
            _exit(0);
        }
        relay_work(&guarded->relay);
    }
}

/* ---- the beginning -------------------------------------------------------------------- */

/* The host's standard output and error become the pipe's end, which is closed. */
static void take_output(int end)
{
    if (dup2(end, STDOUT_FILENO) < 0 || dup2(end, STDERR_FILENO) < 0)
        host_die("cannot pass on standard error: %s", strerror(errno));
    close(end);
    setvbuf(stdout, NULL, _IOLBF, 0); /* a library's printf is seen at once, and not lost */
}

struct crash_record *guard_split(int control_in, int control_out)
{
    /* The guard's for its whole life. */
    struct guarded *guarded = host_calloc(sizeof *guarded);
    struct crash_record *record = crash_record_new();
    struct sigaction action = {.sa_handler = child_changed};
    sigset_t child_signal, unblocked;
    pid_t guard_pid = getpid(), child;
    int ends[2];

    if (os_pipe(ends) < 0)
        host_die("cannot make a pipe: %s", strerror(errno));
    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_signal, &unblocked);
    sigdelset(&unblocked, SIGCHLD);
    sigaction(SIGCHLD, &action, NULL);

    child = fork();
    if (child < 0)
        host_die("cannot fork: %s", strerror(errno));
    setpgid(child, child); /* by both, so that neither goes on before it is so */
    if (child > 0) {
        close(ends[1]);
        guarded->host = child;
        guarded->control_in = control_in;
        guarded->control_out = control_out;
        guarded->record = record;
        relay_init(&guarded->relay, ends[0]);
        guard(guarded, &unblocked);
    }
    free(guarded);
    close(ends[0]);
    take_output(ends[1]);
    signal(SIGCHLD, SIG_DFL);
    sigprocmask(SIG_SETMASK, &unblocked, NULL);
    os_end_with_parent();
    if (getppid() != guard_pid)
        _exit(0);
    return record;
}
