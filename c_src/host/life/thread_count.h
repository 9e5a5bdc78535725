/* How many threads the library has: it may have limits.threads at once.
 *
 * The program exports a pthread_create of its own, which libraries find before the C library's, and
 * which counts. There is no limit of the system's for this: RLIMIT_NPROC counts the processes of a
 * user, those that were there before as well. Not counted: threads that the C library starts on its
 * own (thrd_create, timers), a bare clone(), and those of processes that the library starts.
 */
#ifndef TAME_HOST_THREAD_COUNT_H
#define TAME_HOST_THREAD_COUNT_H

#include <pthread.h>

/* pthread_create for the host's own threads. */
int thread_create_uncounted(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*main)(void *), void *arg);

#endif
