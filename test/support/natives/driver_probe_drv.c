/* driver_probe: a driver on tame/driver.h that does what a test tells it to, and counts in a file what
 * it was called for. Every callback checks that its port's data lives, that no other is outside or
 * under the lock at the same time, and that it is where it should be. */
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tame/clock.h>
#include <tame/driver.h>

#include "mapped.h"

/* The commands of control: <<N:32, Us:32>> follows. Tame.DriverProbe has them too. */
enum command {
    WORK_CPU = 1,
    WORK_IO,
    WORK_PORT,
    HOLD,    /* on an I/O thread, until released */
    RELEASE, /* all that this port holds */
    JOB_CPU,
    JOB_PORT,
    AGAIN, /* control itself outside; N = 0 fails there */
    FAIL_HERE,
    FAIL_OUTSIDE,
    FAIL_RAW, /* driver_failure_atom, whatever is outside */
    PIPE,     /* a descriptor of the author's becomes readable */
    POST,     /* from a thread that is not the driver's */
    CHAIN,    /* out and back, N times */
    TIMER,
    WAITING,
    SPIN /* in control */
};

static struct counters {
    atomic_uint_fast64_t starts, stops, begun, ended, done, dropped, pieces, broken, flushes, inits,
        finishes, release;
} nowhere, *counters = &nowhere;

/* ---- a port ---- */

#define ALIVE 0xA11FE

struct probe {
    uint32_t alive;
    ErlDrvPort port;
    int stubborn; /* flush wakes nothing */
    int polite;   /* what is held looks whether the port closes */
    atomic_int released, outside, under_lock;
    int pipe[2]; /* read end selected; -1 */
    uint32_t pipe_n, timer_n;
    pthread_t posters[64];
    int posters_len;
};

/* What a callback is given. */
struct piece {
    struct probe *probe;
    uint32_t n, us, left;
    struct tame_drv_hold *hold;
};

static struct piece *piece_new(struct probe *probe, uint32_t n, uint32_t us)
{
    struct piece *piece = driver_alloc(sizeof *piece);

    if (piece == NULL)
        abort();
    *piece = (struct piece){.probe = probe, .n = n, .us = us, .left = n};
    atomic_fetch_add(&counters->pieces, 1);
    return piece;
}

static void piece_free(void *piece)
{
    atomic_fetch_sub(&counters->pieces, 1);
    driver_free(piece);
}

static void expect(int is_so)
{
    if (!is_so)
        atomic_fetch_add(&counters->broken, 1);
}

static void check(struct probe *probe, int dirty)
{
    expect(probe->alive == ALIVE);
    expect(tame_drv_is_dirty(probe->port) == dirty);
}

static void outside_begins(struct probe *probe)
{
    check(probe, 1);
    expect(atomic_fetch_add(&probe->outside, 1) == 0);
    atomic_fetch_add(&counters->begun, 1);
}

static void outside_ends(struct probe *probe)
{
    expect(probe->alive == ALIVE);
    atomic_fetch_sub(&probe->outside, 1);
    atomic_fetch_add(&counters->ended, 1);
}

static void spin(uint32_t us)
{
    const uint64_t end_ns = tame_now_ns() + (uint64_t)us * 1000;

    while (tame_now_ns() < end_ns)
        tame_impl_pause();
}

/* The same by the thread's CPU time, which is what is charged where the system took the core away. */
static void use_cpu(uint32_t us)
{
    const uint64_t end_ns = tame_impl_cpu_ns() + (uint64_t)us * 1000;

    while (tame_impl_cpu_ns() < end_ns)
        tame_impl_pause();
}

static void reply(struct probe *probe, uint32_t n)
{
    const unsigned char bytes[] = {n >> 24, n >> 16 & 255, n >> 8 & 255, n & 255};

    tame_drv_output(probe->port, bytes, sizeof bytes);
}

/* ---- callbacks that are scheduled ---- */

