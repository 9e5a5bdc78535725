/* os.h - what tame_host and the ring need of an operating system beyond POSIX.
 *
 * linux.c has it, and all that is Linux's alone is in there. other.c is for every other system: it
 * compiles, and refuses. A port begins there, and is done when os_refusal returns NULL and the
 * tests of test/host and test/ring pass. */
#ifndef TAME_RUNTIME_OS_H
#define TAME_RUNTIME_OS_H

#include "bits.h"

#include <poll.h>
#include <signal.h>
#include <stdint.h>

/* NULL where a host can run; else a sentence that says why it cannot. */
const char *os_refusal(void);

/* ---- memory that a host shares with its VM ---------------------------------------------- */

/* A file of that many bytes in memory, zeroed, without a name; nobody can change its size. Returns
 * its descriptor, the caller's, or -1 with errno. */
int os_shared_create(uint64_t bytes);

/* Opens once more the file in memory, as os_shared_create makes it, that another process has open as
 * fd; no other file is opened. Returns a descriptor, the caller's, or -1. */
int os_shared_open(int64_t os_pid, int64_t fd);

/* Whether no access to a mapping of the file can fail: it is in memory, and its size is fixed. */
int os_shared_is_fixed(int file);

/* Maps a file whole, to be read and written, and kept out of core dumps. Pages are taken as they
 * are needed. NULL with errno; munmap undoes it. */
void *os_shared_map(int file, uint64_t bytes);

/* Gives whole pages of a shared mapping back to the system. They read as zeros then, for everybody.
 * Best effort. */
void os_shared_give_back(void *place, uint64_t bytes);

/* Sleeps until os_wake is called for the word, unless it holds another value than `read`; at most
 * timeout_ms, or without end when that is negative. May return early for no reason. Returns 0 when
 * the time is over. Works between processes that share the word. */
int os_wait(uint32_t *word, uint32_t read, int timeout_ms);
void os_wake(uint32_t *word, int sleepers);

/* ---- processes -------------------------------------------------------------------------- */

/* What ps shows; at most 15 bytes are kept. */
void os_name_process(const char *name);

/* The calling process is killed when the thread that forked it ends. The caller asks
 * getppid() afterwards: the parent may have gone just before. */
void os_end_with_parent(void);

/* From here on a process below the calling one whose parent ends becomes the caller's child. */
void os_adopt(void);

/* Kills the caller's children, and collects them until there are none, at most for that long; those
 * of another user stay. */
void os_end_children(int timeout_ms);

/* The calling process, if it is stopped, goes on when the thread that forked it ends. */
void os_continue_with_parent(void);

/* ---- bounds ----------------------------------------------------------------------------- */

/* Memory that the calling process may take beyond what it has: bytes of writable memory that no
 * other process shares, whether it touches them or not. `later` is how much os_limit_memory_more may
 * add. 0, or -1 with errno: EPERM where the system allows less, ENOTSUP where it would not see to
 * it. */
int os_limit_memory(uint64_t bytes, uint64_t later);
int os_limit_memory_more(uint64_t bytes);

/* The CPUs that the calling thread may run on, the lowest first: how many there are; up to
 * max are written; -1 with errno. */
int os_cpus(unsigned *cpus, int max);

/* The CPU that the calling thread is on, which may be another one already; OS_CPU_UNKNOWN, at most
 * that, where the system does not say it in some ns. */
#define OS_CPU_UNKNOWN 0xffffu
unsigned os_cpu(void);

/* The calling thread goes to another of the CPUs that it may run on, and may come back later. 0, or
 * -1 where there is no other. Some us. */
int os_leave_cpu(unsigned cpu);

/* The calling thread, and what it starts, runs on these CPUs alone. 0, or -1 with errno: EINVAL where
 * one of them is not there, or not allowed. */
int os_limit_cpus(const unsigned *cpus, int len);

/* ---- descriptors ------------------------------------------------------------------------ */

/* A pipe whose ends no program that is started inherits. 0, or -1 with errno. */
int os_pipe(int ends[2]);

/* poll without end, under another signal mask: a signal that it lets through ends it, also one that
 * came just before. */
int os_poll(struct pollfd *fds, nfds_t len, const sigset_t *mask);

/* A set of descriptors whose readiness a thread waits for; a descriptor itself, the caller's. -1
 * with errno. */
int os_ready_open(void);

/* What a descriptor is waited for, and what it is; OS_READY_ERROR comes unasked. */
#define OS_READY_READ 1
#define OS_READY_WRITE 2
#define OS_READY_ERROR 4

/* Has fd waited for, until it was ready once; known: whether it is in the set. mark comes back with
 * it. Returns 0, or an error number: EPERM for a file that is always ready. */
int os_ready_wait_for(int set, int fd, int events, uint32_t mark, int known);
void os_ready_forget(int set, int fd);

struct os_ready {
    int fd, events;
    uint32_t mark;
};

/* Waits without end for the next. */
void os_ready_next(int set, struct os_ready *ready);

/* Closes all descriptors but standard input, output and error, and these two. */
void os_close_all_but(int one, int other);

/* A second opening of what fd refers to, for writing without waiting; -1 where that cannot be had,
 * as of a socket. */
int os_reopen(int fd);

/* ---- signals ---------------------------------------------------------------------------- */

/* "SEGV" for SIGSEGV; NULL for a number that is no signal. */
const char *os_signal_name(int number);

/* "ENOENT" for ENOENT; NULL for a number that is no error. */
const char *os_errno_name(int number);

/* The return addresses of the calling thread, newest first; how many there are. A handler of a
 * signal may call it when it has been called before. */
int os_backtrace(void **frames, int max);

/* Of a signal handler's third argument: where the fault was, and where a call that led to no code
 * came from. NULL: not known on this processor. */
void *os_fault_place(const void *context);
void *os_fault_caller(const void *context);

#endif
