/* Crashes and hangs. The VM would not survive most of them, so they run in a host only. */
#include "contract.h"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Its name stands in a backtrace: it is exported. */
int contract_faults(volatile int *place);

__attribute__((noinline, visibility("default"))) int contract_faults(volatile int *place)
{
    *place = 1;
    return 2 * *place; /* so that it is no tail of its caller */
}

CASE(crash_segv)
{
    return (term)contract_faults((volatile int *)8) + 1;
}

static term never(void)
{
    for (;;)
        pause();
    return 0;
}

static void *fault_main(void *arg)
{
    (void)contract_faults(arg);
    return arg;
}

/* A thread of the library's own faults, while no call runs on it. */
CASE(crash_thread)
{
    char name[] = "faults";
    ErlNifTid tid;

    enif_thread_create(name, &tid, fault_main, (void *)8, NULL);
    return never();
}

static void *overflow_main(void *arg)
{
    volatile char frame[4096];
    frame[0] = 1;
    return arg == NULL ? NULL : (char *)overflow_main(arg) + frame[0];
}

CASE(crash_thread_stack)
{
    char name[] = "overflows";
    ErlNifTid tid;

    enif_thread_create(name, &tid, overflow_main, (void *)8, NULL);
    return never();
}

/* Threads that fault at the same time. */
CASE(crash_many)
{
    char name[] = "faults";
    ErlNifTid tid;

    for (int i = 0; i < 20; i++)
        enif_thread_create(name, &tid, fault_main, (void *)8, NULL);
    return never();
}

/* The stack pointer points to nothing: a walk over the stack faults as well. */
CASE(crash_without_stack)
{
#if defined(__x86_64__)
    __asm__ volatile("mov $16, %%rsp\n mov $16, %%rbp\n push %%rax" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x9, #16\n mov sp, x9\n mov x29, x9\n str x9, [sp]" ::: "memory");
#endif
    raise(SIGSEGV);
    return 0;
}

/* A call of what is no code. */
CASE(crash_jump)
{
    term (*volatile nowhere)(ErlNifEnv *) = NULL;
    return nowhere(env) + 1;
}

CASE(crash_kill)
{
    raise(SIGKILL);
    return 0;
}

/* A child that the library forks dies of a signal: that is no crash of the host's. */
CASE(crash_of_child)
{
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        (void)contract_faults((volatile int *)8);
    waitpid(child, &status, 0);
    return enif_make_int(env, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* The memory that host and guard share, filled with what no host would write; life/crash.h
 * has its layout: signal, address, writing_frame. */
CASE(forge_record)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to;
    int found = 0;

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "rw-s") == NULL || strstr(line, "/dev/zero") == NULL ||
            sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        memset((void *)from, 0xff, to - from);
        *(int *)from = SIGKILL;
        *(int *)(from + 16) = 0;
        found = 1;
    }
    raise(found ? SIGKILL : SIGTERM);
    return 0;
}

CASE(crash_fpe)
{
    volatile int zero = 0;
    return (term)(7 / zero); /* of 1, gcc makes a comparison */
}

CASE(crash_abort)
{
    abort();
}

CASE(crash_exit)
{
    exit(23);
}

CASE(crash_stack)
{
    volatile char frame[4096];
    frame[0] = 1;
    return argc < 0 ? 0 : case_crash_stack(env, argc, argv) + (term)frame[0];
}

CASE(hang_with_signals_blocked)
{
    sigset_t every;

    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, NULL);
    for (volatile unsigned i = 0; i < 1; i &= 0) {
    }
    return 0;
}

CASE(hang_until_cancelled)
{
    while (enif_is_current_process_alive(env) && !enif_consume_timeslice(env, 1)) {
    }
    return enif_make_atom(env, "cancelled");
}
