/* Looking at a library, see probe.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "life/library.h"
#include "life/library_file.h"
#include "life/load.h"
#include "life/probe.h"
#include "life/resource_type.h"
#include "memory/alloc.h"
#include "memory/die.h"
#include "memory/name.h"
#include "os/os.h"
#include "term/term.h"

/* A constructor that hangs must not hang an audit of a thousand libraries. */
#define PROBE_MS 10000

/* How long its end may go unseen while something else holds its pipe; how much that holds. */
#define LOOK_MS 20
#define PIPE_SIZE 65536

/* For what it has left behind to end once it is killed. */
#define LEFT_MS 1000

/* Nor a load callback, which is called without its module. */
#define LOAD_S 2

/* ---- JSON ----------------------------------------------------------------------------- */

/* Bytes that are no ASCII go as they are when they make up UTF-8, else as U+FFFD. */
static void print_string(FILE *to, const char *text)
{
    if (text == NULL) {
        fputs("null", to);
        return;
    }
    fputc('"', to);
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        int more = *c < 0x80 ? 0 : *c >= 0xc2 && *c < 0xe0 ? 1 : *c >= 0xe0 && *c < 0xf0 ? 2 : -1;
        for (int i = 1; i <= more; i++) {
            if ((c[i] & 0xc0) != 0x80)
                more = -1;
        }
        if (more < 0) {
            fputs("\\ufffd", to);
        } else if (*c == '"' || *c == '\\') {
            fprintf(to, "\\%c", *c);
        } else if (*c < ' ') {
            fprintf(to, "\\u%04x", *c);
        } else {
            fwrite(c, 1, (size_t)more + 1, to);
            c += more;
        }
    }
    fputc('"', to);
}

/* The VM reads a library's names as Latin-1. */
static void print_name(FILE *to, const char *name)
{
    char *utf8 = name == NULL ? NULL : name_of_latin1(name);

    print_string(to, utf8);
    free(utf8);
}

static void print_strings(FILE *to, const char *key, const char **texts, size_t len)
{
    fprintf(to, ",\"%s\":[", key);
    for (size_t i = 0; i < len; i++) {
        if (i > 0)
            fputc(',', to);
        print_string(to, texts[i]);
    }
    fputc(']', to);
}

static void print_error(FILE *to, const char *reason, const char *text)
{
    fputs(",\"error\":{\"reason\":", to);
    print_string(to, reason);
    fputs(",\"text\":", to);
    print_string(to, text);
    fputc('}', to);
}

/* ---- in the child --------------------------------------------------------------------- */

/* The one that this child looks at. */
static struct library *probed;

static void print_entry(FILE *to)
{
    const ErlNifEntry *entry = probed->entry;

    fputs(",\"module\":", to);
    print_name(to, entry->name);
    fprintf(to, ",\"nif_version\":\"%d.%d\",\"min_erts\":", entry->major, entry->minor);
    print_string(to, entry->minor >= 14 ? entry->min_erts : NULL);
    fprintf(
        to,
        ",\"callbacks\":{\"load\":%s,\"reload\":%s,\"upgrade\":%s,\"unload\":%s},\"functions\":[",
        entry->load ? "true" : "false", entry->reload ? "true" : "false",
        entry->upgrade ? "true" : "false", entry->unload ? "true" : "false");
    for (int i = 0; i < entry->num_of_funcs; i++) {
        const ErlNifFunc *function = library_function(probed, i);
        fputs(i == 0 ? "{\"name\":" : ",{\"name\":", to);
        print_name(to, function->name);
        fprintf(to, ",\"arity\":%u,\"flags\":%u}", function->arity,
                library_flags(probed, function));
    }
    fputc(']', to);
}

/* Whether a type of resources has a destructor is an argument of a call that load makes. We do not
 * know with what its module would call it; a library that declines has said nothing of its
 * resources then. */
static void print_resources(FILE *to)
{
    ErlNifEntry *entry = probed->entry;
    const char *before = "";
    ErlNifEnv env;

    if (entry->load == NULL)
        return;
    env_init(&env, ENV_CALLBACK);
    env.library = probed;
    probed->loading = 1;
    (void)entry->load(&env, &probed->priv_data, make_small(0));
    fputs(",\"resources\":[", to);
    for (const struct resource_type *type = resource_types_first(); type != NULL;
         type = type->next) {
        fprintf(to, "%s{\"name\":", before);
        print_string(to, type->name);
        fprintf(to, ",\"destructor\":%s}", type->init.dtor != NULL ? "true" : "false");
        before = ",";
    }
    fputc(']', to);
}

static void write_all(int out, const char *text, size_t size)
{
    for (size_t pos = 0; pos < size;) {
        ssize_t n = write(out, text + pos, size - pos);
        if (n <= 0)
            break;
        pos += (size_t)n;
    }
}

/* What is printed arrives as a whole, or not at all. */
static void print_whole(int out, void (*print)(FILE *to))
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);

    print(to);
    fclose(to);
    write_all(out, text, size);
}

