/* ring_echo.c - a host without a NIF library, for tests and benches of the ring.
 *
 *     tame_ring_echo [workers=N] [slots=N] [slot_bytes=N] [request_bytes=N]
 *                    [reply_bytes=N] [hostile=SEED]
 *
 * Prints "<os pid> <fd>" and ends with its standard input. What the functions do is listed at
 * `call`. With hostile=SEED it answers with what no host may write, and scribbles over everything
 * shared all the time; see ring_echo_hostile.h. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "etf_tags.h"
#include "ring_host_private.h"
#include "spin.h"

static void wait_ms(uint64_t ms)
{
    const struct timespec time = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};

    (void)nanosleep(&time, NULL);
}

#include "ring_echo_hostile.h"

struct echo {
    struct ring_host *ring;
    uint64_t gone;      /* ids that were reported */
    uint64_t cancelled; /* calls that saw it while they ran */
};

/* The list's elements as one run of external format, without the list around it. A list of one byte
 * may come as a string. Returns 0 when there is none. */
static int elements(const uint8_t **args, size_t *size)
{
    if (*size >= 7 && (*args)[1] == ETF_LIST) {
        *args += 6;
        *size -= 7; /* the nil behind the last */
        return 1;
    }
    return 0;
}

static enum ring_code put_integer(struct reply_writer *reply, uint64_t value)
{
    uint8_t term[] = {
        ETF_VERSION,           ETF_INTEGER,   (uint8_t)(value >> 24), (uint8_t)(value >> 16),
        (uint8_t)(value >> 8), (uint8_t)value};

    (void)ring_reply_put(reply, term, sizeof term);
    return RING_VALUE;
}

/* The first (and only) argument. */
static enum ring_code echo_first(const uint8_t *args, size_t size, struct reply_writer *reply)
{
    const uint8_t version = ETF_VERSION;

    if (size == 5 && args[1] == ETF_STRING) {
        const uint8_t byte[] = {ETF_VERSION, ETF_SMALL_INTEGER, args[4]};

        (void)ring_reply_put(reply, byte, sizeof byte);
        return RING_VALUE;
    }
    if (!elements(&args, &size))
        return RING_BADARG;
    (void)ring_reply_put(reply, &version, 1);
    (void)ring_reply_put(reply, args, size);
    return RING_VALUE;
}

/* Rings for five seconds, so that no wait of the reader's ends by its time. */
static void *ring_on(void *context)
{
    struct ring_host *ring = context;

    for (int i = 0; i < 250; i++) {
        bell_ring(&ring->header->vm_bell);
        wait_ms(20);
    }
    return NULL;
}

static enum ring_code call(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t size, struct reply_writer *reply)
{
    struct echo *echo = context;
    struct ring_host_info info;

