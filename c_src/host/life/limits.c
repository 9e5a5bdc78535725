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

struct limits limits = {.memory_mb = LIMITS_UNSET,
                        .cpu_seconds = LIMITS_UNSET,
                        .open_files = LIMITS_UNSET,
                        .threads = LIMITS_UNSET,
                        .nice = LIMITS_UNSET,
                        .cpus = LIMITS_UNSET};

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

    for (limits.cpu_list_len = 0; limits.cpu_list_len < LIMITS_CPUS_MAX; text++) {
        if (read_number(&text, 0, LIMITS_CPUS_MAX - 1, &cpu) < 0)
            return -1;
        limits.cpu_list[limits.cpu_list_len++] = (unsigned)cpu;
        if (*text == '\0')
            return 0;
        if (*text != ',')
            return -1;
    }
    return -1;
}

static const struct {
    const char *name;
    long least, most, *to;
} numbers[] = {
    {"--memory-mb", 1, 1L << 24, &limits.memory_mb},
    {"--cpu-seconds", 1, 1L << 31, &limits.cpu_seconds},
    {"--open-files", 1, 1L << 20, &limits.open_files},
    {"--threads", 0, 1L << 15, &limits.threads},
    {"--nice", -20, 19, &limits.nice},
    {"--cpus", 1, LIMITS_CPUS_MAX, &limits.cpus},
};

const char *limits_option(const char *name, const char *value)
{
    static char expected[128];

    if (strcmp(name, "--cpu-list") == 0)
        return read_cpu_list(value) == 0
                   ? NULL
                   : "--cpu-list takes numbers from 0 to 1023 with commas between them, not";
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(name, numbers[i].name) != 0)
            continue;
        if (read_whole(value, numbers[i].least, numbers[i].most, numbers[i].to) == 0)
            return NULL;
        snprintf(expected, sizeof expected, "%s takes a number from %ld to %ld, not", name,
                 numbers[i].least, numbers[i].most);
        return expected;
    }
    return limits_unknown;
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
    const long mb = limits.memory_mb;

    if (mb == LIMITS_UNSET || os_limit_memory((uint64_t)mb << 20, WORKERS_ROOM_BYTES) == 0)
        return 0;
    if (errno == EPERM)
        return refuse(
            to, "memory_mb => %ld: the hard limit of this user's data (ulimit -Hd) is less", mb);
    if (errno == ENOTSUP)
        return refuse(to, "memory_mb => %ld: this system does not limit memory (RLIMIT_DATA)", mb);
    return refuse(to, "memory_mb => %ld: %s", mb, strerror(errno));
}

/* Hard as well as soft, so that the library does not raise it. The kernel sends SIGXCPU at the soft
 * limit and SIGKILL at the hard one. */
static int limit_resource(const struct sentence *to, const char *name, long value, int resource,
                          long soft, long hard)
{
    struct rlimit limit;

    if (value == LIMITS_UNSET)
        return 0;
    if (getrlimit(resource, &limit) != 0)
        return refuse(to, "%s => %ld: %s", name, value, strerror(errno));
    if (limit.rlim_max < (rlim_t)hard)
        return refuse(to, "%s => %ld: it takes a limit of %ld, and the hard limit here is %llu",
                      name, value, hard, (unsigned long long)limit.rlim_max);
    limit = (struct rlimit){.rlim_cur = (rlim_t)soft, .rlim_max = (rlim_t)hard};
    if (setrlimit(resource, &limit) != 0)
        return refuse(to, "%s => %ld: %s", name, value, strerror(errno));
    return 0;
}

static int limit_nice(const struct sentence *to)
{
    if (limits.nice == LIMITS_UNSET || setpriority(PRIO_PROCESS, 0, (int)limits.nice) == 0)
        return 0;
    if (errno == EACCES || errno == EPERM)
        return refuse(to, "nice => %ld: the VM runs with %d, and this user may not go below it",
                      limits.nice, getpriority(PRIO_PROCESS, 0));
    return refuse(to, "nice => %ld: %s", limits.nice, strerror(errno));
}

/* That number of those that the VM may use, the lowest first, or those of the list. */
static int limit_cpus(const struct sentence *to)
{
    unsigned allowed[LIMITS_CPUS_MAX];
    int len, wanted = limits.cpus > 0 ? (int)limits.cpus : 0;

    if (wanted > 0) {
        len = os_cpus(allowed, LIMITS_CPUS_MAX);
        if (len < 0)
            return refuse(to, "cpus => %d: %s", wanted, strerror(errno));
        if (len < wanted)
            return refuse(to, "cpus => %d: the VM may use %d", wanted, len);
        if (os_limit_cpus(allowed, wanted) != 0)
            return refuse(to, "cpus => %d: %s", wanted, strerror(errno));
    }
    for (int i = 0; i < limits.cpu_list_len; i++) {
        if (os_limit_cpus(&limits.cpu_list[i], 1) != 0)
            return refuse(to, "cpus: there is no CPU %u that this process may use",
                          limits.cpu_list[i]);
    }
    if (limits.cpu_list_len > 0 && os_limit_cpus(limits.cpu_list, limits.cpu_list_len) != 0)
        return refuse(to, "cpus: %s", strerror(errno));
    return 0;
}

int limits_apply(_Atomic int *reached, char *text, uint64_t size)
{
    const struct sentence to = {text, size};
    const long files = limits.open_files + OWN_FILES;

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
    if (limits.memory_mb == LIMITS_UNSET)
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
