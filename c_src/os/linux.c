/* os.h on Linux with glibc. Nothing that Linux alone has is used anywhere else in c_src. */
#ifdef __linux__

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

const char *os_refusal(void)
{
    return NULL;
}

/* ---- memory that a host shares with its VM ---------------------------------------------- */

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* TMPFS_MAGIC: memory, so that reading it cannot fail as on a disk. */
#define TMPFS 0x01021994

int os_shared_create(uint64_t bytes)
{
    const int file = memfd_create("tame_ring", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (file < 0)
        return -1;
    if (ftruncate(file, (off_t)bytes) != 0 || fcntl(file, F_ADD_SEALS, SEALS) != 0) {
        const int why = errno;

        close(file);
        errno = why;
        return -1;
    }
    return file;
}

/* What a file is, by what the system has of it: the server of a file system in user space is not
 * asked, which could let its answer wait for ever. */
static int is_regular_at(int file, struct statx *status)
{
    const unsigned asked = STATX_TYPE | STATX_MODE;

    return statx(file, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, asked, status) == 0 &&
           S_ISREG(status->stx_mode);
}

/* Whether a file lies where memfd_create makes its own, in a file system that no path leads to. */
static int is_memfd(int file)
{
    struct statx status, own;
    const int memfd = memfd_create("tame_own", MFD_CLOEXEC);
    const int is = memfd >= 0 && is_regular_at(memfd, &own) && is_regular_at(file, &status) &&
                   status.stx_dev_major == own.stx_dev_major &&
                   status.stx_dev_minor == own.stx_dev_minor;

    if (memfd >= 0)
        close(memfd);
    return is;
}

/* Asks what it is before it opens, because to open a device may do something, and to open a file
 * may wait for who serves it. */
int os_shared_open(int64_t os_pid, int64_t fd)
{
    char path[64];
    int place, opened = -1;

    snprintf(path, sizeof path, "/proc/%lld/fd/%lld", (long long)os_pid, (long long)fd);
    place = open(path, O_PATH | O_CLOEXEC);
    if (place < 0)
        return -1;
    snprintf(path, sizeof path, "/proc/self/fd/%d", place);
    if (is_memfd(place))
        opened = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    close(place);
    return opened;
}

int os_shared_is_fixed(int file)
{
    const int seals = fcntl(file, F_GET_SEALS);
    struct statfs system;

    return seals >= 0 && (seals & SEALS) == SEALS && fstatfs(file, &system) == 0 &&
           system.f_type == TMPFS;
}

void *os_shared_map(int file, uint64_t bytes)
{
    void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);

    if (base == MAP_FAILED)
        return NULL;
    /* A core is no place for gigabytes that it is not about; they take seconds to write. */
    (void)madvise(base, bytes, MADV_DONTDUMP);
    return base;
}

void os_shared_give_back(void *place, uint64_t bytes)
{
    (void)madvise(place, bytes, MADV_REMOVE);
}

int os_wait(uint32_t *word, uint32_t read, int timeout_ms)
{
    struct timespec timeout = {timeout_ms / 1000, timeout_ms % 1000 * 1000000L};

    return syscall(SYS_futex, word, FUTEX_WAIT, read, timeout_ms < 0 ? NULL : &timeout, NULL, 0) ==
               0 ||
           errno != ETIMEDOUT;
}

void os_wake(uint32_t *word, int sleepers)
{
    (void)syscall(SYS_futex, word, FUTEX_WAKE, sleepers, NULL, NULL, 0);
}

/* ---- processes -------------------------------------------------------------------------- */

void os_name_process(const char *name)
{
    prctl(PR_SET_NAME, name);
}

void os_end_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void os_adopt(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
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

/* Their numbers are theirs as long as they are not collected. */
static void kill_children(void)
{
    DIR *processes = opendir("/proc");
    const struct dirent *entry;

    while (processes != NULL && (entry = readdir(processes)) != NULL) {
        if (isdigit((unsigned char)entry->d_name[0]) && is_child(entry->d_name))
            kill((pid_t)atoi(entry->d_name), SIGKILL);
    }
    if (processes != NULL)
        closedir(processes);
}

/* The children of one that was killed are the caller's then, so it is looked again. */
void os_end_children(int timeout_ms)
{
    for (int ms = 0; ms <= timeout_ms; ms++) {
        pid_t child;

        while ((child = waitpid(-1, NULL, WNOHANG)) > 0) {
        }
        if (child < 0)
            return;
        kill_children();
        poll(NULL, 0, 1);
    }
}

void os_continue_with_parent(void)
{
    prctl(PR_SET_PDEATHSIG, SIGCONT);
}

/* ---- bounds ----------------------------------------------------------------------------- */

/* What the kernel compares with RLIMIT_DATA. 0: it does not say. */
static uint64_t data_bytes(void)
{
    char text[4096], *line;
    const int file = open("/proc/self/status", O_RDONLY | O_CLOEXEC);
    const ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);

    if (file >= 0)
        close(file);
    text[size < 0 ? 0 : size] = '\0';
    line = strstr(text, "VmData:");
    return line == NULL ? 0 : strtoull(line + strlen("VmData:"), NULL, 10) * 1024;
}

/* A mapping that the limit forbids. A kernel before 4.7, one that was started with ignore_rlimit_data
 * and a sandbox that answers for the kernel allow it. */
