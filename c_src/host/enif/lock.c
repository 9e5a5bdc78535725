/* The functions of the API on locks, on POSIX threads. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "memory/nif.h"

/* The header only names these types; what they are is ours. */
struct ErlDrvMutex_ {
    pthread_mutex_t lock;
    char *name;
};

struct ErlDrvCond_ {
    pthread_cond_t cond;
    char *name;
};

struct ErlDrvRWLock_ {
    pthread_rwlock_t lock;
    char *name;
};

static char *copy_name(const char *name)
{
    return name == NULL ? NULL : strdup(name);
}

/* ---- mutexes -------------------------------------------------------------------------- */

ErlNifMutex *enif_mutex_create(char *name)
{
    ErlNifMutex *mutex = malloc(sizeof *mutex);

    if (mutex == NULL)
        return NULL;
    pthread_mutex_init(&mutex->lock, NULL);
    mutex->name = copy_name(name);
    return mutex;
}

void enif_mutex_destroy(ErlNifMutex *mutex)
{
    pthread_mutex_destroy(&mutex->lock);
    free(mutex->name);
    free(mutex);
}

int enif_mutex_trylock(ErlNifMutex *mutex)
{
    return pthread_mutex_trylock(&mutex->lock);
}

void enif_mutex_lock(ErlNifMutex *mutex)
{
    pthread_mutex_lock(&mutex->lock);
}

void enif_mutex_unlock(ErlNifMutex *mutex)
{
    pthread_mutex_unlock(&mutex->lock);
}

char *enif_mutex_name(ErlNifMutex *mutex)
{
    return mutex == NULL ? NULL : mutex->name;
}

/* ---- conditions ----------------------------------------------------------------------- */

ErlNifCond *enif_cond_create(char *name)
{
    ErlNifCond *cond = malloc(sizeof *cond);

    if (cond == NULL)
        return NULL;
    pthread_cond_init(&cond->cond, NULL);
    cond->name = copy_name(name);
    return cond;
}

void enif_cond_destroy(ErlNifCond *cond)
{
    pthread_cond_destroy(&cond->cond);
    free(cond->name);
    free(cond);
}

void enif_cond_signal(ErlNifCond *cond)
{
    pthread_cond_signal(&cond->cond);
}

void enif_cond_broadcast(ErlNifCond *cond)
{
    pthread_cond_broadcast(&cond->cond);
}

void enif_cond_wait(ErlNifCond *cond, ErlNifMutex *mutex)
{
    pthread_cond_wait(&cond->cond, &mutex->lock);
}

char *enif_cond_name(ErlNifCond *cond)
{
    return cond == NULL ? NULL : cond->name;
}

/* ---- read-write locks ----------------------------------------------------------------- */

ErlNifRWLock *enif_rwlock_create(char *name)
{
    ErlNifRWLock *lock = malloc(sizeof *lock);

    if (lock == NULL)
        return NULL;
    pthread_rwlock_init(&lock->lock, NULL);
    lock->name = copy_name(name);
    return lock;
}

void enif_rwlock_destroy(ErlNifRWLock *lock)
{
    pthread_rwlock_destroy(&lock->lock);
    free(lock->name);
    free(lock);
}

int enif_rwlock_tryrlock(ErlNifRWLock *lock)
{
    return pthread_rwlock_tryrdlock(&lock->lock);
}

void enif_rwlock_rlock(ErlNifRWLock *lock)
{
    pthread_rwlock_rdlock(&lock->lock);
}

void enif_rwlock_runlock(ErlNifRWLock *lock)
{
    pthread_rwlock_unlock(&lock->lock);
}

int enif_rwlock_tryrwlock(ErlNifRWLock *lock)
{
    return pthread_rwlock_trywrlock(&lock->lock);
}

void enif_rwlock_rwlock(ErlNifRWLock *lock)
{
    pthread_rwlock_wrlock(&lock->lock);
}

void enif_rwlock_rwunlock(ErlNifRWLock *lock)
{
    pthread_rwlock_unlock(&lock->lock);
}

char *enif_rwlock_name(ErlNifRWLock *lock)
{
    return lock == NULL ? NULL : lock->name;
}
