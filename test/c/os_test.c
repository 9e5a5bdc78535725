/* tame/os.h: the CPU quota of a container, from files that stand for the system's; large pages; a
 * thread's turns; a bell. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <tame/os.h>
#include <unistd.h>

static char root[] = "/tmp/tame_os_test_XXXXXX";

static void put(const char *name, const char *text)
{
    char path[256];
    FILE *file;

    (void)snprintf(path, sizeof path, "%s%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; slash++) {
        *slash = '\0';
        (void)mkdir(path, 0700);
        *slash = '/';
    }
    file = fopen(path, "w");
    if (file == NULL)
        abort();
    (void)fputs(text, file);
    (void)fclose(file);
}

static void a_quota_is_rounded_up_to_cpus(void)
{
    CHECK_EQ(tame_impl_os_quota("200000 100000\n"), 2);
    CHECK_EQ(tame_impl_os_quota("150000 100000\n"), 2);
    CHECK_EQ(tame_impl_os_quota("1000 100000"), 1);
    CHECK_EQ(tame_impl_os_quota("max 100000\n"), 0);
    CHECK_EQ(tame_impl_os_quota(""), 0);
    CHECK_EQ(tame_impl_os_quota("5"), 0);
    CHECK_EQ(tame_impl_os_quota("0 0"), 0);
}

static void no_files_no_limit(void)
{
    CHECK_EQ(tame_impl_os_cpus(root), 0);
}

static void the_narrowest_group_above_the_process_counts(void)
{
    put("/proc/self/cgroup", "0::/pod/box\n");
    put("/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
    CHECK_EQ(tame_impl_os_cpus(root), 0);
    put("/sys/fs/cgroup/pod/cpu.max", "300000 100000\n");
    CHECK_EQ(tame_impl_os_cpus(root), 3);
    put("/sys/fs/cgroup/pod/box/cpu.max", "400000 100000\n");
    CHECK_EQ(tame_impl_os_cpus(root), 3);
    put("/sys/fs/cgroup/pod/box/cpu.max", "200000 100000\n");
    CHECK_EQ(tame_impl_os_cpus(root), 2);
}

static void the_clocks_source_is_known_where_the_system_says_it(void)
{
    char source[64];

    tame_impl_os_clock_source(root, source, (int)sizeof source);
    CHECK_EQ(strcmp(source, ""), 0);
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet\n");
    tame_impl_os_clock_source(root, source, (int)sizeof source);
    CHECK_EQ(strcmp(source, "hpet"), 0);
}

static void in_a_container_the_group_is_the_root(void)
{
    put("/proc/self/cgroup", "0::/\n");
    put("/sys/fs/cgroup/cpu.max", "100000 100000\n");
    CHECK_EQ(tame_impl_os_cpus(root), 1);
}

static void large_pages_are_no_more_than_a_wish(void)
{
    unsigned char *memory = (unsigned char *)malloc(2 * TAME_IMPL_LARGE_BYTES);

    if (memory == NULL)
        abort();
    memset(memory, 7, 2 * TAME_IMPL_LARGE_BYTES);
    tame_impl_os_large_pages(memory, 2 * TAME_IMPL_LARGE_BYTES, 1);
    CHECK_EQ(memory[2 * TAME_IMPL_LARGE_BYTES - 1], 7);
    free(memory);
}

#ifdef __linux__
/* Whether /proc says this of the mapping with that address: hg, large pages are asked for; nh, they
 * are not wanted. */
static int flagged(const void *address, const char *flag)
{
    FILE *file = fopen("/proc/self/smaps", "r");
    char line[512];
    int here = 0, found = 0;

    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        unsigned long from, to;

        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            here = from <= (unsigned long)address && (unsigned long)address < to;
        else if (here && strncmp(line, "VmFlags:", 8) == 0)
            found = strstr(line, flag) != NULL;
    }
    if (file != NULL)
        (void)fclose(file);
    return found;
}

