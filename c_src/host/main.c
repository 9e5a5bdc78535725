/* tame_host: runs a NIF library outside the VM. See usage below, and README.md for the frames. */
#include <errno.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life/api.h"
#include "life/control.h"
#include "life/crash.h"
#include "life/guard.h"
#include "life/host.h"
#include "life/limits.h"
#include "life/probe.h"
#include "life/worker.h"
#include "memory/die.h"
#include "os/os.h"
#include "port/port.h"

#define WORKERS_DEFAULT 2
#define WORKERS_MAX 1024

static const char usage[] =
    "tame_host runs an unmodified NIF library in an OS process of its own.\n"
    "\n"
    "    tame_host --probe FILE...    prints each library's entry as a line of JSON, and exits 0\n"
    "    tame_host --api              prints which functions of erl_nif it provides, as Markdown\n"
    "    tame_host --help             prints this\n"
    "    tame_host [OPTION VALUE]...  serves the VM that started it, by frames on descriptors 3 "
    "and 4\n"
    "                                 (a port with nouse_stdio and {packet, 4}); ends when they "
    "close\n"
    "\n"
    "    --workers N                  how many calls of the control port may run at once, 1 to "
    "1024\n"
    "                                 (default: 2)\n"
    "    --memory-mb N                what its library may take: memory beyond the host's own,\n"
    "    --cpu-seconds N              CPU time of the process,\n"
    "    --open-files N               open files beyond the host's own,\n"
    "    --threads N                  threads beyond the host's own\n"
    "    --nice N                     its priority, -20 to 19\n"
    "    --cpus N, --cpu-list N,N...  the first N CPUs of the VM's, or these\n"
    "\n"
    "Exit status: 0 asked to stop, or the VM is gone; 2 wrong command line, or not this system; "
    "70\n"
    "something that must not be, said in one line on standard error; 128 + N the library died of\n"
    "signal N.\n";

static int wrong_usage(const char *what, const char *value)
{
    fprintf(stderr, "tame_host: %s: %s\n\n%s", what, value, usage);
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

static int serve(int workers)
{
    char refusal[512];

    if (port_open() < 0) {
        fprintf(stderr,
                "tame_host: cannot use descriptors 3 and 4: %s. It is started by a VM; see %s\n",
                strerror(errno), "tame_host --help");
        return 2;
    }
    signal(SIGPIPE, SIG_IGN); /* a VM that is gone is a return value of write() */
    struct crash_record *record = guard_split(port.in, port.out);
    crash_catch(record);
    if (port_close_in_children() != 0)
        host_die("no memory to begin");
    if (limits_apply(&record->limit, refusal, sizeof refusal) < 0)
        control_refuse("limit", refusal);
    worker_start(workers);
    control_hello();
    control_read();
}

/* NULL, or what was expected. */
static const char *workers_option(const char *value, int *workers)
{
    char *end;
    long number = strtol(value, &end, 10);

    if (end == value || *end != '\0' || number < 1 || number > WORKERS_MAX)
        return "--workers takes a number from 1 to 1024, not";
    *workers = (int)number;
    return NULL;
}

int main(int argc, char **argv)
{
    int workers = WORKERS_DEFAULT;

    if (os_refusal() != NULL) {
        fprintf(stderr, "tame_host: %s\n", os_refusal());
        return 2;
    }
    host_init();
    /* As the VM does: what a library's C functions take a text for depends on it. */
    setlocale(LC_CTYPE, "");
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
        const char *value = i + 1 < argc ? argv[i + 1] : "nothing";
        const char *expected = strcmp(argv[i], "--workers") == 0 ? workers_option(value, &workers)
                                                                 : limits_option(argv[i], value);
        if (expected == limits_unknown)
            return wrong_usage("unknown argument", argv[i]);
        if (expected != NULL)
            return wrong_usage(expected, value);
    }
    return serve(workers);
}
