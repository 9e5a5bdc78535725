/* The library's threads, counted, see thread_count.h. */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "life/limits.h"
#include "life/thread.h"
#include "life/thread_count.h"
#include "memory/die.h"

typedef int create_fn(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static _Atomic(create_fn *) next_create;
static _Atomic int alive;

/* Its destructor runs however a thread ends: by return, pthread_exit or pthread_cancel. */
static pthread_key_t counted;
static pthread_once_t counted_once = PTHREAD_ONCE_INIT;

int thread_create_uncounted(pthread_t *thread, const pthread_attr_t *attributes,
                            void *(*main)(void *), void *arg)
{
    create_fn *create = next_create;

    if (create == NULL) {
        *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
        if (create == NULL)
            host_die("there is no pthread_create: %s", dlerror());
        next_create = create;
    }
    return create(thread, attributes, main, arg);
}

struct start {
    void *(*main)(void *);
    void *arg;
};

static void has_ended(void *unused)
{
    (void)unused;
    alive--;
}

static void make_counted(void)
{
    if (pthread_key_create(&counted, has_ended) != 0)
        host_die("no key of thread-specific data is left");
}

static void *start_main(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    if (pthread_setspecific(counted, &alive) != 0)
        alive--; /* there is no memory: a thread too few is counted */
    return start.main(start.arg);
}

static int refuse_thread(void)
{
    host_thread.refused_thread = 1;
    errno = EAGAIN;
    return EAGAIN;
}

__attribute__((visibility("default"))) int pthread_create(pthread_t *thread,
                                                          const pthread_attr_t *attributes,
                                                          void *(*main)(void *), void *arg)
{
    struct start *start;
    int error;

    if (limits.threads == LIMITS_UNSET)
        return thread_create_uncounted(thread, attributes, main, arg);
    pthread_once(&counted_once, make_counted);
    if (atomic_fetch_add(&alive, 1) >= limits.threads) {
        alive--;
        return refuse_thread();
    }
    start = malloc(sizeof *start); /* the new thread's, once there is one */
    if (start != NULL)
        *start = (struct start){main, arg};
    error = start == NULL ? EAGAIN : thread_create_uncounted(thread, attributes, start_main, start);
    if (error != 0) {
        alive--;
        free(start);
    }
    return error;
}
