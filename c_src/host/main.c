/* tame_host: runs a NIF library outside the VM. See usage below, and README.md for the frames. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "control.h"
#include "guard.h"
#include "host.h"
#include "probe.h"
#include "ring_calls.h"
#include "worker.h"

#define WORKERS_DEFAULT 2
#define WORKERS_MAX 1024

static const char usage[] =
    "tame_host runs an unmodified NIF library in an OS process of its own.\n"
    "\n"
    "    tame_host --probe FILE...    prints each library's entry as a line of JSON, and exits 0\n"
    "    tame_host --api              prints which functions of erl_nif it provides, as Markdown\n"
    "    tame_host --help             prints this\n"
    "    tame_host [OPTION N]...      serves the VM that started it, by frames on descriptors 3 "
    "and 4\n"
    "                                 (a port with nouse_stdio and {packet, 4}); ends when they "
    "close\n"
    "\n"
    "    --workers N                  how many calls may run at once, 1 to 1024 (default: 2)\n"
    "    --slots N                    calls that the shared memory holds at once, 1 to 1024 "
    "(default:\n"
    "                                 64)\n"
    "    --slot-bytes N               of each; what is larger takes a way through one of two "
    "areas: a\n"
    "                                 power of two from 4096 to 65536 (default: 16384)\n"
    "    --area-bytes N               of each area, taken as they are needed: a multiple of 4096 "
    "up to\n"
    "                                 68719476736 (default: 1073741824)\n"
    "\n"
    "Exit status: 0 asked to stop, or the VM is gone; 2 wrong command line; 70 something that must "
    "not\n"
    "be, said in one line on standard error; 128 + N the library died of signal N.\n";

static int wrong_usage(const char *what, const char *value)
{
    fprintf(stderr, "tame_host: %s: %s; see tame_host --help\n", what, value);
    return 2;
}

static int probe_all(int count, char **paths)
{
    if (count == 0)
        return wrong_usage("expected a file after", "--probe");
    for (int i = 0; i < count; i++)
        probe_print(paths[i]);
    return ferror(stdout) ? 1 : 0;
}

static int serve(const struct ring_geometry *geometry)
{
    if (control_open() < 0) {
        fprintf(stderr,
                "tame_host: cannot use descriptors 3 and 4: %s. It is started by a VM; see %s\n",
                strerror(errno), "tame_host --help");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* a VM that is gone is a return value of write() */
    guard_split(host.control.in, host.control.out);
    worker_start();
    control_hello(ring_calls_start(geometry));
    control_read();
}

static void set_workers(struct ring_geometry *geometry, unsigned long long number)
{
    (void)geometry;
    host.workers = (int)number;
}

static void set_slots(struct ring_geometry *geometry, unsigned long long number)
{
    geometry->slots = (uint32_t)number;
}

static void set_slot_bytes(struct ring_geometry *geometry, unsigned long long number)
{
    geometry->slot_bytes = (uint32_t)number;
}

static void set_area_bytes(struct ring_geometry *geometry, unsigned long long number)
{
    geometry->request_bytes = geometry->reply_bytes = number;
}

static const struct option {
    const char *name;
    unsigned long long least, most;
    int is_power;
    void (*set)(struct ring_geometry *geometry, unsigned long long number);
    const char *expected;
} options[] = {
    {"--workers", 1, WORKERS_MAX, 0, set_workers, "--workers takes a number from 1 to 1024, not"},
    {"--slots", 1, RING_SLOTS_MAX, 0, set_slots, "--slots takes a number from 1 to 1024, not"},
    {"--slot-bytes", RING_SLOT_BYTES_MIN, RING_SLOT_BYTES_MAX, 1, set_slot_bytes,
     "--slot-bytes takes a power of two from 4096 to 65536, not"},
    {"--area-bytes", RING_PAGE, RING_AREA_BYTES_MAX, 0, set_area_bytes,
     "--area-bytes takes a multiple of 4096 up to 68719476736, not"},
};

static const struct option *find_option(const char *name)
{
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        if (strcmp(options[i].name, name) == 0)
            return &options[i];
    }
    return NULL;
}

static int read_number(const char *text, unsigned long long least, unsigned long long most,
                       unsigned long long *number)
{
    char *end;

    *number = strtoull(text, &end, 10);
    return end != text && *end == '\0' && text[0] != '-' && *number >= least && *number <= most &&
           (least != RING_PAGE || most != RING_AREA_BYTES_MAX || *number % RING_PAGE == 0);
}

int main(int argc, char **argv)
{
    struct ring_geometry geometry = RING_GEOMETRY_DEFAULT;

    host_init();
    host.workers = WORKERS_DEFAULT;
    if (argc > 1 && strcmp(argv[1], "--probe") == 0)
        return probe_all(argc - 2, argv + 2);
    if (argc == 2 && strcmp(argv[1], "--api") == 0) {
        api_print_markdown(stdout);
        return 0;
    }
    if (argc == 2 && strcmp(argv[1], "--help") == 0) {
        fputs(usage, stdout);
        return 0;
    }
    for (int i = 1; i < argc; i += 2) {
        const struct option *option = find_option(argv[i]);
        unsigned long long number;

        if (option == NULL)
            return wrong_usage("unknown argument", argv[i]);
        if (i + 1 == argc)
            return wrong_usage("expected a number after", argv[i]);
        if (!read_number(argv[i + 1], option->least, option->most, &number))
            return wrong_usage(option->expected, argv[i + 1]);
        if (option->is_power && (number & (number - 1)) != 0)
            return wrong_usage(option->expected, argv[i + 1]);
        option->set(&geometry, number);
    }
    return serve(&geometry);
}
