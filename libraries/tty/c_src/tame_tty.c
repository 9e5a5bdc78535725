/* The terminal of a VM as a NIF library: opened apart from standard input, raw, waited for, and
 * turned back however its session ends.
 *
 * It is a descriptor of tame/fd.h, whose owner is the session's process. A VM has one terminal, so
 * one session at a time has it: `held`. It is turned back by what comes first: the end of the
 * descriptor (tty_release, or the death of its owner), exit() (`at_exit`, which is all that halt
 * runs), or the guard, a process of its own, when the VM ends without any of these. Each of them
 * does nothing where another has been. */
#include "tame/fd.h"
#include "tame/nif.h"
#include "mode.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <sys/ioctl.h>

/* What one call reads and writes at most: some 10 µs on a pseudo-terminal. */
#define READ_SIZE 4096
#define WRITE_SIZE 16384
/* How often exit() looks for the lock. */
#define LOOK_NS 1000000
#define LOOKS 1000

struct terminal {
    struct tame_fd fd;
    int number; /* guarded by the lock, as what follows: at_exit has it while it is being closed */
    int raw;
    long guard; /* its OS process */
    struct termios saved;
    size_t leave_len;
    char leave[TTY_LEAVE_SIZE];
};

/* Guards `held` and what is in it. Who has it calls nothing of fd.h, and waits for nobody but a terminal
 * that takes no more, 0.2 s at most, on a dirty scheduler or in exit(). */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct terminal *held;
static int over; /* exit() has turned the terminal back: nothing is written any more */

static ERL_NIF_TERM am_ok, am_error, am_wait, am_true, am_false;

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
static void cook(struct terminal *t, int tries)
{
    if (t->raw)
        tty_restore(t->number, &t->saved, t->leave, t->leave_len, tries);
    t->raw = 0;
}

/* However a session ends, once, when no call uses the terminal any more. One that released it has
 * turned it back before; of one that was killed the guard turns back what takes time. */
static void close_terminal(struct tame_fd *fd, int number)
{
    struct terminal *t = (struct terminal *)fd;

    pthread_mutex_lock(&lock);
    cook(t, TTY_AT_ONCE);
    if (held == t)
        held = NULL;
    pthread_mutex_unlock(&lock);
    (void)close(number);
}

TAME_FD(terminals, struct terminal, .close = close_terminal)

/* Waits a second at most, not by the wall clock, which somebody may set meanwhile. */
static int locked_in_time(void)
{
    const struct timespec look = {.tv_nsec = LOOK_NS};

    for (int n = 0; n < LOOKS; n++) {
        if (pthread_mutex_trylock(&lock) == 0)
            return 1;
        (void)nanosleep(&look, NULL);
    }
    return 0;
}

/* exit() is called on one thread while others may still write: after this they do not. */
static void at_exit(void)
{
    if (!locked_in_time())
        return;
    if (held != NULL) {
        cook(held, TTY_PATIENT);
        /* It would do so again, when the shell has the terminal. The session lives, so it does. */
        if (held->guard > 0)
            (void)kill((pid_t)held->guard, SIGKILL);
    }
    over = 1;
    pthread_mutex_unlock(&lock);
}

/* ---- NIFs ---- */

/* The handle, locked, open and used until unlock(); else NULL, and *result is what to return. */
static struct terminal *locked(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *result)
{
    struct terminal *t = tame_fd_get(env, term, &terminals);

    if (t == NULL) {
        *result = enif_make_badarg(env);
        return NULL;
    }
    *result = error_tuple(env, "closed");
    if (tame_fd_use(&t->fd) < 0)
        return NULL;
    pthread_mutex_lock(&lock);
    if (!over)
        return t;
    pthread_mutex_unlock(&lock);
    tame_fd_unuse(env, &t->fd);
    return NULL;
}

