/* A whole driver on tame/driver.h, called from many threads: ports that have work outside and under
 * their lock, and are closed, killed or fail meanwhile, without a VM (fake_driver.h). What a port has
 * outside is in order and one at a time, so its data is used without a lock here: the sanitizers see
 * where that is not so. */
#define _GNU_SOURCE
#include "../../test/c/check.h"
#include "../../test/c/fake_driver.h"
#include <tame/driver.h>

#define PORTS 8 /* at a time */
#define LIVES 60
#define COMMANDS 60
#define PATIENCE_MS 20000

/* ---- the driver ----------------------------------------------------------------------------------- */

enum { WORK, HOLD, JOB, CHAIN, AGAIN, POST, FAIL_HERE, FAIL_OUTSIDE, GATE, LAST, KINDS };

static int pieces, done_count, dropped, refused; /* atomic */
static int broken;                               /* atomic: what must not be */
static int starts, stops, posters;               /* atomic */
static uint64_t turns;                           /* atomic: of ports that have stopped */

static void expect(int is_so)
{
    if (!is_so)
        __atomic_add_fetch(&broken, 1, __ATOMIC_SEQ_CST);
}

struct probe {
    ErlDrvPort port;
    uint64_t outside, locked; /* no lock and not atomic: of who is outside, of the port's lock */
    unsigned scheduled;       /* what goes outside is numbered, under the lock */
    unsigned seen_outside;    /* the last number, outside */
    int woken;                /* atomic: by flush */
};

/* What a callback is given. */
struct piece {
    struct probe *probe;
    unsigned number; /* of what was scheduled for outside; 0: none */
    unsigned left;
    enum tame_drv_where where;
    struct tame_drv_hold *hold;
};

static struct piece *piece_new(struct probe *probe, unsigned left)
{
    struct piece *piece = calloc(1, sizeof *piece);

    if (piece == NULL)
        abort();
    piece->probe = probe;
    piece->left = left;
    __atomic_add_fetch(&pieces, 1, __ATOMIC_SEQ_CST);
    return piece;
}

static void piece_free(struct piece *piece, int *count)
{
    __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST);
    __atomic_sub_fetch(&pieces, 1, __ATOMIC_SEQ_CST);
    free(piece);
}

static void done(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;

    expect(!tame_drv_is_dirty(probe->port));
    probe->locked++;
    (void)tame_drv_output(probe->port, "done", 4);
    piece_free(arg, &done_count);
}

static void outside(struct probe *probe, const struct piece *piece)
{
    expect(tame_drv_is_dirty(probe->port));
    probe->outside++;
    if (piece->number != 0) {
        expect(piece->number > probe->seen_outside);
        probe->seen_outside = piece->number;
    }
}

static void back(struct piece *piece)
{
    if (!tame_drv_schedule(piece->probe->port, TAME_DRV_PORT, done, piece)) {
        expect(0); /* a port that has something outside takes this */
        piece_free(piece, &refused);
    }
}

static void work(ErlDrvData data, void *arg)
{
    outside((struct probe *)data, arg);
    back(arg);
}

static void hold(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;

    outside(probe, arg);
    for (int ms = 0; ms < PATIENCE_MS && !__atomic_load_n(&probe->woken, __ATOMIC_SEQ_CST) &&
                     !tame_drv_is_closing(probe->port);
         ms++)
        (void)usleep(100);
    back(arg);
}

static void chain(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;
    struct piece *piece = arg;
    const int dirty = tame_drv_is_dirty(probe->port);

    if (dirty)
        outside(probe, piece);
    else
        probe->locked++;
    if (!dirty && piece->left-- == 0) {
        done(data, piece);
        return;
    }
    piece->number = 0; /* others may have gone out before it */
    if (!tame_drv_schedule(probe->port, dirty ? TAME_DRV_PORT : TAME_DRV_CPU, chain, piece))
        piece_free(piece, &refused);
}

static void fail(ErlDrvData data, void *arg)
{
    struct probe *probe = (struct probe *)data;

    outside(probe, arg);
    tame_drv_fail(probe->port, "failed_outside");
    piece_free(arg, &done_count);
}

/* ---- work that never comes back ---- */

static int gate_open, at_gate;    /* atomic */
static struct probe *alone_probe; /* of the test that has one port */