__attribute__((noreturn)) static void run_child(const char *path, int complete, int out)
{
    struct refusal refusal;
    int null = open("/dev/null", O_RDWR);
    char *text = NULL;
    size_t size = 0;

    os_end_with_parent();
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    dup2(null, STDERR_FILENO);
    probed = load_open(path, &refusal);
    if (probed == NULL) {
        FILE *to = open_memstream(&text, &size);
        print_error(to, refusal.reason, refusal.text);
        fclose(to);
        write_all(out, text, size);
        _exit(0);
    }
    print_whole(out, print_entry);
    if (complete) {
        alarm(LOAD_S);
        print_whole(out, print_resources);
    }
    _exit(0); /* destructors of the library are none of our business */
}

/* ---- in the parent -------------------------------------------------------------------- */

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Copies what has come, at most that much; 0 at the end of it. */
static size_t copy_some(int in, FILE *to, size_t most)
{
    char bytes[4096];
    ssize_t n;

    do
        n = read(in, bytes, most < sizeof bytes ? most : sizeof bytes);
    while (n < 0 && errno == EINTR);
    if (n > 0)
        fwrite(bytes, 1, (size_t)n, to);
    return n > 0 ? (size_t)n : 0;
}

static int collect(pid_t child, int *status, int options)
{
    pid_t ended;

    while ((ended = waitpid(child, status, options)) < 0 && errno == EINTR) {
    }
    return ended == child;
}

/* Copies what the child says, and collects it. A process that it leaves behind may hold the pipe for
 * ever, so the child's own end counts too. Returns 0 when it took too long, and was killed. */
static int copy_output(pid_t child, int in, FILE *to, size_t *copied, int *status)
{
    int64_t end_ms = now_ms() + PROBE_MS;
    struct pollfd pipe = {.fd = in, .events = POLLIN};
    size_t n = 1;
    int ended = 0;

    *copied = 0;
    while (n > 0 && !ended && now_ms() < end_ms) {
        if (poll(&pipe, 1, LOOK_MS) > 0) {
            n = copy_some(in, to, SIZE_MAX);
            *copied += n;
        } else {
            ended = collect(child, status, WNOHANG);
        }
    }
    /* What it wrote before its end is in the pipe, and no more than that holds. */
    for (size_t left = PIPE_SIZE; ended && n > 0 && left > 0 && poll(&pipe, 1, 0) > 0; left -= n) {
        n = copy_some(in, to, left);
        *copied += n;
    }
    if (ended)
        return 1;
    /* It has closed the pipe, and ends; or it did so long ago. */
    while (n == 0 && now_ms() < end_ms) {
        if (collect(child, status, WNOHANG))
            return 1;
        poll(NULL, 0, 1);
    }
    kill(child, SIGKILL);
    collect(child, status, 0);
    return 0;
}

static const char *signal_name(int number)
{
    const char *abbreviation = os_signal_name(number);

    return abbreviation == NULL ? "?" : abbreviation;
}

static void print_end(FILE *to, int status)
{
    char text[160];

    if (WIFSIGNALED(status)) {
        const char *name = signal_name(WTERMSIG(status));
        snprintf(text, sizeof text,
                 "its constructors, nif_init, or damaged tables: it died of SIG%s", name);
        print_error(to, "crashed", text);
        fprintf(to, ",\"signal\":\"SIG%s\"", name);
    } else {
        snprintf(text, sizeof text, "its constructors or nif_init ended the process with status %d",
                 WEXITSTATUS(status));
        print_error(to, "exited", text);
        fprintf(to, ",\"exit_status\":%d", WEXITSTATUS(status));
    }
}

static void run_probe(const char *path, int complete, FILE *to)
{
    int ends[2], status = 0;
    size_t copied;
    pid_t child;

    fflush(to);
    os_adopt();
    if (os_pipe(ends) < 0 || (child = fork()) < 0)
        host_die("cannot start a child: %s", strerror(errno));
    if (child == 0)
        run_child(path, complete, ends[1]);
    close(ends[1]);
    int ended = copy_output(child, ends[0], to, &copied, &status);
    close(ends[0]);
    os_end_children(LEFT_MS);
    if (!ended && copied == 0)
        print_error(to, "hangs", "its constructors or nif_init do not come to an end within 10 s");
    else if (copied == 0)
        print_end(to, status);
}

void probe_print(const char *path)
{
    struct elf_imports imports;
    struct refusal refusal;
    FILE *to = stdout;
    int refused = load_check(path, &imports, &refusal) < 0;
    const char **names = host_malloc(imports.len * sizeof *names + 1);
    size_t len = 0;

    fputs("{\"file\":", to);
    print_string(to, path);
    for (size_t i = 0; i < imports.len; i++) {
        if (strncmp(imports.names[i], "enif_", 5) == 0)
            names[len++] = imports.names[i];
    }
    print_strings(to, "imports", names, len);
    len = load_missing(&imports, names, imports.len);
    print_strings(to, "missing", names, len);
    free(names);
    /* What a host would refuse can still be looked at: nothing missing is called before load. */
    if (!refused || strcmp(refusal.reason, "missing_functions") == 0)
        run_probe(path, !refused, to);
    else
        print_error(to, refusal.reason, refusal.text);
    fputs("}\n", to);
    fflush(to);
    elf_free(&imports);
}
