/* The record of a crash, see crash.h.
 *
 * The handler calls nothing that takes memory or a lock of stdio's. os_backtrace and dladdr are not on
 * the list of functions that a handler may call: the first is safe once its library is loaded,
 * which crash_catch sees to; both may wait for the dynamic linker's lock, or fault on a stack that
 * is damaged. So a time limit ends the process, and so does a second fault, in each case by the
 * first signal.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "life/crash.h"
#include "life/limits.h"
#include "life/thread.h"
#include "memory/die.h"
#include "memory/name.h"
#include "os/os.h"
#include "port/port.h"

#define FRAMES_MAX 64

/* How long the handler may take. */
#define CRASH_S 3

static struct {
    struct crash_record *record; /* NULL: nobody reads it (a probe) */
    int pid;                     /* whose end it tells of: not of a child that the library forked */
    _Atomic(void *) thread;      /* host_thread of the one that writes it; NULL: none */
    pthread_key_t stack;         /* a thread's own stack for signals */
} crash;

static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};

struct crash_record *crash_record_new(void)
{
    void *memory = mmap(NULL, sizeof(struct crash_record), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    if (memory == MAP_FAILED)
        host_die("no memory for the record of a crash");
    return memory;
}

/* ---- ending --------------------------------------------------------------------------- */

static void by_default(int number)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    sigaction(number, &action, NULL);
}

__attribute__((noreturn)) static void end_at_once(int number)
{
    sigset_t set;

    by_default(number);
    sigemptyset(&set);
    sigaddset(&set, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    _exit(128 + number); /* not reached */
}

static void took_too_long(int number)
{
    (void)number;
    end_at_once(crash.record->signal);
}

static void limit_time(void)
{
    struct sigaction action = {.sa_handler = took_too_long};
    struct itimerval limit = {.it_value = {.tv_sec = CRASH_S}};
    sigset_t set;

    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    setitimer(ITIMER_REAL, &limit, NULL);
}

/* ---- the text ------------------------------------------------------------------------- */

/* One line under way; what does not fit is left out. */
struct line {
    char text[512];
    unsigned len;
};

static void put(struct line *line, const char *text)
{
    while (*text != '\0' && line->len < sizeof line->text)
        line->text[line->len++] = *text++;
}

static void put_hex(struct line *line, uintptr_t value)
{
    char digits[2 * sizeof value + 1];
    size_t at = sizeof digits - 1;

    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[value & 15];
        value >>= 4;
    } while (value != 0);
    put(line, "0x");
    put(line, digits + at);
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash == NULL ? path : slash + 1;
}

static void put_frame(struct crash_record *record, void *address)
{
    struct line line = {.len = 0};
    Dl_info info;

    if (dladdr(address, &info) != 0 && info.dli_fname != NULL) {
        const char *symbol = info.dli_sname;
        void *base = symbol == NULL ? info.dli_fbase : info.dli_saddr;
        put(&line, base_name(info.dli_fname));
        put(&line, "(");
        put(&line, symbol == NULL ? "" : symbol);
        put(&line, "+");
        put_hex(&line, (uintptr_t)address - (uintptr_t)base);
        put(&line, ") ");
    }
    put(&line, "[");
    put_hex(&line, (uintptr_t)address);
    put(&line, "]");
    if (line.len == sizeof line.text)
        line.len--;
    line.text[line.len++] = '\n';

    unsigned len = record->backtrace_len;
    if (line.len > sizeof record->backtrace - len)
        return;
    memcpy(record->backtrace + len, line.text, line.len);
    record->backtrace_len = len + line.len;
}

static void write_backtrace(struct crash_record *record, const void *context)
{
    void *frames[FRAMES_MAX], *place = os_fault_place(context);
    int len = os_backtrace(frames, FRAMES_MAX), first = 0;

    /* Up to the place of the fault they are the handler's own. */
    while (first < len && frames[first] != place)
        first++;
    if (first == len) { /* no code that can be walked from */
        put_frame(record, place);
        put_frame(record, os_fault_caller(context));
        first = len < 2 ? len : 2;
    }
    for (int i = first; i < len; i++)
        put_frame(record, frames[i]);
}

/* ---- the handler ---------------------------------------------------------------------- */

static void write_record(struct crash_record *record, int number, const siginfo_t *info,
                         const void *context)
{
    const ErlNifFunc *function = host_thread.function;

    /* Only a fault has an address, not a signal that was sent. */
    if (info->si_code > 0 &&
        (number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL))
        record->address = (uint64_t)(uintptr_t)info->si_addr;
    record->signal = number;
    if (function != NULL) {
        record->arity = function->arity;
        (void)latin1_to_utf8((const unsigned char *)function->name,
                             strnlen(function->name, CRASH_FUNCTION_MAX / 2),
                             (unsigned char *)record->function);
    }
    write_backtrace(record, context);
}

static void on_signal(int number, siginfo_t *info, void *context)
{
    void *self = &host_thread, *first = NULL;

    limits_note(); /* first: it looks at errno */
    if (getpid() != crash.pid) {
        /* A child that the library has forked: its end is the library's business. */
    } else if (atomic_compare_exchange_strong(&crash.thread, &first, self)) {
        limit_time();
        write_record(crash.record, number, info, context);
    } else if (first == self) {
        end_at_once(crash.record->signal); /* what was written before it faulted stays */
    } else {
        /* Another thread was first, and ends the process in a moment. */
        struct timespec wait = {.tv_sec = CRASH_S};
        nanosleep(&wait, NULL);
    }
    /* Blocked while this handler runs, and so delivered where the fault was: that is what a core
     * dump shows. */
    by_default(number);
    raise(number);
}

/* ---- watching ------------------------------------------------------------------------- */

void *crash_stack_new(void)
{
    if (crash.record == NULL)
        return NULL;
    /* The caller's; then the thread's, until it ends. */
    void *stack =
        mmap(NULL, CRASH_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return stack == MAP_FAILED ? NULL : stack;
}

void crash_stack_free(void *stack)
{
    if (stack != NULL)
        munmap(stack, CRASH_STACK_BYTES);
}

static void give_back_stack(void *stack)
{
    stack_t none = {.ss_flags = SS_DISABLE};

    sigaltstack(&none, NULL);
    crash_stack_free(stack);
}

void crash_watch_thread_on(void *stack)
{
    const stack_t used = {.ss_sp = stack, .ss_size = CRASH_STACK_BYTES};

    if (stack != NULL &&
        (sigaltstack(&used, NULL) < 0 || pthread_setspecific(crash.stack, stack) != 0))
        give_back_stack(stack);
}

void crash_watch_thread(void)
{
    crash_watch_thread_on(crash_stack_new());
}

void crash_catch(struct crash_record *record)
{
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    void *frame;

    (void)os_backtrace(&frame, 1); /* loads what it needs, which a handler must not */
    pthread_key_create(&crash.stack, give_back_stack);
    crash.record = record;
    port.torn = &record->writing_frame;
    crash.pid = getpid();
    crash_watch_thread();
    for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
        sigaction(caught[i], &action, NULL);
}
