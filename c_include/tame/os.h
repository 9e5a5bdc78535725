/* tame/os.h - what only the operating system knows or gives: CPUs, large pages, a bell, and what its
 * clock is made of.
 *
 * Part of tame.h; usable alone. Plain C. The one file with what is Linux's alone: elsewhere each of
 * these functions does nothing, or says that it does not know. */
#ifndef TAME_OS_H
#define TAME_OS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <unistd.h>

#ifdef __linux__
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>

/* -std=c11 hides them. */
#ifndef __cplusplus
long syscall(long, ...);
int madvise(void *, size_t, int);
#endif
#ifndef MADV_HUGEPAGE
#define MADV_HUGEPAGE 14
#define MADV_NOHUGEPAGE 15
#endif
#else
#include <fcntl.h>
#endif

/* Lets the calling thread run wherever the VM may. A thread inherits the CPUs of the one that
 * starts it; that is a scheduler, which is bound to a single one under +sbt, and thread and
 * scheduler would share that CPU while others are idle. The VM's main thread is never bound. */
static inline void tame_impl_os_unbind(void)
{
#ifdef __linux__
    unsigned char cpus[1024]; /* a bit each */
    const long size = syscall(SYS_sched_getaffinity, (long)getpid(), sizeof cpus, cpus);

    if (size > 0)
        (void)syscall(SYS_sched_setaffinity, 0L, (unsigned long)size, cpus);
#endif
}

/* How long a thread that gives way asks to have a core before others get their share. Beside work in
 * the pool, p99 of a neighbour's delay on two cores: with 1.4 ms, Linux's own there, 14 ms; with 6 ms
 * 2.4, with 12 ms 0.6, with 100 ms 0.4. But a call that finds all cores busy waits about two turns. */
#define TAME_IMPL_OS_TURN_NS UINT64_C(10000000)

/* Lets others that wake have the core of the calling thread at once, or does so no more. A thread
 * that asks for long turns gets no less of a core: Linux (6.12 and newer) gives the core to who wakes
 * and asks for shorter ones, as the schedulers do, and makes up for it later. Older systems take no
 * notice. Returns whether it was done. */
static inline int tame_impl_os_give_way(int gives_way)
{
#if defined(__linux__) && defined(SYS_sched_setattr)
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t turn_ns, deadline, period;
    } of_thread;

    memset(&of_thread, 0, sizeof of_thread);
    if (syscall(SYS_sched_getattr, 0L, &of_thread, sizeof of_thread, 0UL) != 0 ||
        of_thread.policy != 0) /* somebody has chosen another way for the VM */
        return 0;
    of_thread.turn_ns = gives_way ? TAME_IMPL_OS_TURN_NS : 0; /* 0: the system's own */
    return syscall(SYS_sched_setattr, 0L, &of_thread, 0UL) == 0;
#else
    (void)gives_way;
    return 0;
#endif
}

/* Outputs from this size on ask for large pages: a fresh page of 4 KiB costs 3 us to touch first, and
 * one of 2 MiB 0.4 ms; on a virtual machine 10 ms where its host has to find it. */
#define TAME_IMPL_LARGE_BYTES ((size_t)4 * 1024 * 1024)
#define TAME_IMPL_LARGE_PAGE ((size_t)2 * 1024 * 1024)

/* A slice that takes so much longer than it may ends the asking for a while. */
#define TAME_IMPL_LARGE_LATE_NS UINT64_C(2000000)
#define TAME_IMPL_LARGE_OFF_NS UINT64_C(60000000000)

#ifdef __linux__
/* What was asked for last, and since when no more; atomics. */
struct tame_impl_large {
    uint64_t off_until_ns;
    uint32_t next;
    struct {
        uintptr_t from, to; /* 0: none */
    } asked[8];
};
static struct tame_impl_large tame_impl_large;
#endif

/* Asks for large pages below fresh memory; no more than a wish. */
static inline void tame_impl_os_large_pages(void *memory, size_t size, uint64_t now_ns)
{
#ifdef __linux__
    struct tame_impl_large *large = &tame_impl_large;
    const uintptr_t from =
        ((uintptr_t)memory + TAME_IMPL_LARGE_PAGE - 1) & ~(uintptr_t)(TAME_IMPL_LARGE_PAGE - 1);
    const uintptr_t to = ((uintptr_t)memory + size) & ~(uintptr_t)(TAME_IMPL_LARGE_PAGE - 1);
    uint32_t i;

    if (to <= from || now_ns < __atomic_load_n(&large->off_until_ns, __ATOMIC_RELAXED))
        return;
    (void)madvise((void *)from, (size_t)(to - from), MADV_HUGEPAGE);
    i = __atomic_fetch_add(&large->next, 1, __ATOMIC_RELAXED) % 8;
    __atomic_store_n(&large->asked[i].to, to, __ATOMIC_RELAXED);
    __atomic_store_n(&large->asked[i].from, from, __ATOMIC_RELEASE);
#else
    (void)memory;
    (void)size;
    (void)now_ns;
#endif
}

