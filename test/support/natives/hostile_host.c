/* hostile_host.c - a program that the VM takes for a tame_host and that does what a script says.
 *
 * It is started as the option `host` of tame:isolate/2 names it: by the name of a symbolic link,
 * beside which lies the script, a file of the same name with ".script" behind it. Its
 * author (test/support/hostile_host.ex) knows every frame; this program knows none but `ping`.
 * It can make a real ring and serve it, so that a host may behave well until it does not.
 *
 * A script is a run of steps, each a letter and what belongs to it; numbers are four bytes, big end
 * first, and `block` is a number of bytes and those bytes:
 *
 *     H protocol                 says hello, with its own OS process id
 *     D block                    writes the bytes to the VM as they are: whole frames, or not
 *     W block                    reads frames of the VM until one holds these bytes
 *     R slots slot_bytes area    makes a ring and says so
 *     S workers                  serves the ring, on threads: each call returns its first argument
 *     K answers                  reads whatever comes from now on, on a thread; answers `ping` if
 *                                `answers` is not 0. Its input's end ends the program
 *     P ms                       waits
 *     L times block              plays the block that many times; 0 is without end
 *     C count block...           plays one of the blocks: the next one at each start of the program
 *     A fd                       closes a descriptor
 *     F count                    makes children that keep every descriptor; they end with the VM's
 *                                end of the pipe, at the latest after CHILD_S
 *     X status                   ends
 *     Q signal                   sends itself the signal
 *
 * At the script's end it waits for the end of its input. A guard stands between it and the VM, as
 * one does before tame_host: its parent, which kills it when the VM closes the pipe, and whose exit
 * status says how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "ring_host.h"

#define FROM_VM 3
#define TO_VM 4
#define CHILD_S 60

static const char *own_path;
static struct ring_host *ring;
static pthread_mutex_t writing = PTHREAD_MUTEX_INITIALIZER;

static __attribute__((noreturn)) void give_up(const char *what)
{
    fprintf(stderr, "hostile_host: %s: %s\n", what, strerror(errno));
    _exit(71);
}

static void wait_ms(uint32_t ms)
{
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    while (nanosleep(&time, &time) < 0 && errno == EINTR) {
    }
}

/* ---- to and from the VM ----------------------------------------------------------------- */