static int is_limited(uint64_t bytes)
{
    void *beyond = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (beyond != MAP_FAILED)
        munmap(beyond, bytes);
    return beyond == MAP_FAILED;
}

/* RLIMIT_DATA, and not RLIMIT_AS: a ring is gigabytes of address space. Only the soft limit is set,
 * because os_limit_memory_more has to raise it. */
int os_limit_memory(uint64_t bytes, uint64_t later)
{
    const uint64_t has = data_bytes();
    struct rlimit limit;

    if (has == 0) {
        errno = ENOTSUP;
        return -1;
    }
    if (getrlimit(RLIMIT_DATA, &limit) != 0)
        return -1;
    if (limit.rlim_max < has + bytes + later) {
        errno = EPERM;
        return -1;
    }
    limit.rlim_cur = has + bytes;
    if (setrlimit(RLIMIT_DATA, &limit) != 0)
        return -1;
    if (!is_limited(bytes + (1u << 20))) {
        errno = ENOTSUP;
        return -1;
    }
    return 0;
}

int os_limit_memory_more(uint64_t bytes)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_DATA, &limit) != 0)
        return -1;
    limit.rlim_cur += bytes;
    return setrlimit(RLIMIT_DATA, &limit);
}

unsigned os_cpu(void)
{
    const int cpu = sched_getcpu();

    return cpu < 0 || (unsigned)cpu > OS_CPU_UNKNOWN ? OS_CPU_UNKNOWN : (unsigned)cpu;
}

int os_leave_cpu(unsigned cpu)
{
    cpu_set_t all, others;

    if (sched_getaffinity(0, sizeof all, &all) != 0)
        return -1;
    others = all;
    CPU_CLR(cpu, &others);
    if (CPU_COUNT(&others) == 0 || sched_setaffinity(0, sizeof others, &others) != 0)
        return -1;
    return sched_setaffinity(0, sizeof all, &all);
}

int os_cpus(unsigned *cpus, int max)
{
    cpu_set_t set;
    int len = 0;

    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return -1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &set) && len++ < max)
            cpus[len - 1] = cpu;
    }
    return len;
}

/* The kernel leaves out what is not there, and says nothing as long as one is left. */
int os_limit_cpus(const unsigned *cpus, int len)
{
    cpu_set_t wanted, got;

    CPU_ZERO(&wanted);
    for (int i = 0; i < len; i++) {
        if (cpus[i] >= CPU_SETSIZE) {
            errno = EINVAL;
            return -1;
        }
        CPU_SET(cpus[i], &wanted);
    }
    if (sched_setaffinity(0, sizeof wanted, &wanted) != 0 ||
        sched_getaffinity(0, sizeof got, &got) != 0)
        return -1;
    errno = EINVAL;
    return CPU_EQUAL(&wanted, &got) ? 0 : -1;
}

/* ---- descriptors ------------------------------------------------------------------------ */

int os_pipe(int ends[2])
{
    return pipe2(ends, O_CLOEXEC);
}

int os_poll(struct pollfd *fds, nfds_t len, const sigset_t *mask)
{
    return ppoll(fds, len, NULL, mask);
}

int os_ready_open(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

int os_ready_wait_for(int set, int fd, int events, uint32_t mark, int known)
{
    struct epoll_event event = {.events = EPOLLONESHOT,
                                .data.u64 = (uint64_t)mark << 32 | (uint32_t)fd};

    if (events & OS_READY_READ)
        event.events |= EPOLLIN;
    if (events & OS_READY_WRITE)
        event.events |= EPOLLOUT;
    return epoll_ctl(set, known ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
}

void os_ready_forget(int set, int fd)
{
    (void)epoll_ctl(set, EPOLL_CTL_DEL, fd, NULL);
}

void os_ready_next(int set, struct os_ready *ready)
{
    struct epoll_event event;

    while (epoll_wait(set, &event, 1, -1) != 1) {
    }
    *ready = (struct os_ready){.fd = (int)(uint32_t)event.data.u64,
                               .mark = (uint32_t)(event.data.u64 >> 32)};
    if (event.events & EPOLLIN)
        ready->events |= OS_READY_READ;
    if (event.events & EPOLLOUT)
        ready->events |= OS_READY_WRITE;
    if (event.events & (EPOLLERR | EPOLLHUP))
        ready->events |= OS_READY_ERROR;
}

void os_close_all_but(int one, int other)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != one && fd != other && fd != dirfd(folder))
            close(fd);
    }
    closedir(folder);
}

int os_reopen(int fd)
{
    char path[32];

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

/* ---- signals ---------------------------------------------------------------------------- */

const char *os_signal_name(int number)
{
    return sigabbrev_np(number);
}

const char *os_errno_name(int number)
{
    return strerrorname_np(number);
}

int os_backtrace(void **frames, int max)
{
    return backtrace(frames, max);
}

void *os_fault_place(const void *context)
{
    const ucontext_t *at = context;

#if defined(__x86_64__)
    return (void *)at->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (void *)at->uc_mcontext.pc;
#else
    (void)at;
    return NULL;
#endif
}

void *os_fault_caller(const void *context)
{
    const ucontext_t *at = context;

#if defined(__x86_64__)
    return *(void **)at->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (void *)at->uc_mcontext.regs[30];
#else
    (void)at;
    return NULL;
#endif
}

#endif
