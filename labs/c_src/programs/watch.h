/* Ends the program when its standard input ends, or says anything: a newline is the goodbye.
 *
 * The VM holds the other end of a port's standard input. It closes when the port
 * is closed, when the process that owns the port dies, and when the VM itself dies in
 * whatever way, SIGKILL included. So a program that watches it never outlives its VM.
 *
 * A thread of its own, blocked in read(), costs the echo nothing; asking poll() before
 * each message would cost one system call per message.
 */
#ifndef TAME_WATCH_H
#define TAME_WATCH_H

#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

static inline void *watch_stdin_main(void *unused)
{
    char goodbye;

    (void)unused;
    while (read(STDIN_FILENO, &goodbye, 1) < 0 && errno == EINTR) {
    }
    _exit(0); /* at once: the other thread may be blocked in anything */
}

/* Returns 0, or the error number that says why there is no thread. Nobody else may read
 * standard input from here on. */
static inline int watch_stdin(void)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, watch_stdin_main, NULL);

    return error != 0 ? error : pthread_detach(thread);
}

#endif
