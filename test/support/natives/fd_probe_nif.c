/* Descriptors of all kinds on tame/fd.h, for Tame.FdProbe: calls as an author would write them, and the
 * states between begin and done from outside. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <tame/fd.h>

struct probe {
    struct tame_fd fd;
    int tag;
};

static int closed, destroyed, lost; /* atomic; over all of this library */

static void probe_close(struct tame_fd *fd, int number)
{
    (void)fd;
    (void)close(number);
    __atomic_fetch_add(&closed, 1, __ATOMIC_RELAXED);
}

static void probe_destroy(struct tame_fd *fd)
{
    (void)fd;
    __atomic_fetch_add(&destroyed, 1, __ATOMIC_RELAXED);
}

static void probe_lost(ErlNifEnv *env, struct tame_fd *fd, enum tame_fd_direction direction)
{
    (void)env;
    (void)fd;
    (void)direction;
    __atomic_fetch_add(&lost, 1, __ATOMIC_RELAXED);
}

TAME_FD(probes, struct probe, .close = probe_close, .destroy = probe_destroy, .lost = probe_lost)

static const char *const answers[] = {"go",     "wait",   "busy",      "done",      "sent",
                                      "closed", "failed", "not_owner", "no_process"};

static ERL_NIF_TERM answer(ErlNifEnv *env, enum tame_fd_answer value)
{
    return enif_make_atom(env, answers[value]);
}

static int is(ErlNifEnv *env, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, enif_make_atom(env, name));
}

static struct tame_fd *get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return (struct tame_fd *)tame_fd_get(env, term, &probes);
}

static enum tame_fd_direction direction_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    return is(env, term, "read") ? TAME_FD_READ : TAME_FD_WRITE;
}

static ERL_NIF_TERM make(ErlNifEnv *env, int number)
{
    ErlNifPid self;
    void *probe;

    if (number < 0)
        return enif_make_int(env, -errno);
    probe = tame_fd_new(env, &probes, number, enif_self(env, &self));
    if (probe == NULL) {
        (void)close(number);
        return enif_make_atom(env, "refused");
    }
    return tame_fd_term(env, probe);
}

/* (Kind) -> {Fd, Other} */
static ERL_NIF_TERM open_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int both[2] = {-1, -1};

    (void)argc;
    if (is(env, argv[0], "eventfd"))
        both[0] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
    else if (is(env, argv[0], "timerfd"))
        both[0] = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    else if (is(env, argv[0], "null"))
        both[0] = open("/dev/null", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    else if (is(env, argv[0], "pipe"))
        (void)!pipe2(both, O_NONBLOCK | O_CLOEXEC);
    else if (is(env, argv[0], "sockets"))
        (void)socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, both);
    else
        return enif_make_badarg(env);
    if (both[1] < 0)
        return enif_make_tuple2(env, make(env, both[0]), enif_make_atom(env, "none"));
    return enif_make_tuple2(env, make(env, both[0]), make(env, both[1]));
}

/* (Fd, Ref) -> Bytes (a byte, or the 8 of a counter) | wait | closed | end | Failure */
static ERL_NIF_TERM read_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    enum tame_fd_answer turn;
    struct stat stat;
    char bytes[8];
    ErlNifPid self;
    ssize_t n;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    turn = tame_fd_begin(env, fd, TAME_FD_READ, enif_self(env, &self), argv[1]);
    if (turn != TAME_FD_GO)
        return answer(env, turn);
    n = fstat(tame_fd_number(fd), &stat) == 0 && (S_ISSOCK(stat.st_mode) || S_ISFIFO(stat.st_mode))
            ? read(tame_fd_number(fd), bytes, 1)
            : read(tame_fd_number(fd), bytes, 8);
    if (n < 0 && errno == EAGAIN)
        return answer(env, tame_fd_wait(env, fd, TAME_FD_READ, &self, argv[1]));
    tame_fd_done(env, fd, TAME_FD_READ);
    return n == 0 ? enif_make_atom(env, "end") : enif_make_int(env, n < 0 ? -errno : (int)n);
}