/* Frames of the script and of the thread that answers pings do not mix. */
static void put(const uint8_t *bytes, size_t size)
{
    pthread_mutex_lock(&writing);
    while (size > 0) {
        const ssize_t n = write(TO_VM, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break; /* the VM has closed the port, or the script has: the guard ends us in time */
        bytes += n;
        size -= (size_t)n;
    }
    pthread_mutex_unlock(&writing);
}

static int get(uint8_t *bytes, size_t size)
{
    while (size > 0) {
        const ssize_t n = read(FROM_VM, bytes, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return 0;
        bytes += n;
        size -= (size_t)n;
    }
    return 1;
}

static uint32_t number_at(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void put_number(uint8_t *to, uint32_t number)
{
    for (int i = 0; i < 4; i++)
        to[i] = (uint8_t)(number >> (24 - 8 * i));
}

/* The next frame of the VM, on the heap with its length before it; the caller frees it. The VM's
 * end of the pipe ends the program. */
static uint8_t *next_frame(size_t *size)
{
    uint8_t head[4];
    uint8_t *frame;

    if (!get(head, sizeof head))
        _exit(0);
    *size = number_at(head);
    frame = malloc(*size + 4);
    if (frame == NULL)
        give_up("a frame of the VM");
    memcpy(frame, head, 4);
    if (!get(frame + 4, *size))
        _exit(0);
    return frame;
}

static void hello(uint32_t protocol)
{
    /* {hello, Protocol, OsPid, #{workers => 2, nif_version => {2, 16}}} */
    uint8_t frame[] = "\0\0\0\0\x83h\x04w\x05hello"
                      "a\0"
                      "b\0\0\0\0"
                      "t\0\0\0\2w\7workersa\2w\x0bnif_versionh\2a\2a\x10";
    const size_t size = sizeof frame - 1;

    put_number(frame, (uint32_t)size - 4);
    frame[15] = (uint8_t)protocol;
    put_number(frame + 17, (uint32_t)getpid());
    put(frame, size);
}

/* ---- the ring --------------------------------------------------------------------------- */

/* The list's first element, whatever it is. A list of one byte comes as a string. */
static enum ring_code echo(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t size, struct reply_writer *reply)
{
    const uint8_t version = 131;

    (void)context, (void)function, (void)id;
    if (size == 5 && args[1] == 107) {
        const uint8_t byte[] = {131, 97, args[4]};

        (void)ring_reply_put(reply, byte, sizeof byte);
        return RING_VALUE;
    }
    if (size < 7 || args[1] != 108)
        return RING_BADARG;
    (void)ring_reply_put(reply, &version, 1);
    (void)ring_reply_put(reply, args + 6, size - 7); /* the nil behind the last is left out */
    return RING_VALUE;
}

static void *serve(void *unused)
{
    void *memory = ring_worker_memory();

    if (memory == NULL)
        give_up("no memory");
    ring_host_serve(ring, memory, &(struct ring_host_ops){.call = echo}, NULL);
    return unused;
}

static void make_ring(uint32_t slots, uint32_t slot_bytes, uint32_t area)
{
    const struct ring_geometry geometry = {slots, slot_bytes, area, area};
    uint8_t frame[] = "\0\0\0\x0e\x83h\2w\4ringb\0\0\0\0";
    const int fd = ring_host_create(&geometry, &ring);

    if (fd < 0)
        give_up("no ring");
    put_number(frame + 14, (uint32_t)fd);
    put(frame, 18);
}

static void thread(void *(*run)(void *), void *arg)
{
    pthread_t made;

    if (pthread_create(&made, NULL, run, arg) != 0)
        give_up("no thread");
    pthread_detach(made);
}

/* ---- what a host does besides ----------------------------------------------------------- */

static void *read_all(void *answers)
{
    for (;;) {
        size_t size;
        uint8_t *frame = next_frame(&size);
        uint8_t *ping = memmem(frame + 4, size, "ping", 4);

        if (answers != NULL && ping != NULL && size < 32) {
            memcpy(ping, "pong", 4);
            put(frame, size + 4);
        }
        free(frame);
    }
    return NULL;
}

/* A child's descriptors are ours, so that the VM sees neither end of the pipes close with us. */
static void leave_children(uint32_t count)
{
    while (count-- > 0) {
        const pid_t child = fork();

        if (child < 0)
            give_up("no child");
        if (child == 0) {
            struct pollfd pipe = {.fd = FROM_VM};

            alarm(CHILD_S);
            while (poll(&pipe, 1, -1) < 0 && errno == EINTR) {
            }
            _exit(0);
        }
    }
}

/* How often this program was started under this name before. The file is one byte per start. */
static uint32_t start_number(void)
{
    static char name[4096];
    struct stat stat;
    int fd;

    snprintf(name, sizeof name, "%s.starts", own_path);
    fd = open(name, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "", 1) != 1 || fstat(fd, &stat) != 0)
        give_up(name);
    close(fd);
    return (uint32_t)stat.st_size - 1;
}

/* ---- the script ------------------------------------------------------------------------- */

struct script {
    const uint8_t *at, *end;
};

static uint32_t number(struct script *script)
{
    if (script->end - script->at < 4) {
        errno = EINVAL;
        give_up("the script ends too early");
    }
    script->at += 4;
    return number_at(script->at - 4);
}

static struct script block(struct script *script)
{
    const uint32_t size = number(script);
    const struct script inner = {script->at, script->at + size};

    if (size > (size_t)(script->end - script->at)) {
        errno = EINVAL;
        give_up("a block of the script ends too early");
    }
    script->at += size;
    return inner;
}

static void wait_for(struct script bytes)
{
    for (int found = 0; !found;) {
        size_t size;
        uint8_t *frame = next_frame(&size);

        found = memmem(frame + 4, size, bytes.at, (size_t)(bytes.end - bytes.at)) != NULL;
        free(frame);
    }
}

static void play(struct script script);

static void play_one_of(struct script *script)
{
    const uint32_t count = number(script);
    const uint32_t chosen = start_number() % (count == 0 ? 1 : count);

    for (uint32_t i = 0; i < count; i++) {
        const struct script inner = block(script);

        if (i == chosen)
            play(inner);
    }
}

static void play(struct script script)
{
    struct script inner;
    uint32_t count, slots, slot_bytes;

    while (script.at < script.end) {
        const uint8_t step = *script.at++;

        switch (step) {
        case 'H':
            hello(number(&script));
            break;
        case 'D':
            inner = block(&script);
            put(inner.at, (size_t)(inner.end - inner.at));
            break;
        case 'W':
            wait_for(block(&script));
            break;
        case 'R':
            slots = number(&script);
            slot_bytes = number(&script);
            make_ring(slots, slot_bytes, number(&script));
            break;
        case 'S':
            for (count = number(&script); count > 0; count--)
                thread(serve, NULL);
            break;
        case 'K':
            thread(read_all, number(&script) != 0 ? &ring : NULL);
            break;
        case 'P':
            wait_ms(number(&script));
            break;
        case 'L':
            count = number(&script);
            inner = block(&script);
            for (uint32_t i = 0; count == 0 || i < count; i++)
                play(inner);
            break;
        case 'C':
            play_one_of(&script);
            break;
        case 'A':
            close((int)number(&script));
            break;
        case 'F':
            leave_children(number(&script));
            break;
        case 'X':
            _exit((int)number(&script));
        case 'Q':
            kill(getpid(), (int)number(&script));
            break;
        default:
            fprintf(stderr, "hostile_host: no step is called %u\n", step);
            _exit(71);
        }
    }
}

static struct script script_of(const char *path)
{
    static char name[4096];
    struct stat stat;
    void *bytes = NULL;
    int fd;

    snprintf(name, sizeof name, "%s.script", path);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &stat) != 0)
        give_up(name);
    if (stat.st_size > 0)
        bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes == MAP_FAILED)
        give_up(name);
    close(fd);
    return (struct script){bytes, (const uint8_t *)bytes + stat.st_size};
}