static void done(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;
    struct piece *piece = arg;

    check(probe, 0);
    expect(atomic_fetch_add(&probe->under_lock, 1) == 0);
    atomic_fetch_add(&counters->done, 1);
    reply(probe, piece->n);
    piece_free(piece);
    atomic_fetch_sub(&probe->under_lock, 1);
}

static void back(struct probe *probe, struct piece *piece)
{
    if (!tame_drv_schedule(probe->port, TAME_DRV_PORT, done, piece)) {
        expect(0); /* a port that has something outside takes this */
        piece_free(piece);
    }
}

static void work(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;
    struct piece *piece = arg;

    outside_begins(probe);
    spin(piece->us);
    back(probe, piece);
    outside_ends(probe);
}

static void hold(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;

    outside_begins(probe);
    /* A test that failed leaves nobody to release it. */
    for (int turns = 0; turns < 40000 && !probe->released && !counters->release &&
                        !(probe->polite && tame_drv_is_closing(probe->port));
         turns++)
        (void)usleep(500);
    back(probe, arg);
    outside_ends(probe);
}

static void chain(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;
    struct piece *piece = arg;
    const int dirty = tame_drv_is_dirty(probe->port);

    check(probe, dirty);
    if (!dirty && piece->left-- == 0) {
        done(data, piece);
    } else if (!tame_drv_schedule(probe->port, dirty ? TAME_DRV_PORT : TAME_DRV_CPU, chain,
                                  piece)) {
        expect(tame_drv_is_closing(probe->port));
        piece_free(piece);
    }
}

static void fail(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;

    outside_begins(probe);
    tame_drv_fail(probe->port, "failed_outside");
    piece_free(arg);
    outside_ends(probe);
}

static void drop(ErlDrvData data, tame_drv_callback callback, void *arg)
{
    expect(((struct probe *)data)->alive == ALIVE);
    expect(callback == work || callback == hold || callback == fail || callback == chain);
    atomic_fetch_add(&counters->dropped, 1);
    piece_free(arg);
}

/* ---- jobs ---- */

static enum tame_status step(struct tame_call *call, void *state, size_t units)
{
    struct piece *piece = state;
    const uint32_t count = units < piece->left ? (uint32_t)units : piece->left;

    expect(call == NULL && piece->probe->alive == ALIVE);
    spin(count); /* a unit is a microsecond */
    piece->left -= count;
    return piece->left == 0 ? TAME_DONE : TAME_MORE;
}

static void job_done(ErlDrvData data, void *state, enum tame_status status)
{
    check((struct probe *)data, 0);
    expect(status == TAME_DONE);
    atomic_fetch_add(&counters->done, 1);
    reply((struct probe *)data, ((struct piece *)state)->n);
}

static const struct tame_drv_job job = {.step = step, .done = job_done, .cleanup = piece_free};

/* ---- the VM's callbacks ---- */

static int init(void)
{
    counters = mapped("TAME_DRIVER_COUNTERS", &nowhere, sizeof nowhere);
    atomic_fetch_add(&counters->inits, 1);
    return 0;
}

static void finish(void)
{
    atomic_fetch_add(&counters->finishes, 1);
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    struct probe *probe = driver_alloc(sizeof *probe);

    if (probe == NULL)
        return ERL_DRV_ERROR_GENERAL;
    memset(probe, 0, sizeof *probe);
    probe->alive = ALIVE;
    probe->port = port;
    probe->pipe[0] = probe->pipe[1] = -1;
    probe->stubborn = strstr(command, "stubborn") != NULL;
    probe->polite = strstr(command, "polite") != NULL;
    if (strstr(command, "refuse") != NULL) {
        driver_free(probe);
        return ERL_DRV_ERROR_BADARG;
    }
    atomic_fetch_add(&counters->starts, 1);
    return (ErlDrvData)probe;
}

static void flush(ErlDrvData data)
{
    struct probe *probe = (struct probe *)data;

    check(probe, 0);
    atomic_fetch_add(&counters->flushes, 1);
    if (!probe->stubborn)
        probe->released = 1;
}