/* (Fd, Bytes, Ref) -> Bytes | wait | ... */
static ERL_NIF_TERM write_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    enum tame_fd_answer turn;
    ErlNifBinary bytes;
    ErlNifPid self;
    ssize_t n;

    (void)argc;
    if (fd == NULL || !enif_inspect_binary(env, argv[1], &bytes))
        return enif_make_badarg(env);
    turn = tame_fd_begin(env, fd, TAME_FD_WRITE, enif_self(env, &self), argv[2]);
    if (turn != TAME_FD_GO)
        return answer(env, turn);
    n = write(tame_fd_number(fd), bytes.data, bytes.size);
    if (n < 0 && errno == EAGAIN)
        return answer(env, tame_fd_wait(env, fd, TAME_FD_WRITE, &self, argv[2]));
    tame_fd_done(env, fd, TAME_FD_WRITE);
    return enif_make_int64(env, n < 0 ? -errno : n);
}

/* (Fd, read | write, Ref): the wait itself, of what is ready or not */
static ERL_NIF_TERM wait_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    const enum tame_fd_direction direction = direction_of(env, argv[1]);
    enum tame_fd_answer turn;
    ErlNifPid self;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    turn = tame_fd_begin(env, fd, direction, enif_self(env, &self), argv[2]);
    return answer(env,
                  turn != TAME_FD_GO ? turn : tame_fd_wait(env, fd, direction, &self, argv[2]));
}

/* (Fd, read | write) -> go | ...: what done/2 or a later wait ends */
static ERL_NIF_TERM begin_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    return answer(env,
                  tame_fd_begin(env, fd, direction_of(env, argv[1]), enif_self(env, &self), 0));
}

static ERL_NIF_TERM done_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    tame_fd_done(env, fd, direction_of(env, argv[1]));
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM cancel_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    return answer(env, tame_fd_cancel(env, fd, direction_of(env, argv[1]), enif_self(env, &self)));
}

static ERL_NIF_TERM wake_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    tame_fd_wake(env, fd, direction_of(env, argv[1]));
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM close_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    ErlNifPid self;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    return answer(env, tame_fd_close(env, fd, enif_self(env, &self), argv[1]));
}

static ERL_NIF_TERM give_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    ErlNifPid self, to;

    (void)argc;
    if (fd == NULL || !enif_get_local_pid(env, argv[1], &to))
        return enif_make_badarg(env);
    return answer(env, tame_fd_give(env, fd, enif_self(env, &self), &to));
}

/* (Fd) -> the number, or -1 */
static ERL_NIF_TERM number_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    int number;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    number = tame_fd_use(fd);
    if (number >= 0)
        tame_fd_unuse(env, fd);
    return enif_make_int(env, number);
}

/* What a thread of the library's own does. */
struct work {
    struct tame_fd *fd; /* kept */
    ErlNifPid pid;
    int what;
    enum tame_fd_answer answer;
};

static void *run(void *arg)
{
    struct work *work = arg;

    switch (work->what) {
    case 0:
        work->answer = tame_fd_close(NULL, work->fd, NULL, 0);
        break;
    case 1:
        work->answer = tame_fd_begin(NULL, work->fd, TAME_FD_READ, &work->pid, 0);
        if (work->answer == TAME_FD_GO)
            tame_fd_done(NULL, work->fd, TAME_FD_READ);
        break;
    case 2:
        work->answer = tame_fd_cancel(NULL, work->fd, TAME_FD_READ, &work->pid);
        break;
    case 3:
        tame_fd_wake(NULL, work->fd, TAME_FD_READ);
        work->answer = TAME_FD_DONE;
        break;
    default:
        work->answer = tame_fd_begin(NULL, work->fd, TAME_FD_READ, &work->pid, 0);
        if (work->answer == TAME_FD_GO) {
            ErlNifEnv *env = enif_alloc_env();

            work->answer = tame_fd_wait(env, work->fd, TAME_FD_READ, &work->pid,
                                        enif_make_atom(env, "thread"));
            enif_free_env(env);
        }
    }
    return NULL;
}

/* (Fd, 0 close | 1 begin and done | 2 cancel | 3 wake | 4 wait, Pid) -> its answer */
static ERL_NIF_TERM thread_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work work = {.fd = get(env, argv[0])};
    ErlNifTid thread;

    (void)argc;
    if (work.fd == NULL || !enif_get_int(env, argv[1], &work.what) ||
        !enif_get_local_pid(env, argv[2], &work.pid) ||
        enif_thread_create("fd_probe", &thread, run, &work, NULL) != 0)
        return enif_make_badarg(env);
    (void)enif_thread_join(thread, NULL);
    return answer(env, work.answer);
}

