/* fake_threads.h - memory, locks and the VM's functions for threads, as pthreads have them. Part of
 * fake_nif.h and of fake_driver.h. */
#ifndef TEST_FAKE_THREADS_H
#define TEST_FAKE_THREADS_H

#include <erl_nif.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void *fake_memory(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL)
        abort();
    return memory;
}

/* What this thread does each time that it has let a lock go; NULL: nothing. */
static __thread void (*fake_unlocked)(void);

/* The functions PREFIX_mutex_create and so on: those of a NIF, or those of a driver. */
#define FAKE_LOCKS(PREFIX, MUTEX, COND)                                      \
    MUTEX *PREFIX##_mutex_create(char *name)                                 \
    {                                                                        \
        pthread_mutex_t *mutex = fake_memory(sizeof *mutex);                 \
                                                                             \
        (void)name;                                                          \
        pthread_mutex_init(mutex, NULL);                                     \
        return (MUTEX *)mutex;                                               \
    }                                                                        \
    void PREFIX##_mutex_destroy(MUTEX *mutex)                                \
    {                                                                        \
        pthread_mutex_destroy((pthread_mutex_t *)mutex);                     \
        free(mutex);                                                         \
    }                                                                        \
    void PREFIX##_mutex_lock(MUTEX *mutex)                                   \
    {                                                                        \
        pthread_mutex_lock((pthread_mutex_t *)mutex);                        \
    }                                                                        \
    void PREFIX##_mutex_unlock(MUTEX *mutex)                                 \
    {                                                                        \
        pthread_mutex_unlock((pthread_mutex_t *)mutex);                      \
        if (fake_unlocked != NULL)                                           \
            fake_unlocked();                                                 \
    }                                                                        \
    COND *PREFIX##_cond_create(char *name)                                   \
    {                                                                        \
        pthread_cond_t *cond = fake_memory(sizeof *cond);                    \
                                                                             \
        (void)name;                                                          \
        pthread_cond_init(cond, NULL);                                       \
        return (COND *)cond;                                                 \
    }                                                                        \
    void PREFIX##_cond_destroy(COND *cond)                                   \
    {                                                                        \
        pthread_cond_destroy((pthread_cond_t *)cond);                        \
        free(cond);                                                          \
    }                                                                        \
    void PREFIX##_cond_signal(COND *cond)                                    \
    {                                                                        \
        pthread_cond_signal((pthread_cond_t *)cond);                         \
    }                                                                        \
    void PREFIX##_cond_broadcast(COND *cond)                                 \
    {                                                                        \
        pthread_cond_broadcast((pthread_cond_t *)cond);                      \
    }                                                                        \
    void PREFIX##_cond_wait(COND *cond, MUTEX *mutex)                        \
    {                                                                        \
        pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex); \
    }

static int fake_refuse_threads; /* one thread of that many is not made; 0: all are */
static int fake_late_us;        /* so long after its thread has begun its maker goes on */

int enif_thread_create(char *name, ErlNifTid *tid, void *(*run)(void *), void *arg,
                       ErlNifThreadOpts *opts)
{
    static unsigned asked;
    pthread_t thread;

    (void)name;
    (void)opts;
    if (fake_refuse_threads > 0 &&
        __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST) % (unsigned)fake_refuse_threads == 0)
        return usleep(50) == 0; /* it takes the system a while to find that out */
    if (pthread_create(&thread, NULL, run, arg) != 0)
        return 1;
    *tid = (ErlNifTid)thread;
    if (fake_late_us > 0)
        (void)usleep((useconds_t)fake_late_us);
    return 0;
}

int enif_thread_join(ErlNifTid tid, void **result)
{
    return pthread_join((pthread_t)tid, result);
}

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    (void)name;
    return fake_memory(sizeof(ErlNifThreadOpts));
}

void enif_thread_opts_destroy(ErlNifThreadOpts *opts)
{
    free(opts);
}

#endif
