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
#include <time.h>
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

/* How often it is tried to write to a terminal that takes nothing, 1 ms apart. */
#define TTY_PATIENT 100
#define TTY_AT_ONCE 0

/* Writes what the terminal takes. It takes nothing while it is full; or for a moment, while another
 * thread is in a write to it, which the system lets nobody join. Returns how much is left. */
static inline size_t tty_put(int fd, const char *text, size_t len, int tries)
{
    const struct timespec pause = {0, 1000000};

    while (len > 0) {
        const ssize_t written = write(fd, text, len);

        if (written > 0) {
            text += written;
            len -= (size_t)written;
        } else if (written < 0 && errno == EAGAIN && tries > 0) {
            tries--;
            (void)nanosleep(&pause, NULL);
        } else if (written == 0 || errno != EINTR) {
            break;
        }
    }
    return len;
}

/* Turns the terminal back, when its settings are still those that we made of `saved`, or `saved`:
 * OTP 26 and newer set those back when the VM is killed, but not the screen. Else another program
 * has it, and it is left alone. `leave` is written first, while nothing is done with it. On a
 * terminal that takes no more (fd is then non-blocking): TTY_PATIENT gives up what it has not shown
 * after 0.1 s, and writes `leave` instead; TTY_AT_ONCE leaves `leave` to the guard. */
static inline void tty_restore(int fd, const struct termios *saved, const char *leave, size_t len,
                               int tries)
{
    const struct termios raw = tty_raw_of(saved);
    struct termios now;
    size_t left;

    if (tcgetattr(fd, &now) != 0 || !(tty_same(&now, &raw) || tty_same(&now, saved)))
        return;
    left = tty_put(fd, leave, len, tries);
    if (left > 0 && tries > 0) {
        (void)tcflush(fd, TCOFLUSH);
        (void)tty_put(fd, leave + len - left, left, tries);
    }
    (void)tty_set(fd, saved);
}

#endif