static void unlock(ErlNifEnv *env, struct terminal *t)
{
    pthread_mutex_unlock(&lock);
    tame_fd_unuse(env, &t->fd);
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

/* Whether the session has the terminal now; who has the lock has a terminal. Its owner may be dead
 * already, and the terminal closed: who uses it while it becomes `held` leaves that to the end of the
 * descriptor. */
static int hold(ErlNifEnv *env, struct terminal *t)
{
    int taken = 1;

    if (tame_fd_use(&t->fd) < 0)
        return 0;
    if (pthread_mutex_trylock(&lock) == 0) {
        taken = held != NULL || over;
        if (!taken)
            held = t;
        pthread_mutex_unlock(&lock);
    }
    tame_fd_unuse(env, &t->fd);
    if (taken)
        (void)tame_fd_close(env, &t->fd, NULL, 0);
    return !taken;
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
    int number, has;

    (void)argc;
    (void)argv;
    if (named < 0 || ttyname_r(named, path, sizeof path) != 0)
        return error_tuple(env, "no_terminal");
    /* Opened anew: O_NONBLOCK is then this session's alone, and what shares standard input keeps
     * its own. */
    number = open("/dev/tty", O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
    if (number < 0)
        return errno_tuple(env, errno);
    if (tcgetattr(number, &saved) != 0)
        return refused(number, errno_tuple(env, errno));
    if (tcgetpgrp(number) != getpgrp())
        return refused(number, error_tuple(env, "background"));
    t = tame_fd_new(env, &terminals, number, enif_self(env, &self));
    if (t == NULL)
        return refused(number, error_tuple(env, "enomem"));
    t->number = number;
    t->saved = saved;
    has = hold(env, t);
    term = tame_fd_term(env, t);
    if (!has)
        return error_tuple(env, "busy");
    return enif_make_tuple4(env, am_ok, term, enif_make_string(env, path, ERL_NIF_LATIN1),
                            isatty(0) && tcgetsid(0) == getsid(0) ? am_true : am_false);
}

/* What a read of standard input that is interrupted takes to come back, on an idle machine far less. */
#define MOMENT_NS 5000000

static ERL_NIF_TERM tty_interrupt(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> ok | {error, closed}. Who is blocked in a read of standard input comes back from it
     * with nothing: when the settings are set, the terminal's driver looks again whether it may block.
     * That flag is also of those who share standard input, so it is set for a moment, within this
     * call. */
    const struct timespec moment = {0, MOMENT_NS};
    ERL_NIF_TERM result;
    struct termios now;
    struct terminal *t = locked(env, argv[0], &result);
    int flags;

    (void)argc;
    if (t == NULL)
        return result;
    flags = fcntl(STDIN_FILENO, F_GETFL);
    if (flags >= 0 && tcgetattr(t->number, &now) == 0 &&
        fcntl(STDIN_FILENO, F_SETFL, flags | O_NONBLOCK) == 0) {
        (void)tty_set(t->number, &now);
        (void)nanosleep(&moment, NULL);
        (void)fcntl(STDIN_FILENO, F_SETFL, flags);
    }
    unlock(env, t);
    return am_ok;
}

static ERL_NIF_TERM tty_raw(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, Leave :: binary(), Guard :: integer()) -> ok | {error, Reason}: Leave is written
     * before the terminal is turned back. */
    ErlNifBinary leave;
    ERL_NIF_TERM result;
    struct termios raw;
    struct terminal *t;
    long guard;

    (void)argc;
    if (!enif_inspect_binary(env, argv[1], &leave) || leave.size > TTY_LEAVE_SIZE ||
        !enif_get_long(env, argv[2], &guard))
        return enif_make_badarg(env);
    t = locked(env, argv[0], &result);
    if (t == NULL)
        return result;
    memcpy(t->leave, leave.data, leave.size);
    t->leave_len = leave.size;
    t->guard = guard;
    raw = tty_raw_of(&t->saved);
    /* Before it is so: what fails half-way is turned back. */
    t->raw = 1;
    if (tcgetpgrp(t->number) != getpgrp())
        result = error_tuple(env, "background");
    else if (tty_set(t->number, &raw) != 0)
        result = errno_tuple(env, errno);
    else
        result = am_ok;
    if (result != am_ok)
        cook(t, TTY_PATIENT);
    unlock(env, t);
    return result;
}

static ERL_NIF_TERM tty_cooked(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle) -> ok | {error, closed}. It does not wait for input any more. */
    ERL_NIF_TERM result;
    struct terminal *t = locked(env, argv[0], &result);
    ErlNifPid self;

    (void)argc;
    if (t == NULL)
        return result;
    cook(t, TTY_PATIENT);
    unlock(env, t);
    (void)tame_fd_cancel(env, &t->fd, TAME_FD_READ, enif_self(env, &self));
    return am_ok;
}

/* What begin or wait answered, and is not TAME_FD_GO. */
static ERL_NIF_TERM fd_answer(ErlNifEnv *env, enum tame_fd_answer answer)
{
    if (answer == TAME_FD_WAIT)
        return am_wait;
    return error_tuple(env, answer == TAME_FD_CLOSED ? "closed" : "enomem");
}

/* A call that cannot go on now: {tame_fd, Ref, ready} comes. */
static ERL_NIF_TERM await(ErlNifEnv *env, struct terminal *t, enum tame_fd_direction direction,
                          const ErlNifPid *self, ERL_NIF_TERM ref)
{
    return fd_answer(env, tame_fd_wait(env, &t->fd, direction, self, ref));
}