static void stop(ErlDrvData data)
{
    struct probe *probe = (struct probe *)data;

    check(probe, 0);
    expect(probe->outside == 0);
    for (int i = 0; i < probe->posters_len; i++)
        (void)pthread_join(probe->posters[i], NULL);
    if (probe->pipe[0] >= 0) {
        (void)driver_select(probe->port, (ErlDrvEvent)(intptr_t)probe->pipe[0],
                            ERL_DRV_READ | ERL_DRV_USE, 0);
        (void)close(probe->pipe[1]);
    }
    probe->alive = 0;
    atomic_fetch_add(&counters->stops, 1);
    driver_free(probe);
}

static void stop_select(ErlDrvEvent event, void *reserved)
{
    (void)reserved;
    (void)close((int)(intptr_t)event);
}

/* Returns 0, or an error when the port does not take it. */
static ErlDrvSSizeT schedule(struct probe *probe, enum tame_drv_where where,
                             tame_drv_callback callback, struct piece *piece)
{
    if (tame_drv_schedule(probe->port, where, callback, piece))
        return 0;
    piece_free(piece);
    return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
}

static void ready_input(ErlDrvData data, ErlDrvEvent event)
{
    struct probe *probe = (struct probe *)data;
    char byte;

    check(probe, 0);
    expect((int)(intptr_t)event == probe->pipe[0]);
    expect(read(probe->pipe[0], &byte, 1) == 1);
    (void)schedule(probe, TAME_DRV_CPU, work, piece_new(probe, probe->pipe_n, 0));
}

static void timeout(ErlDrvData data)
{
    struct probe *probe = (struct probe *)data;

    check(probe, 0);
    (void)schedule(probe, TAME_DRV_IO, work, piece_new(probe, probe->timer_n, 0));
}

static void pipe_write(struct probe *probe, uint32_t n)
{
    probe->pipe_n = n;
    if (probe->pipe[0] < 0) {
        expect(pipe(probe->pipe) == 0);
        (void)driver_select(probe->port, (ErlDrvEvent)(intptr_t)probe->pipe[0],
                            ERL_DRV_READ | ERL_DRV_USE, 1);
    }
    expect(write(probe->pipe[1], "x", 1) == 1);
}

static void *poster(void *arg)
{
    struct piece *piece = arg;
    struct tame_drv_hold *held = piece->hold;

    spin(piece->us);
    if (!tame_drv_post(held, done, piece))
        piece_free(piece);
    tame_drv_let_go(held);
    return NULL;
}