/* ---- the guard -------------------------------------------------------------------------- */

static void child_changed(int signal)
{
    (void)signal; /* it only interrupts ppoll */
}

static __attribute__((noreturn)) void guard(pid_t child, const sigset_t *unblocked)
{
    struct pollfd pipe = {.fd = FROM_VM};
    int status;

    close(TO_VM);
    for (;;) {
        if (waitpid(child, &status, WNOHANG) == child)
            _exit(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
        if (ppoll(&pipe, 1, NULL, unblocked) > 0) {
            kill(child, SIGKILL);
            (void)waitpid(child, &status, 0);
            _exit(0);
        }
    }
}

static void split(void)
{
    const struct sigaction action = {.sa_handler = child_changed};
    sigset_t child_signal, unblocked;
    pid_t child;

    sigemptyset(&child_signal);
    sigaddset(&child_signal, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child_signal, &unblocked);
    sigaction(SIGCHLD, &action, NULL);
    child = fork();
    if (child < 0)
        give_up("no fork");
    if (child > 0)
        guard(child, &unblocked);
    signal(SIGCHLD, SIG_IGN); /* children of the script's are nobody's to wait for */
    sigprocmask(SIG_SETMASK, &unblocked, NULL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

int main(int argc, char **argv)
{
    (void)argc;
    own_path = argv[0];
    signal(SIGPIPE, SIG_IGN);
    split();
    play(script_of(own_path));
    read_all(NULL);
    return 0;
}