static void large_pages_that_were_slow_are_not_asked_for_for_a_minute(void)
{
    const size_t size = 2 * TAME_IMPL_LARGE_BYTES;
    const uint64_t now_ns = 5;
    unsigned char *memory[3];

    for (int i = 0; i < 3; i++) {
        memory[i] = (unsigned char *)mmap(NULL, size, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[i] == MAP_FAILED)
            abort();
        /* Apart from the next. */
        CHECK_EQ(mprotect(memory[i], 4096, PROT_READ), 0);
    }
    memset(&tame_impl_large, 0, sizeof tame_impl_large);
    tame_impl_os_large_pages_late(now_ns); /* something else was slow */
    tame_impl_os_large_pages(memory[0], size, now_ns);
    if (flagged(memory[0] + size / 2, " hg")) { /* a system that has them, and says so */
        tame_impl_os_large_pages_late(now_ns);
        CHECK_EQ(flagged(memory[0] + size / 2, " nh"), 1);
        tame_impl_os_large_pages(memory[1], size, now_ns + TAME_IMPL_LARGE_OFF_NS - 1);
        CHECK_EQ(flagged(memory[1] + size / 2, " hg"), 0);
        tame_impl_os_large_pages(memory[2], size, now_ns + TAME_IMPL_LARGE_OFF_NS);
        CHECK_EQ(flagged(memory[2] + size / 2, " hg"), 1);
    }
    for (int i = 0; i < 3; i++)
        CHECK_EQ(munmap(memory[i], size), 0);
}
#endif

/* What Linux knows of how the calling thread is scheduled; zeros elsewhere. */
static void scheduling(uint64_t words[7])
{
    memset(words, 0, 7 * sizeof *words);
#if defined(__linux__) && defined(SYS_sched_getattr)
    CHECK_EQ(syscall(SYS_sched_getattr, 0L, words, 7 * sizeof *words, 0UL), 0);
#endif
}

static void a_thread_that_gave_way_is_as_it_was(void)
{
    uint64_t before[7], meanwhile[7], after[7];
    int gave_way;

    scheduling(before);
    gave_way = tame_impl_os_give_way(1);
    scheduling(meanwhile);
    CHECK_EQ(tame_impl_os_give_way(0), gave_way);
    scheduling(after);
    CHECK_EQ(memcmp(before, after, sizeof before), 0);
    /* The fourth word is the length of its turns, where the system has such. */
    if (before[3] != 0 && gave_way)
        CHECK_EQ(meanwhile[3], TAME_IMPL_OS_TURN_NS);
}

/* Whether it can be heard; `rings` times rung before. */
static int is_rung(const struct tame_impl_bell *bell, int rings)
{
    struct pollfd waits = {.fd = bell->wait, .events = POLLIN};

    for (int i = 0; i < rings; i++)
        tame_impl_os_bell_ring(bell);
    return poll(&waits, 1, 0);
}

static void a_bell_is_rung_any_number_of_times_and_heard_once(void)
{
    struct tame_impl_bell bell;

    CHECK_EQ(tame_impl_os_bell_open(&bell), 1);
    CHECK_EQ(is_rung(&bell, 0), 0);
    for (int rings = 1; rings <= 100000; rings *= 10) {
        CHECK_EQ(is_rung(&bell, rings), 1);
        tame_impl_os_bell_hear(&bell);
        CHECK_EQ(is_rung(&bell, 0), 0);
    }
    tame_impl_os_bell_hear(&bell); /* does not block */
    tame_impl_os_bell_close(&bell);
    CHECK_EQ(fcntl(bell.wait, F_GETFD), -1);
}

int main(void)
{
    char remove[64];

    if (mkdtemp(root) == NULL)
        return 1;
    RUN(a_quota_is_rounded_up_to_cpus);
    RUN(no_files_no_limit);
    RUN(the_narrowest_group_above_the_process_counts);
    RUN(the_clocks_source_is_known_where_the_system_says_it);
    RUN(in_a_container_the_group_is_the_root);
    RUN(large_pages_are_no_more_than_a_wish);
#ifdef __linux__
    RUN(large_pages_that_were_slow_are_not_asked_for_for_a_minute);
#endif
    RUN(a_thread_that_gave_way_is_as_it_was);
    RUN(a_bell_is_rung_any_number_of_times_and_heard_once);
    (void)snprintf(remove, sizeof remove, "rm -rf %s", root);
    return system(remove) != 0 ? 1 : check_report();
}
