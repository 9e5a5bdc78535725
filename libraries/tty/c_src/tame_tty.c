/* The terminal of a VM as a NIF library: opened apart from standard input, raw, waited for, and
 * turned back however its session ends.
 *
 * A VM has one terminal, so one session at a time has it: `held`. It is turned back by what comes
 * first: tty_release, the death of the session's process (`down`), exit() (`at_exit`, which is all
 * that halt runs), or the guard, a process of its own, when the VM ends without any of these. Each
 * of them does nothing where another has been. */
#include "tame/nif.h"
#include "descriptor.h"
#include "mode.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>

/* What one call reads and writes at most: some 10 µs on a pseudo-terminal. */
#define READ_SIZE 4096
#define WRITE_SIZE 16384

struct terminal {
    struct descriptor descriptor;
    ErlNifMonitor session;
    struct termios saved;
    int raw;
    size_t leave_len;
    char leave[TTY_LEAVE_SIZE];
};

static ErlNifResourceType *terminal_type;
/* Guards `held` and what is in it. No call with it waits. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct terminal *held;

static ERL_NIF_TERM am_ok, am_error, am_again, am_true, am_false;

static ERL_NIF_TERM error_tuple(ErlNifEnv *env, const char *reason)
{
    return enif_make_tuple2(env, am_error, enif_make_atom(env, reason));
}

static ERL_NIF_TERM errno_tuple(ErlNifEnv *env, int error)
{
    const char *name = error == EIO      ? "eio"
                       : error == EACCES ? "eacces"
                       : error == EMFILE ? "emfile"
                       : error == ENFILE ? "enfile"
                       : error == ENOTTY ? "enotty"
                       : error == ENXIO  ? "enxio"
                       : error == ENOENT ? "enoent"
                       : error == EPERM  ? "eperm"
                       : error == ENODEV ? "enodev"
                       : error == EINVAL ? "einval"
                                         : NULL;

    if (name == NULL)
        return enif_make_tuple2(env, am_error, enif_make_int(env, error));
    return error_tuple(env, name);
}

/* ---- turning it back ---- */

/* Under the lock. */
static void cook(struct terminal *t)
{
    if (t->raw)
        tty_restore(t->descriptor.fd, &t->saved, t->leave, t->leave_len);
    t->raw = 0;
}

/* However a session ends, once. */
static void end(ErlNifEnv *env, struct terminal *t)
{
    int first;

    pthread_mutex_lock(&lock);
    first = descriptor_end(&t->descriptor);
    if (first) {
        cook(t);
        if (held == t)
            held = NULL;
    }
    pthread_mutex_unlock(&lock);
    if (first)
        descriptor_stop(env, &t->descriptor, t);
}

static void terminal_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid;
    (void)monitor;
    end(env, object);
}

static void terminal_stop(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    (void)env;
    (void)event;
    (void)is_direct_call;
    descriptor_close(&((struct terminal *)object)->descriptor);
}

static void terminal_destroy(ErlNifEnv *env, void *object)
{
    struct terminal *t = object;

    (void)env;
    pthread_mutex_lock(&lock);
    if (held == t) {
        cook(t);
        held = NULL;
    }
    pthread_mutex_unlock(&lock);
    descriptor_close(&t->descriptor);
}

