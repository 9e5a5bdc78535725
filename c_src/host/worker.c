/* The pool of workers, see worker.h. */
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "worker.h"

static struct job *next_job(void)
{
    struct job_queue *queue = &host.jobs;

    pthread_mutex_lock(&queue->lock);
    while (queue->first == NULL) {
        queue->idle++;
        pthread_cond_wait(&queue->filled, &queue->lock);
        queue->idle--;
    }
    struct job *job = queue->first;
    queue->first = job->next;
    if (queue->first == NULL)
        queue->last = &queue->first;
    pthread_mutex_unlock(&queue->lock);
    return job;
}

static void *worker_main(void *unused)
{
    (void)unused;
    host_thread.type = ERL_NIF_THR_NORMAL_SCHEDULER;
    for (;;) {
        struct job *job = next_job();
        job->run(job);
    }
    return NULL;
}

struct start {
    void *(*main)(void *);
    void *arg;
};

static void *start_main(void *arg)
{
    struct start start = *(struct start *)arg;

    free(arg);
    crash_watch_thread();
    return start.main(start.arg);
}

int worker_thread(void *(*main)(void *), void *arg)
{
    struct start *start = host_malloc(sizeof *start); /* the new thread's, once there is one */
    pthread_attr_t attributes;
    pthread_t thread;

    *start = (struct start){main, arg};
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, WORKER_STACK_BYTES);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    int error = pthread_create(&thread, &attributes, start_main, start);
    pthread_attr_destroy(&attributes);
    if (error != 0)
        free(start);
    return error;
}

void worker_start(void)
{
    for (int i = 0; i < host.workers; i++) {
        int error = worker_thread(worker_main, NULL);
        if (error != 0)
            host_die("cannot start a worker: %s", strerror(error));
    }
}

void worker_do(struct job *job)
{
    struct job_queue *queue = &host.jobs;

    job->next = NULL;
    pthread_mutex_lock(&queue->lock);
    *queue->last = job;
    queue->last = &job->next;
    int wake = queue->idle > 0;
    pthread_mutex_unlock(&queue->lock);
    if (wake)
        pthread_cond_signal(&queue->filled);
}

void worker_do_after_call(struct job *job)
{
    if (!host_thread.in_call) {
        worker_do(job);
        return;
    }
    job->next = host_thread.after_call;
    host_thread.after_call = job;
}

void worker_call_ended(void)
{
    while (host_thread.after_call != NULL) {
        struct job *job = host_thread.after_call;
        host_thread.after_call = job->next;
        worker_do(job);
    }
}
