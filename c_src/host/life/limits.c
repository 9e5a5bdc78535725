/* The bounds of a host, see limits.h. */
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "life/limits.h"
#include "life/thread.h"
#include "memory/alloc.h"
#include "os/os.h"

/* Descriptors of the host's own: the control port, standard output and error, the ring, those that
 * are ready, and some that are open for a moment while it loads. It has 6 to 8. */
#define OWN_FILES 16

/* What the host may take for workers later on, so that there is room below a hard limit: 64 of the
 * ring's and up to 1024 of the control port's, 2 MiB each. */
#define WORKERS_ROOM_BYTES ((uint64_t)(64 + 1024) << 21)

struct limits limits = {.threads = -1};

const char limits_unknown[] = "no such option";

static struct {
    _Atomic int *reached; /* NULL: there are no limits, or nobody reads it */
    pid_t pid;            /* whose end counts: not that of a child that the library forked */
    pthread_mutex_t lock;
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the command line ----------------------------------------------------------------- */

/* A whole number up to a character that is not one of it; -1: there is none within these bounds. */
static int read_number(const char **text, long least, long most, long *number)
{
    char *end;

    errno = 0;
    *number = strtol(*text, &end, 10);
    if (end == *text || errno != 0 || *number < least || *number > most)
        return -1;
    *text = end;
    return 0;
}

static int read_whole(const char *text, long least, long most, long *number)
{
    return read_number(&text, least, most, number) == 0 && *text == '\0' ? 0 : -1;
}

/* 0,1,5 */
static int read_cpu_list(const char *text)
{
    long cpu;

    for (limits.cpus_len = 0; limits.cpus_len < LIMITS_CPUS_MAX; text++) {
        if (read_number(&text, 0, LIMITS_CPUS_MAX - 1, &cpu) < 0)
            return -1;
        limits.cpus[limits.cpus_len++] = (unsigned)cpu;
        if (*text == '\0')
            return 0;
        if (*text != ',')
            return -1;
    }
    return -1;
}

const char *limits_option(const char *name, const char *value)
{
    long number;

    if (strcmp(name, "--memory-mb") == 0) {
        if (read_whole(value, 1, 1L << 24, &number) < 0)
            return "--memory-mb takes a number from 1 to 16777216, not";
        limits.memory_mb = (uint64_t)number;
    } else if (strcmp(name, "--cpu-seconds") == 0) {
        if (read_whole(value, 1, 1L << 31, &number) < 0)
            return "--cpu-seconds takes a number from 1 to 2147483648, not";
        limits.cpu_seconds = (uint64_t)number;
    } else if (strcmp(name, "--open-files") == 0) {
        if (read_whole(value, 1, 1L << 20, &number) < 0)
            return "--open-files takes a number from 1 to 1048576, not";
        limits.open_files = (uint64_t)number;
    } else if (strcmp(name, "--threads") == 0) {
        if (read_whole(value, 0, 1L << 15, &number) < 0)
            return "--threads takes a number from 0 to 32768, not";
        limits.threads = (int)number;
    } else if (strcmp(name, "--nice") == 0) {
        if (read_whole(value, -20, 19, &number) < 0)
            return "--nice takes a number from -20 to 19, not";
        limits.nice = (int)number;
        limits.has_nice = 1;
    } else if (strcmp(name, "--cpus") == 0) {
        if (read_whole(value, 1, LIMITS_CPUS_MAX, &number) < 0)
            return "--cpus takes a number from 1 to 1024, not";
        limits.cpu_count = (uint64_t)number;
    } else if (strcmp(name, "--cpu-list") == 0) {
        if (read_cpu_list(value) < 0)
            return "--cpu-list takes numbers from 0 to 1023 with commas between them, not";
    } else {
        return limits_unknown;
    }
    return NULL;
}

/* ---- setting them --------------------------------------------------------------------- */

struct sentence {
    char *text;
    uint64_t size;
};

__attribute__((format(printf, 2, 3))) static int refuse(const struct sentence *to,
                                                        const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(to->text, to->size, format, args);
    va_end(args);
    return -1;
}

static int limit_memory(const struct sentence *to)
{
    const unsigned long long mb = limits.memory_mb;

    if (mb == 0 || os_limit_memory(mb << 20, WORKERS_ROOM_BYTES) == 0)
        return 0;
    if (errno == EPERM)
        return refuse(
            to, "memory_mb => %llu: the hard limit of this user's data (ulimit -Hd) is less", mb);
    if (errno == ENOTSUP)
        return refuse(to, "memory_mb => %llu: this system does not limit memory (RLIMIT_DATA)", mb);
    return refuse(to, "memory_mb => %llu: %s", mb, strerror(errno));
}

/* Hard as well as soft, so that the library does not raise it. The kernel sends SIGXCPU at the soft
 * limit and SIGKILL at the hard one. */
static int limit_resource(const struct sentence *to, const char *name, uint64_t value, int resource,
                          uint64_t soft, uint64_t hard)
{
    struct rlimit limit;

    if (value == 0)
        return 0;
    if (getrlimit(resource, &limit) != 0)
        return refuse(to, "%s => %llu: %s", name, (unsigned long long)value, strerror(errno));
    if (limit.rlim_max < hard)
        return refuse(to, "%s => %llu: it takes a limit of %llu, and the hard limit here is %llu",
                      name, (unsigned long long)value, (unsigned long long)hard,
                      (unsigned long long)limit.rlim_max);
    limit = (struct rlimit){.rlim_cur = soft, .rlim_max = hard};
    if (setrlimit(resource, &limit) != 0)
        return refuse(to, "%s => %llu: %s", name, (unsigned long long)value, strerror(errno));
    return 0;
}

static int limit_nice(const struct sentence *to)
{
    if (!limits.has_nice || setpriority(PRIO_PROCESS, 0, limits.nice) == 0)
        return 0;
    if (errno == EACCES || errno == EPERM)
        return refuse(to, "nice => %d: the VM runs with %d, and this user may not go below it",
                      limits.nice, getpriority(PRIO_PROCESS, 0));
    return refuse(to, "nice => %d: %s", limits.nice, strerror(errno));
}

/* The first so many of those that the VM may use, or those of the list. */
static int limit_cpus(const struct sentence *to)
{
    unsigned allowed[LIMITS_CPUS_MAX];
    int len, wanted = (int)limits.cpu_count;

    if (wanted > 0) {
        len = os_cpus(allowed, LIMITS_CPUS_MAX);
        if (len < 0)
            return refuse(to, "cpus => %d: %s", wanted, strerror(errno));
        if (len < wanted)
            return refuse(to, "cpus => %d: the VM may use %d", wanted, len);
        if (os_limit_cpus(allowed, wanted) != 0)
            return refuse(to, "cpus => %d: %s", wanted, strerror(errno));
    }
    for (int i = 0; i < limits.cpus_len; i++) {
        if (os_limit_cpus(&limits.cpus[i], 1) != 0)
            return refuse(to, "cpus: there is no CPU %u that this process may use", limits.cpus[i]);
    }
    if (limits.cpus_len > 0 && os_limit_cpus(limits.cpus, limits.cpus_len) != 0)
        return refuse(to, "cpus: %s", strerror(errno));
    return 0;
}

int limits_apply(_Atomic int *reached, char *text, uint64_t size)
{
    const struct sentence to = {text, size};
    const uint64_t files = limits.open_files + OWN_FILES;

    state.pid = getpid();
    state.reached = reached;
    if (limit_nice(&to) < 0 || limit_cpus(&to) < 0 ||
        limit_resource(&to, "cpu_seconds", limits.cpu_seconds, RLIMIT_CPU, limits.cpu_seconds,
                       limits.cpu_seconds + 1) < 0 ||
        limit_resource(&to, "open_files", limits.open_files, RLIMIT_NOFILE, files, files) < 0)
        return -1;
    host_no_memory = limits_note;
    atexit(limits_note); /* a library that calls exit() because of a refusal */
    return limit_memory(&to);
}

void limits_make_room(uint64_t bytes)
{
    if (limits.memory_mb == 0)
        return;
    pthread_mutex_lock(&state.lock);
    (void)os_limit_memory_more(bytes);
    pthread_mutex_unlock(&state.lock);
}

/* ---- what was reached ----------------------------------------------------------------- */

void limits_watch(void)
{
    host_thread.refused_thread = 0;
    errno = 0;
}

static enum limit reached(void)
{
    return errno == ENOMEM && limits.memory_mb > 0    ? LIMIT_MEMORY
           : errno == EMFILE && limits.open_files > 0 ? LIMIT_OPEN_FILES
           : host_thread.refused_thread               ? LIMIT_THREADS
                                                      : LIMIT_NONE;
}

/* The first thread that ends the process says why. */
void limits_note(void)
{
    const enum limit limit = reached();
    int none = LIMIT_NONE, saved = errno;

    if (limit != LIMIT_NONE && state.reached != NULL && getpid() == state.pid)
        (void)atomic_compare_exchange_strong(state.reached, &none, (int)limit);
    errno = saved;
}

static const char *const names[] = {"none", "memory", "cpu", "open_files", "threads"};

enum limit limits_known(int number)
{
    return number == LIMIT_MEMORY || number == LIMIT_OPEN_FILES || number == LIMIT_THREADS
               ? (enum limit)number
               : LIMIT_NONE;
}

const char *limits_name(enum limit limit)
{
    return names[limit];
}
