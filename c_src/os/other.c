/* os.h on a system that tame has not been ported to. A host says so and ends before it does
 * anything (main.c), and the VM's end opens no ring, so nothing else in here is reached; what
 * cannot report a failure ends the process rather than do nothing. */
#ifndef __linux__

#include "os.h"

#include <errno.h>
#include <stdlib.h>

const char *os_refusal(void)
{
    return "isolation runs on Linux only: it needs futexes, sealed memory files and /proc";
}

static int refused(void)
{
    errno = ENOSYS;
    return -1;
}

/* ---- memory that a host shares with its VM ---------------------------------------------- */

int os_shared_create(uint64_t bytes)
{
    (void)bytes;
    return refused();
}

int os_shared_open(int64_t os_pid, int64_t fd)
{
    (void)os_pid;
    (void)fd;
    return refused();
}

int os_shared_is_fixed(int file)
{
    (void)file;
    return 0;
}

void *os_shared_map(int file, uint64_t bytes)
{
    (void)file;
    (void)bytes;
    (void)refused();
    return NULL;
}

void os_shared_give_back(void *place, uint64_t bytes)
{
    (void)place;
    (void)bytes;
    abort();
}

int os_wait(uint32_t *word, uint32_t read, int timeout_ms)
{
    (void)word;
    (void)read;
    (void)timeout_ms;
    abort();
}

void os_wake(uint32_t *word, int sleepers)
{
    (void)word;
    (void)sleepers;
    abort();
}

/* ---- processes -------------------------------------------------------------------------- */

void os_name_process(const char *name)
{
    (void)name;
    abort();
}

void os_end_with_parent(void)
{
    abort();
}

void os_adopt(void)
{
    abort();
}

void os_end_children(int timeout_ms)
{
    (void)timeout_ms;
    abort();
}

void os_continue_with_parent(void)
{
    abort();
}

/* ---- bounds ----------------------------------------------------------------------------- */

int os_limit_memory(uint64_t bytes, uint64_t later)
{
    (void)bytes;
    (void)later;
    return refused();
}

int os_limit_memory_more(uint64_t bytes)
{
    (void)bytes;
    return refused();
}

unsigned os_cpu(void)
{
    return OS_CPU_UNKNOWN;
}

int os_leave_cpu(unsigned cpu)
{
    (void)cpu;
    return -1;
}

int os_cpus(unsigned *cpus, int max)
{
    (void)cpus;
    (void)max;
    return refused();
}

int os_limit_cpus(const unsigned *cpus, int len)
{
    (void)cpus;
    (void)len;
    return refused();
}

/* ---- descriptors ------------------------------------------------------------------------ */

int os_pipe(int ends[2])
{
    (void)ends;
    return refused();
}

int os_poll(struct pollfd *fds, nfds_t len, const sigset_t *mask)
{
    (void)fds;
    (void)len;
    (void)mask;
    return refused();
}

int os_ready_open(void)
{
    return refused();
}

int os_ready_wait_for(int set, int fd, int events, uint32_t mark, int known)
{
    (void)set;
    (void)fd;
    (void)events;
    (void)mark;
    (void)known;
    return ENOSYS;
}

void os_ready_forget(int set, int fd)
{
    (void)set;
    (void)fd;
}

void os_ready_next(int set, struct os_ready *ready)
{
    (void)set;
    *ready = (struct os_ready){0};
}

void os_close_all_but(int one, int other)
{
    (void)one;
    (void)other;
    abort();
}

int os_reopen(int fd)
{
    (void)fd;
    return refused();
}

/* ---- signals ---------------------------------------------------------------------------- */

const char *os_signal_name(int number)
{
    (void)number;
    return NULL;
}

const char *os_errno_name(int number)
{
    (void)number;
    return NULL;
}

int os_backtrace(void **frames, int max)
{
    (void)frames;
    (void)max;
    return 0;
}

void *os_fault_place(const void *context)
{
    (void)context;
    return NULL;
}

void *os_fault_caller(const void *context)
{
    (void)context;
    return NULL;
}

#endif