    (void)id;
    switch (function) {
    case 0: /* (Term) -> Term */
        return echo_first(args, size, reply);
    case 1: /* (Args...) -> [Args] */
        (void)ring_reply_put(reply, args, size);
        return RING_VALUE;
    case 2: /* (Term) -> Term, after 20 ms */
        wait_ms(20);
        return echo_first(args, size, reply);
    case 3: /* the host dies */
        raise(SIGKILL);
        return RING_BADARG;
    case 4: /* runs until it is cancelled */
        while (!ring_call_cancelled(reply))
            wait_ms(1);
        __atomic_fetch_add(&echo->cancelled, 1, __ATOMIC_RELAXED);
        return RING_BADARG;
    case 5: /* (Term) raises Term */
        (void)echo_first(args, size, reply);
        return RING_RAISE;
    case 6:
        return RING_BADARG;
    case 7: /* no external format */
        (void)ring_reply_put(reply, "what is this", 12);
        return RING_VALUE;
    case 8: { /* (<<Id:64>>, Ref) -> Ref, which uses lease Id */
        const uint8_t version = ETF_VERSION;
        uint64_t lease = 0;

        if (!elements(&args, &size) || size < 13 || args[0] != ETF_BINARY)
            return RING_BADARG;
        for (int i = 0; i < 8; i++)
            lease = lease << 8 | args[5 + i];
        (void)ring_reply_put(reply, &version, 1);
        (void)ring_reply_put(reply, args + 13, size - 13);
        (void)ring_reply_lease(reply, lease);
        return RING_VALUE;
    }
    case 9: /* () -> how many leases are gone */
        return put_integer(reply, __atomic_load_n(&echo->gone, __ATOMIC_RELAXED));
    case 10: /* () -> how many calls saw that they were cancelled */
        return put_integer(reply, __atomic_load_n(&echo->cancelled, __ATOMIC_RELAXED));
    case 11: /* () -> how many requests were dropped before they were taken */
        ring_host_info(echo->ring, &info);
        return put_integer(reply, info.dropped);
    case 12: /* () -> 4 KiB pages of replies in use */
        ring_host_info(echo->ring, &info);
        return put_integer(reply, info.reply_bytes / RING_PAGE);
    case 13: /* () -> [calls, spins, paid, sleeps] of the host, as text */
    {
        uint8_t text[6 + 100] = {ETF_VERSION, ETF_BINARY};
        int len;

        ring_host_info(echo->ring, &info);
        len = snprintf((char *)text + 6, 100, "calls %llu spins %llu paid %llu sleeps %llu",
                       (unsigned long long)info.calls, (unsigned long long)info.spins,
                       (unsigned long long)info.spins_paid, (unsigned long long)info.sleeps);
        text[5] = (uint8_t)len;
        (void)ring_reply_put(reply, text, 6 + (size_t)len);
        return RING_VALUE;
    }
    case 14: /* (Term) -> Term, after 20 ms, with 100 leases that are not ours */
        wait_ms(20);
        for (uint64_t lease = 1000; lease < 1100; lease++)
            (void)ring_reply_lease(reply, lease);
        return echo_first(args, size, reply);
    case 15: /* (Bytes) -> what these bytes are in external format, as they are */
        if (!elements(&args, &size) || size < 5 || args[0] != ETF_BINARY)
            return RING_BADARG;
        (void)ring_reply_put(reply, args + 5, size - 5);
        return RING_VALUE;
    case 16: { /* (<<From:64, Count:64>>, Term) -> Term, which uses Count leases from From on */
        const uint8_t version = ETF_VERSION;
        uint64_t numbers[2] = {0, 0};

        if (!elements(&args, &size) || size < 21 || args[0] != ETF_BINARY)
            return RING_BADARG;
        for (int i = 0; i < 16; i++)
            numbers[i / 8] = numbers[i / 8] << 8 | args[5 + i];
        (void)ring_reply_put(reply, &version, 1);
        (void)ring_reply_put(reply, args + 21, size - 21);
        for (uint64_t i = 0; i < numbers[1]; i++)
            (void)ring_reply_lease(reply, numbers[0] + i);
        return RING_VALUE;
    }
    case 17: /* as 16, after 20 ms */
        wait_ms(20);
        return call(context, 16, id, args, size, reply);
    case 18: { /* (Term) -> Term, of which the VM is not told, though it is rung */
        pthread_t ringing;

        wait_ms(200); /* the caller waits to be told by then */
        __atomic_fetch_and(&reply->slot->state, ~(uint32_t)RING_WAIT, __ATOMIC_SEQ_CST);
        if (pthread_create(&ringing, NULL, ring_on, echo->ring) == 0)
            (void)pthread_detach(ringing);
        return echo_first(args, size, reply);
    }
    case 19: { /* (Term) -> Term, after it has computed for 2 us */
        const uint64_t until_ns = tame_now_ns() + 2000;

        while (tame_now_ns() < until_ns)
            tame_impl_pause();
        return echo_first(args, size, reply);
    }
    default:
        return RING_BADARG;
    }
}

static void gone(void *context, const uint64_t *ids, size_t len)
{
    struct echo *echo = context;

    (void)ids;
    __atomic_fetch_add(&echo->gone, len, __ATOMIC_RELAXED);
}

static const struct ring_host_ops ops = {.call = call, .gone = gone};

static void *worker(void *arg)
{
    struct echo *echo = arg;

    void *memory = ring_worker_memory();

    if (memory == NULL)
        _exit(1);
    ring_host_serve(echo->ring, memory, &ops, echo);
    return NULL;
}

/* The VM's end of standard input closes with the port, and with the VM. */
static void *watch_stdin(void *unused)
{
    char byte;

    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    _exit(0);
    return unused;
}

/* Reads "name=number"; returns 0 when arg has another name. */
static int option(const char *arg, const char *name, uint64_t *value)
{
    const size_t len = strlen(name);

    if (strncmp(arg, name, len) != 0 || arg[len] != '=')
        return 0;
    *value = strtoull(arg + len + 1, NULL, 10);
    return 1;
}

int main(int argc, char **argv)
{
    struct ring_geometry geometry = RING_GEOMETRY_DEFAULT;
    uint64_t workers = 1, value, hostile = 0;
    struct echo echo = {0};
    pthread_t thread;
    int fd;

    for (int i = 1; i < argc; i++) {
        if (option(argv[i], "workers", &workers) || option(argv[i], "hostile", &hostile) ||
            option(argv[i], "request_bytes", &geometry.request_bytes) ||
            option(argv[i], "reply_bytes", &geometry.reply_bytes)) {
        } else if (option(argv[i], "slots", &value)) {
            geometry.slots = (uint32_t)value;
        } else if (option(argv[i], "slot_bytes", &value)) {
            geometry.slot_bytes = (uint32_t)value;
        } else {
            fprintf(stderr, "tame_ring_echo: unknown option %s\n", argv[i]);
            return 2;
        }
    }
    fd = ring_host_create(&geometry, &echo.ring);
    if (fd < 0) {
        perror("tame_ring_echo: no ring");
        return 1;
    }
    printf("%d %d\n", (int)getpid(), fd);
    fflush(stdout);
    if (pthread_create(&thread, NULL, watch_stdin, NULL) != 0)
        return 1;
    if (hostile != 0)
        be_hostile(fd, &geometry, hostile);
    for (uint64_t i = 1; i < workers; i++) {
        if (pthread_create(&thread, NULL, worker, &echo) != 0)
            return 1;
    }
    worker(&echo);
    return 0;
}
