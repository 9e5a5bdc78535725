/* floor: what floor.h does, as a program.
 *
 *   floor PORT           says the port on which it listens, and ends with its standard input
 *   floor PORT asks      asks another thread, which sleeps meanwhile
 *   floor PORT megabyte  answers with a megabyte */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>

#include "floor.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t rung = PTHREAD_COND_INITIALIZER;
static unsigned asked; /* under the lock */
static _Atomic unsigned answered;

static void *be_asked(void *nothing)
{
    (void)pthread_mutex_lock(&lock);
    for (;;) {
        while (asked == atomic_load(&answered))
            (void)pthread_cond_wait(&rung, &lock);
        atomic_store(&answered, asked);
    }
    return nothing;
}

static int ask(struct client *client)
{
    unsigned mine;

    (void)client;

    (void)pthread_mutex_lock(&lock);
    mine = ++asked;
    (void)pthread_cond_signal(&rung);
    (void)pthread_mutex_unlock(&lock);
    while (atomic_load(&answered) != mine)
        ;
    return 1;
}

static int fail(const char *what)
{
    perror(what);
    return EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    const int listener = listen_at((unsigned short)(argc > 1 ? atoi(argv[1]) : 0));
    const int asks = argc > 2 && strcmp(argv[2], "asks") == 0;
    pthread_t other; /* ends with the process */

    says_megabytes = argc > 2 && strcmp(argv[2], "megabyte") == 0;
    if (listener < 0)
        return fail("listen");
    if (asks && pthread_create(&other, NULL, be_asked, NULL) != 0)
        return fail("a thread");
    printf("%u\n", port_of(listener));
    (void)fflush(stdout);
    if (answer_all(listener, STDIN_FILENO, asks ? ask : NULL) != 0)
        return fail("epoll");
    return EXIT_SUCCESS;
}