static void gated(ErlDrvData data, void *arg)
{
    (void)data;
    __atomic_store_n(&at_gate, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < PATIENCE_MS && !__atomic_load_n(&gate_open, __ATOMIC_SEQ_CST); ms++)
        (void)usleep(1000);
    piece_free(arg, &done_count);
}

static void none_waits(void)
{
    fake_unlocked = NULL;
    __atomic_store_n(&gate_open, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < PATIENCE_MS && tame_drv_waiting(alone_probe->port) > 0; ms++)
        (void)usleep(1000);
    expect(tame_drv_waiting(alone_probe->port) == 0);
}

static void drop(ErlDrvData data, tame_drv_callback callback, void *arg)
{
    (void)data;
    expect(callback == work || callback == hold || callback == chain || callback == fail ||
           callback == gated);
    piece_free(arg, &dropped);
}

static enum tame_status step(struct tame_call *call, void *state, size_t units)
{
    struct piece *piece = state;
    const unsigned now = units < piece->left ? (unsigned)units : piece->left;

    expect(call == NULL);
    piece->left -= now;
    return piece->left == 0 ? TAME_DONE : TAME_MORE;
}

static void job_done(ErlDrvData data, void *state, enum tame_status status)
{
    (void)state;
    expect(status == TAME_DONE);
    ((struct probe *)data)->locked++;
}

static void job_free(void *state)
{
    piece_free(state, &done_count);
}

static const struct tame_drv_job job = {.step = step, .done = job_done, .cleanup = job_free};

