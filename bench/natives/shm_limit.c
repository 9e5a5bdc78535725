/* shm_limit - what a call costs where there are only two processes and the memory that they share.
 *
 *     shm_limit BYTES CALLS      prints the median and the 99th percentile of a call in ns, and ends
 *
 * The caller copies BYTES in and says so; the other process, which spins, reads them, writes as many,
 * and says so; the caller, which spins, copies them out. No term, no table of slots, no system call:
 * no transport that copies can be faster on this machine. Each process may run on any core. */
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tame/clock.h"

enum { BYTES_MAX = 64 << 20, CALLS_MAX = 10 << 20, LINE = 64, WARM_UP = 100 };

/* Each side writes its own line only. */
struct shared {
    _Alignas(LINE) _Atomic uint32_t asked;
    _Alignas(LINE) _Atomic uint32_t answered;
    _Alignas(LINE) unsigned char data[];
};

/* Looks whether the other process lives now and then; it ends without that one. */
static void await(_Atomic uint32_t *word, uint32_t value, pid_t other)
{
    for (uint32_t i = 1; atomic_load_explicit(word, memory_order_acquire) != value; i++) {
        tame_impl_pause();
        if (i % (1 << 22) == 0 && getppid() != other && waitpid(other, NULL, WNOHANG) != 0)
            _exit(1);
    }
}

static void serve(struct shared *shared, size_t bytes, uint32_t calls, unsigned char *mine,
                  pid_t parent)
{
    for (uint32_t i = 1; i <= calls; i++) {
        await(&shared->asked, i, parent);
        memcpy(mine, shared->data, bytes);
        memcpy(shared->data, mine, bytes);
        atomic_store_explicit(&shared->answered, i, memory_order_release);
    }
}

static uint64_t call(struct shared *shared, size_t bytes, uint32_t number, unsigned char *mine,
                     pid_t child)
{
    const uint64_t start_ns = tame_now_ns();

    memcpy(shared->data, mine, bytes);
    atomic_store_explicit(&shared->asked, number, memory_order_release);
    await(&shared->answered, number, child);
    memcpy(mine, shared->data, bytes);
    return tame_now_ns() - start_ns;
}

static int compare(const void *a, const void *b)
{
    const uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

    return (left > right) - (left < right);
}

static long whole(const char *text, long most)
{
    char *end;
    const long value = strtol(text, &end, 10);

    return *text != '\0' && *end == '\0' && value > 0 && value <= most ? value : -1;
}

int main(int argc, char **argv)
{
    const long bytes = argc == 3 ? whole(argv[1], BYTES_MAX) : -1;
    const long calls = argc == 3 ? whole(argv[2], CALLS_MAX) : -1;

    if (bytes < 0 || calls < 0) {
        fprintf(stderr, "usage: shm_limit BYTES CALLS (1 to %d, 1 to %d)\n", BYTES_MAX, CALLS_MAX);
        return 2;
    }

    /* Memory until the process ends. */
    struct shared *shared = mmap(NULL, sizeof *shared + (size_t)bytes, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char *mine = malloc((size_t)bytes);
    uint64_t *ns = malloc((size_t)calls * sizeof *ns);
    const pid_t parent = getpid();

    if (shared == MAP_FAILED || mine == NULL || ns == NULL) {
        fprintf(stderr, "shm_limit: no memory\n");
        return 1;
    }
    memset(mine, 1, (size_t)bytes);

    const pid_t child = fork();

    if (child < 0) {
        perror("shm_limit: fork");
        return 1;
    }
    if (child == 0) {
        serve(shared, (size_t)bytes, (uint32_t)(WARM_UP + calls), mine, parent);
        _exit(0);
    }
    for (uint32_t i = 1; i <= WARM_UP; i++)
        (void)call(shared, (size_t)bytes, i, mine, child);
    for (uint32_t i = 0; i < (uint32_t)calls; i++)
        ns[i] = call(shared, (size_t)bytes, WARM_UP + 1 + i, mine, child);
    (void)waitpid(child, NULL, 0);
    qsort(ns, (size_t)calls, sizeof *ns, compare);
    printf("%llu %llu\n", (unsigned long long)ns[calls / 2],
           (unsigned long long)ns[calls - 1 - calls / 100]);
    return 0;
}
