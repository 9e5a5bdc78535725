/* mode.h - a terminal's settings: which are raw, and how the old ones come back.
 *
 * Plain C, for the NIF library and for the guard: both find by the same rule whether the settings
 * are still ours. */
#ifndef TAME_TTY_MODE_H
#define TAME_TTY_MODE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* What turns the terminal back: sequences that the session's were chosen from, far shorter. */
#define TTY_LEAVE_SIZE 256

/* Every byte as it comes, one at a time, and nothing done with what is written. */
static inline struct termios tty_raw_of(const struct termios *saved)
{
    struct termios raw = *saved;

    cfmakeraw(&raw);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    return raw;
}

/* Member by member: the struct has gaps, and speeds that not every driver keeps. */
static inline int tty_same(const struct termios *a, const struct termios *b)
{
    return a->c_iflag == b->c_iflag && a->c_oflag == b->c_oflag && a->c_cflag == b->c_cflag &&
           a->c_lflag == b->c_lflag && memcmp(a->c_cc, b->c_cc, sizeof a->c_cc) == 0;
}

/* Sets them at once, also from a process group in the background, which SIGTTOU would stop. 0, or
 * -1 with errno. */
static inline int tty_set(int fd, const struct termios *settings)
{
    sigset_t block, before;
    int result, error;

    sigemptyset(&block);
    sigaddset(&block, SIGTTOU);
    (void)pthread_sigmask(SIG_BLOCK, &block, &before);
    do
        result = tcsetattr(fd, TCSANOW, settings);
    while (result != 0 && errno == EINTR);
    error = errno;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return result;
}

/* Turns the terminal back, when its settings are still those that we made of `saved`, or `saved`:
 * OTP 26 and newer set those back when the VM is killed, but not the screen. Else another program
 * has it, and it is left alone. `leave` is written first, while nothing is done with it. On a
 * terminal that takes no more (fd is then non-blocking) what it has not shown yet is given up. */
static inline void tty_restore(int fd, const struct termios *saved, const char *leave, size_t len)
{
    const struct termios raw = tty_raw_of(saved);
    struct termios now;

    if (tcgetattr(fd, &now) != 0 || !(tty_same(&now, &raw) || tty_same(&now, saved)))
        return;
    for (int tries = 0; len > 0 && tries < 8; tries++) {
        const ssize_t written = write(fd, leave, len);

        if (written > 0) {
            leave += written;
            len -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN) {
            (void)tcflush(fd, TCOFLUSH);
        } else if (written == 0 || errno != EINTR) {
            break;
        }
    }
    (void)tty_set(fd, saved);
}

#endif