/* A slice was late by TAME_IMPL_LARGE_LATE_NS. If large pages were asked for, they may be why:
 * then they are no more, also where they have been, for a while. Memory that was freed meanwhile and
 * is another's gets small pages as well, which hurts nobody. */
static inline void tame_impl_os_large_pages_late(uint64_t now_ns)
{
#ifdef __linux__
    struct tame_impl_large *large = &tame_impl_large;

    for (int i = 0; i < 8; i++) {
        const uintptr_t from = __atomic_exchange_n(&large->asked[i].from, 0, __ATOMIC_ACQUIRE);
        const uintptr_t to = __atomic_load_n(&large->asked[i].to, __ATOMIC_RELAXED);

        if (from == 0)
            continue;
        __atomic_store_n(&large->off_until_ns, now_ns + TAME_IMPL_LARGE_OFF_NS, __ATOMIC_RELAXED);
        if (to > from)
            (void)madvise((void *)from, (size_t)(to - from), MADV_NOHUGEPAGE);
    }
#else
    (void)now_ns;
#endif
}

/* ---- a bell ---- */

/* What one thread rings and another waits for, as a descriptor that becomes readable. It is rung any
 * number of times, and heard once. On Linux both ends are one descriptor. */
struct tame_impl_bell {
    int wait, ring; /* -1: there is none */
};

/* Returns 0 where the system has no descriptor left. */
static inline int tame_impl_os_bell_open(struct tame_impl_bell *bell)
{
#ifdef __linux__
    bell->wait = bell->ring = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return bell->wait >= 0;
#else
    int ends[2];

    bell->wait = bell->ring = -1;
    if (pipe(ends) != 0)
        return 0;
    for (int i = 0; i < 2; i++) {
        (void)fcntl(ends[i], F_SETFL, O_NONBLOCK);
        (void)fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    }
    bell->wait = ends[0];
    bell->ring = ends[1];
    return 1;
#endif
}

/* A bell that is full has been rung. */
static inline void tame_impl_os_bell_ring(const struct tame_impl_bell *bell)
{
    const uint64_t one = 1;
    const ssize_t written = write(bell->ring, &one, sizeof one);

    (void)written;
}

static inline void tame_impl_os_bell_hear(const struct tame_impl_bell *bell)
{
    uint64_t rung[64];
    ssize_t size;

    do
        size = read(bell->wait, rung, sizeof rung);
    while (size == (ssize_t)sizeof rung);
}

static inline void tame_impl_os_bell_close(const struct tame_impl_bell *bell)
{
    if (bell->ring != bell->wait)
        (void)close(bell->ring);
    if (bell->wait >= 0)
        (void)close(bell->wait);
}

/* ---- what files of the system say ---- */

/* The first line of a file; empty when there is none. */
static inline void tame_impl_os_line(const char *path, char *line, int size)
{
    FILE *file = fopen(path, "re");

    line[0] = '\0';
    if (file == NULL)
        return;
    if (fgets(line, size, file) == NULL)
        line[0] = '\0';
    (void)fclose(file);
    line[strcspn(line, "\n")] = '\0';
}

/* What the system's clock is made of; empty where that is not known. `root` is "", or in a test the
 * folder that stands for "/". Reads a file: from load, not from a call. */
static inline void tame_impl_os_clock_source(const char *root, char *line, int size)
{
    char path[1024];

    (void)snprintf(path, sizeof path,
                   "%s/sys/devices/system/clocksource/clocksource0/current_clocksource", root);
    tame_impl_os_line(path, line, size);
}

/* ---- the CPU quota of a container (cgroup v2) ---- */

/* The CPUs that the text of a cpu.max allows, "200000 100000": 2, rounded up; 0: any number. */
static inline uint32_t tame_impl_os_quota(const char *text)
{
    char *end;
    const unsigned long quota = strtoul(text, &end, 10);
    const unsigned long period = end == text ? 0 : strtoul(end, NULL, 10);

    return end == text || period == 0 || quota == 0 ? 0 : (uint32_t)((quota + period - 1) / period);
}

/* The CPUs that the group of this process, and each group above it, leaves it; 0: not limited. `root`
 * is "", or in a test the folder that stands for "/". Reads files: from load, not from a call. */
static inline uint32_t tame_impl_os_cpus(const char *root)
{
    uint32_t cpus = 0;
    char group[1024], path[1536], line[128];
    const char *name;

    (void)snprintf(path, sizeof path, "%s/proc/self/cgroup", root);
    tame_impl_os_line(path, group, (int)sizeof group);
    name = strncmp(group, "0::", 3) == 0 ? group + 3 : "";
    for (size_t len = strlen(name);; len--) {
        uint32_t here;

        while (len > 0 && name[len - 1] == '/')
            len--;
        (void)snprintf(path, sizeof path, "%s/sys/fs/cgroup%.*s/cpu.max", root, (int)len, name);
        tame_impl_os_line(path, line, (int)sizeof line);
        here = tame_impl_os_quota(line);
        if (here > 0 && (cpus == 0 || here < cpus))
            cpus = here;
        while (len > 0 && name[len - 1] != '/')
            len--;
        if (len == 0)
            return cpus;
    }
}

#endif
