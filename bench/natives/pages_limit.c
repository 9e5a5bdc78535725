/* pages_limit - how fast this machine gives fresh memory to a program that is written for nothing else.
 *
 *     pages_limit MIB THREADS small|large      prints how many us it took to write MIB MiB of fresh
 *                                              memory once, and how many MiB lie on large pages
 *
 * No VM and no allocator: mmap, a wish for large pages or for none, and each thread writes a part of
 * its own. What tame.h does with an output cannot be faster than that with as many threads. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tame/clock.h"

enum { MIB_MAX = 4096, THREADS_MAX = 64 };

#define LARGE_PAGE ((size_t)2 << 20)

struct part {
    pthread_t thread;
    unsigned char *from;
    size_t size;
};

static void *fill(void *arg)
{
    const struct part *part = arg;

    memset(part->from, 0, part->size);
    return NULL;
}

/* Of what this process has on large pages, in MiB; -1 where the system does not say. */
static long large_mib(void)
{
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    char line[256];
    long kib = -1024;

    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "AnonHugePages:", 14) == 0)
            kib = strtol(line + 14, NULL, 10);
    if (file != NULL)
        (void)fclose(file);
    return kib / 1024;
}

static long whole(const char *text, long most)
{
    char *end;
    const long value = strtol(text, &end, 10);

    return *text != '\0' && *end == '\0' && value > 0 && value <= most ? value : -1;
}

int main(int argc, char **argv)
{
    const long mib = argc == 4 ? whole(argv[1], MIB_MAX) : -1;
    const long threads = argc == 4 ? whole(argv[2], THREADS_MAX) : -1;
    const int large = argc == 4 && strcmp(argv[3], "large") == 0;
    struct part parts[THREADS_MAX];
    unsigned char *memory;
    uint64_t start_ns;
    size_t size;

    if (mib < 0 || threads < 0 || (!large && strcmp(argv[3], "small") != 0)) {
        fprintf(stderr, "usage: pages_limit MIB THREADS small|large (1 to %d MiB, 1 to %d)\n",
                MIB_MAX, THREADS_MAX);
        return 2;
    }
    size = (size_t)mib << 20;

    /* Memory until the process ends. */
    memory =
        mmap(NULL, size + LARGE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("pages_limit: mmap");
        return 1;
    }
    memory += (LARGE_PAGE - (uintptr_t)memory % LARGE_PAGE) % LARGE_PAGE;

    start_ns = tame_now_ns();
#ifdef MADV_HUGEPAGE
    (void)madvise(memory, size, large ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
#endif
    for (long i = 0; i < threads; i++) {
        parts[i].from = memory + size / (size_t)threads * (size_t)i;
        parts[i].size =
            i + 1 < threads ? size / (size_t)threads : (size_t)(memory + size - parts[i].from);
        if (i > 0 && pthread_create(&parts[i].thread, NULL, fill, &parts[i]) != 0) {
            fprintf(stderr, "pages_limit: no thread\n");
            return 1;
        }
    }
    (void)fill(&parts[0]);
    for (long i = 1; i < threads; i++)
        (void)pthread_join(parts[i].thread, NULL);
    printf("%llu ", (unsigned long long)((tame_now_ns() - start_ns) / 1000));
    printf("%ld\n", large_mib());
    return 0;
}
