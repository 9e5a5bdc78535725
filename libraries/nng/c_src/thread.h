/* thread.h - a thread that nobody joins, for what takes time: its code stays mapped (socket.h). */
#ifndef TAME_NNG_THREAD_H
#define TAME_NNG_THREAD_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

#define TN_THREAD_STACK ((size_t)256 * 1024)

/* Returns 0, or an error. */
static inline int tn_thread(void *(*run)(void *), void *arg)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    pthread_t thread;
    int error = pthread_attr_init(&attributes);

    if (error != 0)
        return error;
    (void)pthread_attr_setstacksize(&attributes, TN_THREAD_STACK);
    (void)sigfillset(&all); /* signals are the VM's */
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&thread, &attributes, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    (void)pthread_attr_destroy(&attributes);
    if (error == 0)
        (void)pthread_detach(thread);
    return error;
}

#endif
