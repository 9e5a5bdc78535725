/* tame/watch.h where a process ends as soon as it is monitored: its end is told on another thread, before the
 * watch is whole. */
#include "fake_threads.h"
#include <tame/watch.h>

#include <unistd.h>

#include "check.h"

FAKE_LOCKS(enif, ErlNifMutex, ErlNifCond)

static pthread_t end;
static int told, ends_at_once;

void *enif_alloc(size_t size)
{
    return fake_memory(size);
}

void enif_free(void *memory)
{
    free(memory);
}

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    (void)type;
    return fake_memory(size);
}

/* The table's hold is the only one. */
void enif_release_resource(void *object)
{
    tame_impl_watch_destroy(NULL, object);
    free(object);
}

ErlNifUInt64 enif_hash(ErlNifHash type, ERL_NIF_TERM term, ErlNifUInt64 salt)
{
    (void)type;
    return term + salt;
}

int enif_compare(ERL_NIF_TERM one, ERL_NIF_TERM other)
{
    return (one > other) - (one < other);
}

static void count(ErlNifEnv *env, void *object, const ErlNifPid *pid)
{
    (void)env;
    (void)pid;
    *(int *)object += 1;
}

static void *down(void *watch)
{
    tame_impl_watch_down(NULL, watch, count);
    return NULL;
}

int enif_monitor_process(ErlNifEnv *env, void *object, const ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env;
    (void)pid;
    (void)monitor;
    if (ends_at_once) {
        pthread_create(&end, NULL, down, object);
        usleep(20000); /* it has begun by then, and waits */
    }
    return 0;
}

static void a_process_that_ends_when_it_is_monitored_is_told(void)
{
    struct tame_impl_watches *watches = tame_impl_watches_new();
    struct tame_impl_watched watched = {0};
    const ErlNifPid pid = {17};

    ends_at_once = 1;
    CHECK_EQ(tame_impl_watch_enter(NULL, watches, NULL, &pid, &watched, &told), 1);
    pthread_join(end, NULL);
    CHECK_EQ(told, 1);
    CHECK_EQ(tame_impl_unwatch(&watched), 0);
    tame_impl_watches_release(watches);
}

int main(void)
{
    RUN(a_process_that_ends_when_it_is_monitored_is_told);
    return check_report();
}