/* exit() is called on one thread while others may still write: after this they do not. */
static void at_exit(void)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 1;
    if (pthread_mutex_timedlock(&lock, &until) != 0)
        return;
    if (held != NULL) {
        cook(held);
        held->descriptor.ended = 1;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- NIFs ---- */

/* The handle, locked and not ended; else NULL, unlocked, and *result is what to return. */
static struct terminal *locked(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *result)
{
    void *object;
    struct terminal *t;

    if (!enif_get_resource(env, term, terminal_type, &object)) {
        *result = enif_make_badarg(env);
        return NULL;
    }
    t = object;
    pthread_mutex_lock(&lock);
    if (!t->descriptor.ended)
        return t;
    pthread_mutex_unlock(&lock);
    *result = error_tuple(env, "closed");
    return NULL;
}

/* Which of the standard descriptors is the terminal that controls this process; -1: none. */
static int standard(void)
{
    for (int fd = 0; fd <= 2; fd++)
        if (isatty(fd) && tcgetsid(fd) == getsid(0))
            return fd;
    return -1;
}

static ERL_NIF_TERM refused(int fd, ERL_NIF_TERM reason)
{
    if (fd >= 0)
        (void)close(fd);
    return reason;
}

static ERL_NIF_TERM tty_acquire(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> {ok, Handle, Path :: string(), StandardInputIsIt :: boolean()} | {error, atom()} */
    char path[256];
    struct termios saved;
    struct terminal *t;
    ErlNifPid self;
    ERL_NIF_TERM term;
    const int named = standard();
    int fd, taken;

    (void)argc;
    (void)argv;
    if (named < 0 || ttyname_r(named, path, sizeof path) != 0)
        return error_tuple(env, "no_terminal");
    /* Opened anew: O_NONBLOCK is then this session's alone, and what shares standard input keeps
     * its own. */
    fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return errno_tuple(env, errno);
    if (tcgetattr(fd, &saved) != 0)
        return refused(fd, errno_tuple(env, errno));
    if (tcgetpgrp(fd) != getpgrp())
        return refused(fd, error_tuple(env, "background"));
    t = enif_alloc_resource(terminal_type, sizeof *t);
    if (t == NULL)
        return refused(fd, error_tuple(env, "enomem"));
    memset(t, 0, sizeof *t);
    t->descriptor.fd = fd; /* the resource's from here on */
    t->saved = saved;
    (void)enif_self(env, &self);
    pthread_mutex_lock(&lock);
    taken = held != NULL;
    if (!taken)
        held = t;
    pthread_mutex_unlock(&lock);
    if (taken || enif_monitor_process(env, t, &self, &t->session) != 0) {
        enif_release_resource(t);
        return error_tuple(env, "busy");
    }
    term = enif_make_resource(env, t);
    enif_release_resource(t);
    return enif_make_tuple4(env, am_ok, term, enif_make_string(env, path, ERL_NIF_LATIN1),
                            isatty(0) && tcgetsid(0) == getsid(0) ? am_true : am_false);
}

static ERL_NIF_TERM tty_raw(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, Leave :: binary()) -> ok | {error, Reason}: Leave is written before the terminal is
     * turned back. */
    ErlNifBinary leave;
    ERL_NIF_TERM result;
    struct termios raw;
    struct terminal *t;

    (void)argc;
    if (!enif_inspect_binary(env, argv[1], &leave) || leave.size > TTY_LEAVE_SIZE)
        return enif_make_badarg(env);
    t = locked(env, argv[0], &result);
    if (t == NULL)
        return result;
    memcpy(t->leave, leave.data, leave.size);
    t->leave_len = leave.size;
    raw = tty_raw_of(&t->saved);
    /* Before it is so: what fails half-way is turned back. */
    t->raw = 1;
    if (tcgetpgrp(t->descriptor.fd) != getpgrp())
        result = error_tuple(env, "background");
    else if (tty_set(t->descriptor.fd, &raw) != 0)
        result = errno_tuple(env, errno);
    else
        result = am_ok;
    if (result != am_ok)
        cook(t);
    pthread_mutex_unlock(&lock);
    return result;
}

static ERL_NIF_TERM tty_cooked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> ok | {error, closed} */
    ERL_NIF_TERM result;
    struct terminal *t = locked(env, argv[0], &result);

    (void)argc;
    if (t == NULL)
        return result;
    cook(t);
    pthread_mutex_unlock(&lock);
    return am_ok;
}

static ERL_NIF_TERM await(ErlNifEnv *env, const ERL_NIF_TERM argv[], enum ErlNifSelectFlags event)
{
    ERL_NIF_TERM result;
    struct terminal *t;

    if (!enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    t = locked(env, argv[0], &result);
    if (t == NULL)
        return result;
    result = descriptor_await(env, &t->descriptor, t, event, argv[1]) ? am_ok
                                                                      : error_tuple(env, "select");
    pthread_mutex_unlock(&lock);
    return result;
}

static ERL_NIF_TERM tty_await_input(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, reference()) -> ok | {error, Reason}, then {select, Handle, Ref, ready_input} */
    (void)argc;
    return await(env, argv, ERL_NIF_SELECT_READ);
}

static ERL_NIF_TERM tty_await_output(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return await(env, argv, ERL_NIF_SELECT_WRITE);
}

