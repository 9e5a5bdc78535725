/* What a host leaves behind when it dies of a signal: a record in memory that it shares with its
 * guard, written by a handler of the signals that a fault raises, and read when the host is gone.
 *
 * The handler restores the default action then and raises the signal again, so that the exit status
 * and a core dump are what they would have been. A library that installs a handler of its own
 * replaces ours, and nothing is recorded.
 */
#ifndef TAME_HOST_CRASH_H
#define TAME_HOST_CRASH_H

#include <stdint.h>

/* 255 characters of Latin-1, as UTF-8. */
#define CRASH_FUNCTION_MAX 510
#define CRASH_BACKTRACE_MAX 8192

/* Of a thread's stack for the handler: enough for the kernel's frame with every register there is,
 * the unwinder's and ours. */
#define CRASH_STACK_BYTES (64u * 1024)

/* Written by the host, which may be damaged or hostile: the guard takes nothing in it for granted.
 */
struct crash_record {
    _Atomic int signal;        /* 0: none was caught */
    uint64_t address;          /* of the fault; 0: the signal has none */
    _Atomic int writing_frame; /* a frame of the control port may be half written */
    unsigned arity;
    _Atomic int limit;                     /* enum limit that the host had reached; 0: none */
    char function[CRASH_FUNCTION_MAX + 1]; /* that the VM had called on this thread, or "" */
    _Atomic unsigned backtrace_len;        /* grows line by line */
    char backtrace[CRASH_BACKTRACE_MAX];   /* newest first: library.so(symbol+0x12) [0x...] */
};

/* In the guard, before it forks: the memory of the record, zeroed; it stays for ever. */
struct crash_record *crash_record_new(void);

/* In the host: catches the signals from now on, and watches the calling thread. */
void crash_catch(struct crash_record *record);

/* Gives the calling thread a stack of its own for the handler, so that the overflow of its stack
 * can be recorded as well. It is given back when the thread ends. */
void crash_watch_thread(void);

/* The same in two steps: who makes a thread takes the stack, so that nobody else has the memory when
 * the thread begins. NULL where there is none, or nothing is caught: then a thread runs without. */
void *crash_stack_new(void);
void crash_stack_free(void *stack);
void crash_watch_thread_on(void *stack);

#endif