/* () -> {Closed, Destroyed, Lost} */
static ERL_NIF_TERM counts_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_tuple3(env, enif_make_int(env, __atomic_load_n(&closed, __ATOMIC_RELAXED)),
                            enif_make_int(env, __atomic_load_n(&destroyed, __ATOMIC_RELAXED)),
                            enif_make_int(env, __atomic_load_n(&lost, __ATOMIC_RELAXED)));
}

/* (Number) -> number | -1: a guard on a number that must be free, in nobody's hands; unguard -> whether it
 * was still what it was. */
static ERL_NIF_TERM guard_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int number, guard;

    (void)argc;
    if (!enif_get_int(env, argv[0], &number))
        return enif_make_badarg(env);
    guard = eventfd(7, EFD_CLOEXEC | EFD_NONBLOCK);
    if (guard != number && fcntl(number, F_GETFD) < 0) {
        (void)dup3(guard, number, O_CLOEXEC);
        (void)close(guard);
        guard = number;
    }
    if (guard != number) {
        (void)close(guard);
        guard = -1;
    }
    return enif_make_int(env, guard);
}

static ERL_NIF_TERM unguard_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    uint64_t value = 0;
    int number;

    (void)argc;
    if (!enif_get_int(env, argv[0], &number))
        return enif_make_badarg(env);
    if (read(number, &value, sizeof value) != sizeof value || value != 7)
        return enif_make_atom(env, "false");
    (void)close(number);
    return enif_make_atom(env, "true");
}

/* (Fd) -> 0 | Failure: the other end reads to the end. */
static ERL_NIF_TERM half_close_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tame_fd *fd = get(env, argv[0]);
    int number, failure;

    (void)argc;
    if (fd == NULL)
        return enif_make_badarg(env);
    number = tame_fd_use(fd);
    if (number < 0)
        return enif_make_atom(env, "closed");
    failure = shutdown(number, SHUT_WR) == 0 ? 0 : -errno;
    tame_fd_unuse(env, fd);
    return enif_make_int(env, failure);
}

/* What takes the descriptors that are left, all of ours below the lowered limit. */
#define EXHAUSTED 1024
static int taken[EXHAUSTED], taken_len;
static struct rlimit limit_before;

/* () -> how many; until `relieve` the process gets no descriptor. */
static ERL_NIF_TERM exhaust_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct rlimit limit;

    (void)argc;
    (void)argv;
    (void)getrlimit(RLIMIT_NOFILE, &limit_before);
    limit = limit_before;
    if (limit.rlim_cur > EXHAUSTED)
        limit.rlim_cur = EXHAUSTED;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    while (taken_len < EXHAUSTED && (taken[taken_len] = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0)
        taken_len++;
    return enif_make_int(env, taken_len);
}

static ERL_NIF_TERM relieve_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    if (taken_len > 0)
        (void)setrlimit(RLIMIT_NOFILE, &limit_before);
    while (taken_len > 0)
        (void)close(taken[--taken_len]);
    return enif_make_atom(env, "ok");
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)priv_data;
    (void)load_info;
    return tame_fd_load(env, &probes);
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

static ErlNifFunc functions[] = {
    {"open", 1, open_nif, 0},
    {"read", 2, read_nif, 0},
    {"read_dirty", 2, read_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"write", 3, write_nif, 0},
    {"wait", 3, wait_nif, 0},
    {"wait_dirty", 3, wait_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"begin", 2, begin_nif, 0},
    {"done", 2, done_nif, 0},
    {"cancel", 2, cancel_nif, 0},
    {"wake", 2, wake_nif, 0},
    {"close", 2, close_nif, 0},
    {"close_dirty", 2, close_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"give", 2, give_nif, 0},
    {"number", 1, number_nif, 0},
    {"thread", 3, thread_nif, 0},
    {"counts", 0, counts_nif, 0},
    {"guard", 1, guard_nif, 0},
    {"unguard", 1, unguard_nif, 0},
    {"half_close", 1, half_close_nif, 0},
    {"exhaust", 0, exhaust_nif, 0},
    {"relieve", 0, relieve_nif, 0},
};

ERL_NIF_INIT(Elixir.Tame.FdProbe, functions, load, NULL, upgrade, NULL)
