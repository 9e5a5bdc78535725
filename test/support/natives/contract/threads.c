/* Threads, locks and thread-specific data. */
#include "contract.h"

static ErlNifMutex *mutex;
static ErlNifCond *cond;
static int flag;

void load_threads(void)
{
    char mutex_name[] = "contract mutex", cond_name[] = "contract cond";

    mutex = enif_mutex_create(mutex_name);
    cond = enif_cond_create(cond_name);
}

void unload_threads(void)
{
    enif_mutex_destroy(mutex);
    enif_cond_destroy(cond);
}

static void *wait_main(void *arg)
{
    (void)arg;
    enif_mutex_lock(mutex);
    flag = 1;
    enif_cond_broadcast(cond);
    while (flag != 2)
        enif_cond_wait(cond, mutex);
    flag = 3;
    enif_mutex_unlock(mutex);
    enif_thread_exit(&flag);
    return NULL;
}

/* Threads, mutexes, conditions as ErlDrv*: they work with each other, and have names. */
CASE(threads)
{
    struct results r = {.len = 0};
    char name[] = "waiter";
    ErlNifThreadOpts *options = enif_thread_opts_create(name);
    ErlNifTid tid;
    void *result = NULL;

    flag = 0;
    add_int(env, &r, options->suggested_stack_size);
    options->suggested_stack_size = 64;
    add_int(env, &r, enif_thread_create(name, &tid, wait_main, NULL, options));
    enif_thread_opts_destroy(options);
    add(&r, text(env, enif_thread_name(tid)));
    enif_mutex_lock(mutex);
    while (flag != 1)
        enif_cond_wait(cond, mutex);
    add_int(env, &r, enif_equal_tids(tid, enif_thread_self()) != 0);
    add_int(env, &r, enif_equal_tids(enif_thread_self(), enif_thread_self()) != 0);
    flag = 2;
    enif_cond_signal(cond);
    enif_mutex_unlock(mutex);
    add_int(env, &r, enif_thread_join(tid, &result));
    add_int(env, &r, result == &flag);
    add_int(env, &r, flag);
    add(&r, text(env, enif_mutex_name(mutex)));
    add(&r, text(env, enif_cond_name(cond)));
    return all(env, &r);
}

/* Blocks until open_gate is called, by another thread therefore. */
CASE(wait_for_gate)
{
    enif_mutex_lock(mutex);
    while (flag != 100)
        enif_cond_wait(cond, mutex);
    flag = 0;
    enif_mutex_unlock(mutex);
    return enif_make_atom(env, "opened");
}

CASE(open_gate)
{
    enif_mutex_lock(mutex);
    flag = 100;
    enif_cond_broadcast(cond);
    enif_mutex_unlock(mutex);
    return enif_make_atom(env, "ok");
}

/* Locks: "trylock returns 0 on success, otherwise EBUSY". */
CASE(locks)
{
    struct results r = {.len = 0};
    char name[] = "rw";
    ErlNifRWLock *lock = enif_rwlock_create(name);

    add_int(env, &r, enif_mutex_trylock(mutex));
    add_int(env, &r, enif_mutex_trylock(mutex) != 0);
    enif_mutex_unlock(mutex);
    add_int(env, &r, enif_rwlock_tryrlock(lock));
    add_int(env, &r, enif_rwlock_tryrlock(lock));
    add_int(env, &r, enif_rwlock_tryrwlock(lock) != 0);
    enif_rwlock_runlock(lock);
    enif_rwlock_runlock(lock);
    add_int(env, &r, enif_rwlock_tryrwlock(lock));
    add_int(env, &r, enif_rwlock_tryrlock(lock) != 0);
    enif_rwlock_rwunlock(lock);
    enif_rwlock_rlock(lock);
    enif_rwlock_runlock(lock);
    enif_rwlock_rwlock(lock);
    enif_rwlock_rwunlock(lock);
    add(&r, text(env, enif_rwlock_name(lock)));
    enif_rwlock_destroy(lock);
    return all(env, &r);
}

/* Thread-specific data: "NULL if no data has been mapped to key for the calling thread". */
CASE(thread_specific_data)
{
    struct results r = {.len = 0};
    ErlNifTSDKey key, other;
    char name[] = "key";

    add_int(env, &r, enif_tsd_key_create(name, &key));
    add_int(env, &r, enif_tsd_key_create(name, &other));
    add_int(env, &r, key != other);
    add_int(env, &r, enif_tsd_get(key) == NULL);
    enif_tsd_set(key, &flag);
    add_int(env, &r, enif_tsd_get(key) == &flag);
    add_int(env, &r, enif_tsd_get(other) == NULL);
    enif_tsd_set(key, NULL);
    add_int(env, &r, enif_tsd_get(key) == NULL);
    enif_tsd_key_destroy(key);
    enif_tsd_key_destroy(other);
    return all(env, &r);
}

static void *type_main(void *arg)
{
    *(int *)arg = enif_thread_type();
    return arg;
}

/* "Determines the type of currently executing thread": "a positive value: scheduler thread", 0: not
 * one. */
CASE(thread_types)
{
    int own = enif_thread_type(), other = -1;
    char name[] = "type";
    ErlNifTid tid;

    enif_thread_create(name, &tid, type_main, &other, NULL);
    enif_thread_join(tid, NULL);
    return enif_make_tuple2(env, enif_make_int(env, own), enif_make_int(env, other));
}