static ERL_NIF_TERM tty_input(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, Ref) -> {ok, binary()} | wait | {error, hangup | Reason} */
    unsigned char bytes[READ_SIZE];
    struct terminal *t = tame_fd_get(env, argv[0], &terminals);
    enum tame_fd_answer answer;
    ERL_NIF_TERM binary;
    ErlNifPid self;
    ssize_t len;
    int error;

    (void)argc;
    if (t == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    answer = tame_fd_begin(env, &t->fd, TAME_FD_READ, enif_self(env, &self), argv[1]);
    if (answer != TAME_FD_GO)
        return fd_answer(env, answer);
    do
        len = read(tame_fd_number(&t->fd), bytes, sizeof bytes);
    while (len < 0 && errno == EINTR);
    error = errno;
    if (len < 0 && error == EAGAIN)
        return await(env, t, TAME_FD_READ, &self, argv[1]);
    tame_fd_done(env, &t->fd, TAME_FD_READ);
    /* A raw terminal has no end of file: its line was cut. */
    if (len == 0 || (len < 0 && error == EIO))
        return error_tuple(env, "hangup");
    if (len < 0)
        return errno_tuple(env, error);
    memcpy(enif_make_new_binary(env, (size_t)len, &binary), bytes, (size_t)len);
    return enif_make_tuple2(env, am_ok, binary);
}

/* What the terminal takes now, as write(2) says it; nothing after exit() has turned it back. */
static ssize_t put(struct terminal *t, const ErlNifBinary *bytes, int *error)
{
    ssize_t len = -1;

    *error = EIO;
    pthread_mutex_lock(&lock);
    if (!over) {
        do
            len =
                write(t->number, bytes->data, bytes->size < WRITE_SIZE ? bytes->size : WRITE_SIZE);
        while (len < 0 && errno == EINTR);
        *error = errno;
    }
    pthread_mutex_unlock(&lock);
    return len;
}

static ERL_NIF_TERM tty_output(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, binary(), Ref) -> {ok, Bytes} | wait | {error, hangup | Reason} */
    struct terminal *t = tame_fd_get(env, argv[0], &terminals);
    enum tame_fd_answer answer;
    ErlNifBinary bytes;
    ErlNifPid self;
    ssize_t len;
    int error;

    (void)argc;
    if (t == NULL || !enif_inspect_binary(env, argv[1], &bytes) || !enif_is_ref(env, argv[2]))
        return enif_make_badarg(env);
    answer = tame_fd_begin(env, &t->fd, TAME_FD_WRITE, enif_self(env, &self), argv[2]);
    if (answer != TAME_FD_GO)
        return fd_answer(env, answer);
    len = put(t, &bytes, &error);
    if (len < 0 && error == EAGAIN)
        return await(env, t, TAME_FD_WRITE, &self, argv[2]);
    tame_fd_done(env, &t->fd, TAME_FD_WRITE);
    if (len >= 0)
        return enif_make_tuple2(env, am_ok, enif_make_int64(env, len));
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
    error = ioctl(t->number, TIOCGWINSZ, &size) == 0 ? 0 : errno;
    unlock(env, t);
    if (error != 0)
        return error == EIO ? error_tuple(env, "hangup") : errno_tuple(env, error);
    return enif_make_tuple2(env, enif_make_int(env, size.ws_col), enif_make_int(env, size.ws_row));
}

static ERL_NIF_TERM tty_release(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Handle, Ref) -> ok | wait: turned back and closed when {tame_fd, Ref, closed} comes. */
    struct terminal *t = tame_fd_get(env, argv[0], &terminals);
    ERL_NIF_TERM closed;
    ErlNifPid self;

    (void)argc;
    if (t == NULL || !enif_is_ref(env, argv[1]))
        return enif_make_badarg(env);
    if (locked(env, argv[0], &closed) != NULL) {
        cook(t, TTY_PATIENT);
        unlock(env, t);
    }
    return tame_fd_close(env, &t->fd, enif_self(env, &self), argv[1]) == TAME_FD_WAIT ? am_wait
                                                                                      : am_ok;
}

/* ---- the library ---- */

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    static int registered;
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
    if (tame_fd_load(env, &terminals) != 0 || (!registered && atexit(at_exit) != 0))
        return 1;
    registered = 1;
    am_ok = enif_make_atom(env, "ok");
    am_error = enif_make_atom(env, "error");
    am_wait = enif_make_atom(env, "wait");
    am_true = enif_make_atom(env, "true");
    am_false = enif_make_atom(env, "false");
    return 0;
}

/* What sets a terminal may wait for its driver. acquire sets nothing, and makes the descriptor, which
 * is to be made on a normal scheduler. */
#define FUNCTIONS(JOB, NIF)                         \
    NIF(acquire, 0, tty_acquire, TAME_INLINE)       \
    NIF(interrupt, 1, tty_interrupt, TAME_DIRTY_IO) \
    NIF(raw, 3, tty_raw, TAME_DIRTY_IO)             \
    NIF(cooked, 1, tty_cooked, TAME_DIRTY_IO)       \
    NIF(input, 2, tty_input, TAME_INLINE)           \
    NIF(output, 3, tty_output, TAME_INLINE)         \
    NIF(size, 1, tty_size, TAME_INLINE)             \
    NIF(release, 2, tty_release, TAME_DIRTY_IO)

TAME_NIF_INIT(tame_tty_nif, FUNCTIONS, .load = load)