/* A thread of a library below the driver: it may be late, and the port closed. */
static void *post(void *arg)
{
    struct piece *piece = arg;
    struct tame_drv_hold *hold = piece->hold;

    (void)usleep(piece->left % 300);
    if (!tame_drv_post(hold, done, piece))
        piece_free(piece, &refused);
    tame_drv_let_go(hold);
    __atomic_sub_fetch(&posters, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

static void start_poster(struct probe *probe, struct piece *piece)
{
    pthread_t thread;

    piece->hold = tame_drv_hold(probe->port);
    if (piece->hold == NULL) {
        piece_free(piece, &refused);
        return;
    }
    __atomic_add_fetch(&posters, 1, __ATOMIC_SEQ_CST);
    if (pthread_create(&thread, NULL, post, piece) != 0)
        abort();
    (void)pthread_detach(thread);
}

static void schedule(struct probe *probe, enum tame_drv_where where, tame_drv_callback callback,
                     struct piece *piece)
{
    piece->number = ++probe->scheduled;
    if (!tame_drv_schedule(probe->port, where, callback, piece))
        piece_free(piece, &refused);
}

static ErlDrvData start(ErlDrvPort port, char *command)
{
    struct probe *probe = calloc(1, sizeof *probe); /* stop frees it */

    (void)command;
    if (probe == NULL)
        abort();
    probe->port = port;
    __atomic_add_fetch(&starts, 1, __ATOMIC_SEQ_CST);
    return (ErlDrvData)probe;
}

static void flush(ErlDrvData data)
{
    __atomic_store_n(&((struct probe *)data)->woken, 1, __ATOMIC_SEQ_CST);
}

/* Nothing is outside any more, so what was used there is read without a lock. */
static void stop(ErlDrvData data)
{
    struct probe *probe = (struct probe *)data;

    expect(probe->seen_outside <= probe->scheduled);
    __atomic_add_fetch(&turns, probe->outside + probe->locked, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&stops, 1, __ATOMIC_SEQ_CST);
    free(probe);
}

static ErlDrvSSizeT control(ErlDrvData data, unsigned int command, char *bytes, ErlDrvSizeT len,
                            char **reply, ErlDrvSizeT room)
{
    struct probe *probe = (struct probe *)data;
    const ErlDrvPort port = probe->port;
    const unsigned n = (unsigned char)bytes[0];
    const enum tame_drv_where where = n % 2 == 0 ? TAME_DRV_CPU : TAME_DRV_IO;

    if (tame_drv_is_dirty(port)) {
        probe->outside++;
        return snprintf(*reply, room, "again");
    }
    probe->locked++;
    expect(tame_drv_waiting(port) <= TAME_DRV_MAX_WAITING);
    switch (command) {
    case HOLD:
        schedule(probe, TAME_DRV_IO, hold, piece_new(probe, n));
        return 0;
    case JOB: {
        struct piece *piece = piece_new(probe, n * 1000 + 1);

        if (!tame_drv_run(port, n % 3 == 0 ? TAME_DRV_PORT : where, &job, piece))
            piece_free(piece, &refused);
        return 0;
    }
    case CHAIN:
        schedule(probe, where, chain, piece_new(probe, n % 8));
        return 0;
    case AGAIN:
        return tame_drv_control(port, where, command, bytes, len, reply);
    case POST:
        start_poster(probe, piece_new(probe, n));
        return 0;
    case FAIL_HERE:
        tame_drv_fail(port, "failed_here");
        return 0;
    case FAIL_OUTSIDE:
        schedule(probe, where, fail, piece_new(probe, n));
        return 0;
    case LAST: /* its thread loses its core as soon as this is scheduled, until all is done */
        alone_probe = probe;
        fake_unlocked = none_waits;
        schedule(probe, where, gated, piece_new(probe, n));
        return 0;
    case GATE:
        schedule(probe, where, gated, piece_new(probe, n));
        return 0;
    default:
        schedule(probe, where, work, piece_new(probe, n));
        return 0;
    }
}

static ErlDrvEntry entry = {.start = start,
                            .stop = stop,
                            .flush = flush,
                            .control = control,
                            .driver_name = (char *)"probe",
                            .driver_flags = ERL_DRV_FLAG_USE_PORT_LOCKING};

TAME_DRIVER_INIT(probe, entry, drop)

/* ---- ports that live and end ---------------------------------------------------------------------- */

static int fails; /* ports may fail */

struct life {
    unsigned seed;
    ErlDrvPort port;
    int over; /* atomic: the poller ends */
};

/* The other scheduler of a port: what comes back is heard here. */
static void *listen_to(void *arg)
{
    struct life *life = arg;

    while (!__atomic_load_n(&life->over, __ATOMIC_SEQ_CST))
        fake_poll(life->port);
    return NULL;
}

static unsigned any_command(unsigned *seed)
{
    const unsigned kind = (unsigned)rand_r(seed) % 64;

    if (kind < 2)
        return fails ? (kind == 0 ? FAIL_HERE : FAIL_OUTSIDE) : WORK;
    return kind < 4 ? HOLD : kind < 40 ? WORK : (unsigned[]){JOB, CHAIN, AGAIN, POST}[kind % 4];
}

static void live_once(struct life *life)
{
    pthread_t poller;
    int ms = 0;

    life->port = fake_open((int)(life->seed % 2));
    life->over = 0;
    if (pthread_create(&poller, NULL, listen_to, life) != 0)
        abort();
    for (int i = (int)((unsigned)rand_r(&life->seed) % COMMANDS); i > 0; i--) {
        char byte = (char)rand_r(&life->seed);

        if (!fake_control(life->port, any_command(&life->seed), &byte, 1))
            break;
        if (rand_r(&life->seed) % 8 == 0)
            (void)usleep(200);
    }
    if (rand_r(&life->seed) % 3 == 0)
        fake_kill(life->port);
    else
        fake_close(life->port);
    while (!fake_has_stopped(life->port) && ms++ < PATIENCE_MS)
        (void)usleep(1000);
    expect(fake_has_stopped(life->port));
    __atomic_store_n(&life->over, 1, __ATOMIC_SEQ_CST);
    (void)pthread_join(poller, NULL);
    fake_free(life->port);
}

static void *live(void *arg)
{
    for (int i = 0; i < LIVES; i++)
        live_once(arg);
    return NULL;
}

static void all_is_done_or_dropped_once_however_a_port_ends(void)
{
    pthread_t threads[PORTS];
    struct life lives[PORTS];

    pieces = done_count = dropped = refused = broken = starts = stops = 0;
    turns = 0;
    fake_entry = driver_init();
    CHECK_EQ(fake_entry == NULL, 0);
    for (unsigned i = 0; i < PORTS; i++) {
        memset(&lives[i], 0, sizeof lives[i]);
        lives[i].seed = i + 1;
        if (pthread_create(&threads[i], NULL, live, &lives[i]) != 0)
            abort();
    }
    for (int i = 0; i < PORTS; i++)
        (void)pthread_join(threads[i], NULL);
    /* One that posts may be late; as in the VM, the driver is not unloaded before it lets go. */
    for (int ms = 0; ms < PATIENCE_MS && __atomic_load_n(&posters, __ATOMIC_SEQ_CST) > 0; ms++)
        (void)usleep(1000);
    fake_entry->finish();
    CHECK_EQ(posters, 0);
    CHECK_EQ(broken, 0);
    CHECK_EQ(pieces, 0);
    CHECK_EQ(turns > 0, 1);
    CHECK_EQ(starts, PORTS * LIVES);
    CHECK_EQ(stops, starts);
}

static void ports_that_fail_end_as_well(void)
{
    fails = 1;
    all_is_done_or_dropped_once_however_a_port_ends();
    fails = 0;
    CHECK_EQ(dropped > 0, 1);
}

static void a_port_works_where_the_system_makes_every_second_thread(void)
{
    fake_refuse_threads = 2;
    all_is_done_or_dropped_once_however_a_port_ends();
    fake_refuse_threads = 0;
    CHECK_EQ(done_count > 0, 1);
}

static void a_port_refuses_where_the_system_makes_no_thread(void)
{
    fake_refuse_threads = 1;
    all_is_done_or_dropped_once_however_a_port_ends();
    fake_refuse_threads = 0;
    CHECK_EQ(refused > 0, 1);
}

/* ---- one port ------------------------------------------------------------------------------------- */

static ErlDrvPort alone(void)
{
    pieces = done_count = dropped = refused = broken = 0;
    gate_open = at_gate = 0;
    fake_entry = driver_init();
    return fake_open(0);
}

static void command(ErlDrvPort port, unsigned kind, enum tame_drv_where where)
{
    char byte = where == TAME_DRV_CPU ? 0 : 1;

    (void)fake_control(port, kind, &byte, 1);
}

static void ends(ErlDrvPort port)
{
    fake_close(port);
    for (int ms = 0; ms < PATIENCE_MS && !fake_has_stopped(port); ms++)
        fake_poll(port);
    CHECK_EQ(fake_has_stopped(port), 1);
    fake_free(port);
    fake_entry->finish();
    CHECK_EQ(broken, 0);
    CHECK_EQ(pieces, 0);
}

static void a_port_whose_work_is_done_while_it_becomes_busy_is_busy_no_more(void)
{
    const ErlDrvPort port = alone();

    command(port, GATE, TAME_DRV_CPU);
    for (int ms = 0; ms < PATIENCE_MS && !__atomic_load_n(&at_gate, __ATOMIC_SEQ_CST); ms++)
        (void)usleep(1000);
    for (int i = 1; i < TAME_DRV_BUSY_AT; i++)
        command(port, GATE, TAME_DRV_CPU);
    CHECK_EQ(port->busy, 0);
    command(port, LAST, TAME_DRV_CPU);
    CHECK_EQ(done_count, TAME_DRV_BUSY_AT + 1);
    for (int ms = 0; ms < PATIENCE_MS && port->busy; ms++)
        fake_poll(port);
    CHECK_EQ(port->busy, 0);
    ends(port);
}

static void what_a_port_has_taken_is_done_where_no_thread_of_its_kind_is_made(void)
{
    const ErlDrvPort port = alone();

    command(port, GATE, TAME_DRV_CPU);
    fake_refuse_threads = 1;
    command(port, GATE, TAME_DRV_IO);
    CHECK_EQ(refused, 0);
    __atomic_store_n(&gate_open, 1, __ATOMIC_SEQ_CST);
    for (int ms = 0; ms < PATIENCE_MS && __atomic_load_n(&done_count, __ATOMIC_SEQ_CST) < 2; ms++)
        (void)usleep(1000);
    fake_refuse_threads = 0;
    ends(port);
    CHECK_EQ(done_count, 2);
    CHECK_EQ(dropped, 0);
}

int main(void)
{
    RUN(all_is_done_or_dropped_once_however_a_port_ends);
    RUN(ports_that_fail_end_as_well);
    RUN(a_port_works_where_the_system_makes_every_second_thread);
    RUN(a_port_refuses_where_the_system_makes_no_thread);
    RUN(a_port_whose_work_is_done_while_it_becomes_busy_is_busy_no_more);
    RUN(what_a_port_has_taken_is_done_where_no_thread_of_its_kind_is_made);
    return check_report();
}