static ERL_NIF_TERM tty_input(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> {ok, binary()} | again | {error, hangup | Reason} */
    unsigned char bytes[READ_SIZE], *copy;
    ERL_NIF_TERM result, binary;
    struct terminal *t = locked(env, argv[0], &result);
    ssize_t len;
    int error;

    (void)argc;
    if (t == NULL)
        return result;
    do
        len = read(t->descriptor.fd, bytes, sizeof bytes);
    while (len < 0 && errno == EINTR);
    error = errno;
    pthread_mutex_unlock(&lock);
    if (len < 0 && error == EAGAIN)
        return am_again;
    /* A raw terminal has no end of file: its line was cut. */
    if (len == 0 || (len < 0 && error == EIO))
        return error_tuple(env, "hangup");
    if (len < 0)
        return errno_tuple(env, error);
    copy = enif_make_new_binary(env, (size_t)len, &binary);
    memcpy(copy, bytes, (size_t)len);
    return enif_make_tuple2(env, am_ok, binary);
}

static ERL_NIF_TERM tty_output(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, binary()) -> {ok, Bytes} | again | {error, hangup | Reason} */
    ErlNifBinary bytes;
    ERL_NIF_TERM result;
    struct terminal *t;
    ssize_t len;
    int error;

    (void)argc;
    if (!enif_inspect_binary(env, argv[1], &bytes))
        return enif_make_badarg(env);
    t = locked(env, argv[0], &result);
    if (t == NULL)
        return result;
    do
        len =
            write(t->descriptor.fd, bytes.data, bytes.size < WRITE_SIZE ? bytes.size : WRITE_SIZE);
    while (len < 0 && errno == EINTR);
    error = errno;
    pthread_mutex_unlock(&lock);
    if (len >= 0)
        return enif_make_tuple2(env, am_ok, enif_make_int64(env, len));
    if (error == EAGAIN)
        return am_again;
    return error == EIO ? error_tuple(env, "hangup") : errno_tuple(env, error);
}

static ERL_NIF_TERM tty_size(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> {Columns, Rows} | {error, Reason} */
    ERL_NIF_TERM result;
    struct winsize size;
    struct terminal *t = locked(env, argv[0], &result);
    int error;

    (void)argc;
    if (t == NULL)
        return result;
    error = ioctl(t->descriptor.fd, TIOCGWINSZ, &size) == 0 ? 0 : errno;
    pthread_mutex_unlock(&lock);
    if (error != 0)
        return error == EIO ? error_tuple(env, "hangup") : errno_tuple(env, error);
    return enif_make_tuple2(env, enif_make_int(env, size.ws_col), enif_make_int(env, size.ws_row));
}

static ERL_NIF_TERM tty_release(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> ok */
    void *object;

    (void)argc;
    if (!enif_get_resource(env, argv[0], terminal_type, &object))
        return enif_make_badarg(env);
    end(env, object);
    return am_ok;
}

/* ---- the library ---- */

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    static int registered;
    const ErlNifResourceTypeInit init = {
        .dtor = terminal_destroy, .stop = terminal_stop, .down = terminal_down, .members = 3};
    int taken;

    (void)data;
    (void)load_info;
    pthread_mutex_lock(&lock);
    taken = held != NULL;
    pthread_mutex_unlock(&lock);
    if (taken) {
        fprintf(stderr, "tame_tty: not loaded anew: a session has the terminal\n");
        return 1;
    }
    terminal_type =
        enif_init_resource_type(env, "tame_tty_terminal", (ErlNifResourceTypeInit *)&init,
                                ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    if (terminal_type == NULL || (!registered && atexit(at_exit) != 0))
        return 1;
    registered = 1;
    am_ok = enif_make_atom(env, "ok");
    am_error = enif_make_atom(env, "error");
    am_again = enif_make_atom(env, "again");
    am_true = enif_make_atom(env, "true");
    am_false = enif_make_atom(env, "false");
    return 0;
}

/* What sets a terminal may wait for its driver. */
#define FUNCTIONS(JOB, NIF)                             \
    NIF(acquire, 0, tty_acquire, TAME_DIRTY_IO)         \
    NIF(raw, 2, tty_raw, TAME_DIRTY_IO)                 \
    NIF(cooked, 1, tty_cooked, TAME_DIRTY_IO)           \
    NIF(await_input, 2, tty_await_input, TAME_INLINE)   \
    NIF(await_output, 2, tty_await_output, TAME_INLINE) \
    NIF(input, 1, tty_input, TAME_INLINE)               \
    NIF(output, 2, tty_output, TAME_INLINE)             \
    NIF(size, 1, tty_size, TAME_INLINE)                 \
    NIF(release, 1, tty_release, TAME_DIRTY_IO)

TAME_NIF_INIT(tame_tty_nif, FUNCTIONS, .load = load)