static ErlDrvSSizeT post(struct probe *probe, struct piece *piece)
{
    piece->hold = probe->posters_len < 64 ? tame_drv_hold(probe->port) : NULL;
    if (piece->hold != NULL &&
        pthread_create(&probe->posters[probe->posters_len], NULL, poster, piece) == 0) {
        probe->posters_len++;
        return 0;
    }
    expect(0);
    piece_free(piece);
    return (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL;
}

static ErlDrvSSizeT run(struct probe *probe, enum tame_drv_where where, struct piece *piece)
{
    if (tame_drv_run(probe->port, where, &job, piece))
        return 0;
    piece_free(piece);
    return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
}

static uint32_t number(const char *bytes)
{
    const unsigned char *from = (const unsigned char *)bytes;

    return (uint32_t)from[0] << 24 | (uint32_t)from[1] << 16 | (uint32_t)from[2] << 8 | from[3];
}

/* Of AGAIN, outside. */
static ErlDrvSSizeT again(struct probe *probe, uint32_t n, uint32_t us, char **res)
{
    outside_begins(probe);
    spin(us);
    (*res)[0] = (char)n;
    outside_ends(probe);
    return n == 0 ? (ErlDrvSSizeT)ERL_DRV_ERROR_GENERAL : 1;
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                            char **res, ErlDrvSizeT rlen)
{
    struct probe *probe = (struct probe *)data;
    const uint32_t n = len == 8 ? number(buf) : 0, us = len == 8 ? number(buf + 4) : 0;

    (void)rlen;
    if (tame_drv_is_dirty(probe->port))
        return again(probe, n, us, res);
    check(probe, 0);
    switch ((enum command)command) {
    case WORK_CPU:
        return schedule(probe, TAME_DRV_CPU, work, piece_new(probe, n, us));
    case WORK_IO:
        return schedule(probe, TAME_DRV_IO, work, piece_new(probe, n, us));
    case WORK_PORT:
        return schedule(probe, TAME_DRV_PORT, done, piece_new(probe, n, us));
    case HOLD:
        probe->released = 0;
        return schedule(probe, TAME_DRV_IO, hold, piece_new(probe, n, us));
    case RELEASE:
        probe->released = 1;
        return 0;
    case JOB_CPU:
        return run(probe, TAME_DRV_CPU, piece_new(probe, n, us));
    case JOB_PORT:
        return run(probe, TAME_DRV_PORT, piece_new(probe, n, us));
    case AGAIN:
        return tame_drv_control(probe->port, TAME_DRV_CPU, command, buf, len, res);
    case FAIL_HERE:
        tame_drv_fail(probe->port, "failed_here");
        return 0;
    case FAIL_OUTSIDE:
        return schedule(probe, TAME_DRV_IO, fail, piece_new(probe, n, us));
    case FAIL_RAW:
        (void)driver_failure_atom(probe->port, (char *)"failed_raw");
        return 0;
    case PIPE:
        pipe_write(probe, n);
        return 0;
    case POST:
        return post(probe, piece_new(probe, n, us));
    case CHAIN:
        return schedule(probe, TAME_DRV_CPU, chain, piece_new(probe, n, us));
    case TIMER:
        probe->timer_n = n;
        (void)driver_set_timer(probe->port, 1);
        return 0;
    case WAITING:
        (*res)[0] = (char)tame_drv_waiting(probe->port);
        return 1;
    case SPIN:
        use_cpu(us);
        return 0;
    }
    return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
}

/* Sends back the size, from outside, for which all of it is read. */
static void outputv(ErlDrvData data, ErlIOVec *vector)
{
    struct probe *probe = (struct probe *)data;
    uint32_t sum = 0;

    if (!tame_drv_is_dirty(probe->port)) {
        check(probe, 0);
        expect(tame_drv_outputv(probe->port, TAME_DRV_CPU, vector));
        return;
    }
    outside_begins(probe);
    for (int i = 0; i < vector->vsize; i++)
        for (size_t at = 0; at < vector->iov[i].iov_len; at++)
            sum += ((unsigned char *)vector->iov[i].iov_base)[at];
    reply(probe, sum);
    outside_ends(probe);
}

/* The term comes back at once, and the work of that number later. */
static ErlDrvSSizeT call(ErlDrvData data, unsigned int command, char *buf, ErlDrvSizeT len,
                         char **rbuf, ErlDrvSizeT rlen, unsigned int *flags)
{
    struct probe *probe = (struct probe *)data;

    (void)flags;
    check(probe, 0);
    if (len > rlen)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    memcpy(*rbuf, buf, len);
    if (schedule(probe, TAME_DRV_CPU, work, piece_new(probe, command, 0)) < 0)
        return (ErlDrvSSizeT)ERL_DRV_ERROR_BADARG;
    return (ErlDrvSSizeT)len;
}

static ErlDrvEntry entry = {.init = init,
                            .finish = finish,
                            .start = start,
                            .flush = flush,
                            .stop = stop,
                            .stop_select = stop_select,
                            .ready_input = ready_input,
                            .timeout = timeout,
                            .control = control,
                            .outputv = outputv,
                            .call = call,
                            .driver_name = (char *)"driver_probe",
                            .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING};

TAME_DRIVER_INIT(driver_probe, entry, drop)
