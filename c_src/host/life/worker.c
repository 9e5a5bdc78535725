/* The workers, see worker.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "life/crash.h"
#include "life/limits.h"
#include "life/thread.h"
#include "life/thread_count.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/die.h"

/* What a worker takes before it does anything. */
#define WORKER_BYTES (WORKER_STACK_BYTES + CRASH_STACK_BYTES)

static int started;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    struct task *first, **last;
    int idle; /* workers that wait */
} tasks = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER, .last = &tasks.first};

static struct task *next_task(void)
{
    pthread_mutex_lock(&tasks.lock);
    while (tasks.first == NULL) {
        tasks.idle++;
        pthread_cond_wait(&tasks.filled, &tasks.lock);
        tasks.idle--;
    }
    struct task *task = tasks.first;
    tasks.first = task->next;
    if (tasks.first == NULL)
        tasks.last = &tasks.first;
    pthread_mutex_unlock(&tasks.lock);
    return task;
}

static void *worker_main(void *unused)
{
    (void)unused;
    host_thread.type = ERL_NIF_THR_NORMAL_SCHEDULER;
    for (;;) {
        struct task *task = next_task();
        limits_watch();
        task->run(task);
    }
    return NULL;
}

struct start {
    void *(*main)(void *);
    void *arg;
    void *crash_stack;
};

static void *start_main(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    crash_watch_thread_on(start.crash_stack);
    return start.main(start.arg);
}

int worker_thread(void *(*main)(void *), void *arg)
{
    struct start *start = host_malloc(sizeof *start); /* the new thread's, once there is one */
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    limits_make_room(WORKER_BYTES);
    *start = (struct start){main, arg, crash_stack_new()};
    int error = thread_create_uncounted(&thread, &attributes, start_main, start);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        crash_stack_free(start->crash_stack);
        free(start);
    }
    return error;
}

void worker_start(int count)
{
    for (; started < count; started++) {
        int error = worker_thread(worker_main, NULL);
        if (error != 0)
            host_die("cannot start a worker: %s", strerror(error));
    }
}

int worker_count(void)
{
    return started;
}

void worker_do(struct task *task)
{
    task->next = NULL;
    pthread_mutex_lock(&tasks.lock);
    *tasks.last = task;
    tasks.last = &task->next;
    int wake = tasks.idle > 0;
    pthread_mutex_unlock(&tasks.lock);
    if (wake)
        pthread_cond_signal(&tasks.filled);
}

void worker_begin_call(void)
{
    host_thread.in_call = 1;
}

void worker_do_after_call(struct task *task)
{
    if (!host_thread.in_call) {
        worker_do(task);
        return;
    }
    task->next = host_thread.after_call;
    host_thread.after_call = task;
}

void worker_end_call(void)
{
    struct task *task;

    while ((task = host_thread.after_call) != NULL) {
        host_thread.after_call = task->next;
        task->run(task);
    }
    host_thread.in_call = 0;
}
