/* Monitors, see monitor.h. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "life/monitor.h"
#include "life/resource_type.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "term/atom.h"
#include "wire/query.h"

/* While it is in the table it keeps no reference to its resource: the VM's do not either. It leaves
 * the table when it fires, is cancelled, or its resource is destroyed. */
struct monitor {
    struct monitor *next;
    uint64_t id;
    struct resource *resource;
    ErlNifPid pid;
    enum {
        ASKED,
        WATCHED,
        ENDED
    } state; /* ENDED: it fired before the VM had said that it watches */
};

static struct {
    pthread_mutex_t lock;
    struct monitor *first;
    uint64_t last_id;
} monitors = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* Takes it out of the table. NULL: it is not there. */
static struct monitor *take(uint64_t id, const struct resource *resource)
{
    struct monitor **at = &monitors.first, *monitor;

    pthread_mutex_lock(&monitors.lock);
    while (*at != NULL && ((*at)->id != id || (resource != NULL && (*at)->resource != resource)))
        at = &(*at)->next;
    monitor = *at;
    if (monitor != NULL)
        *at = monitor->next;
    pthread_mutex_unlock(&monitors.lock);
    return monitor;
}

static term ask_vm(const char *name, uint64_t id, term pid)
{
    ErlNifEnv env;
    term answer;

    env_init(&env, ENV_INDEPENDENT);
    answer =
        query_ask(&env, pid == TERM_NONE ? query_term(&env, name, 1, term_unsigned(&env, id))
                                         : query_term(&env, name, 2, term_unsigned(&env, id), pid));
    env_destroy(&env);
    return answer;
}

static void set_id(ErlNifMonitor *monitor, uint64_t id)
{
    memset(monitor, 0, sizeof *monitor);
    memcpy(monitor->data, &id, sizeof id);
}

uint64_t monitor_id(const ErlNifMonitor *monitor)
{
    uint64_t id;

    memcpy(&id, monitor->data, sizeof id);
    return id;
}

/* ---- when a process ends -------------------------------------------------------------- */

struct down_task {
    struct task task;
    struct monitor *monitor;
};

static void run_down(struct task *task)
{
    struct monitor *monitor = ((struct down_task *)task)->monitor;
    ErlNifMonitor public;
    ErlNifEnv env;

    set_id(&public, monitor->id);
    env_init(&env, ENV_CALLBACK);
    monitor->resource->type->init.down(&env, monitor->resource->data, &monitor->pid, &public);
    env_destroy(&env);
    shared_drop(&monitor->resource->shared);
    free(monitor);
    free(task);
}

void monitor_down(uint64_t id)
{
    struct down_task *task;
    struct monitor **at = &monitors.first, *monitor;

    pthread_mutex_lock(&monitors.lock);
    while (*at != NULL && (*at)->id != id)
        at = &(*at)->next;
    monitor = *at;
    if (monitor != NULL && monitor->state != WATCHED) {
        monitor->state = ENDED; /* whether there is a monitor at all is still to be read */
        monitor = NULL;
    } else if (monitor != NULL) {
        *at = monitor->next;
        /* Its destructor may be under way: then nobody is left to be told. */
        if (!shared_keep_live(&monitor->resource->shared)) {
            free(monitor);
            monitor = NULL;
        }
    }
    pthread_mutex_unlock(&monitors.lock);
    if (monitor == NULL)
        return;
    task = host_malloc(sizeof *task);
    *task = (struct down_task){{.run = run_down}, monitor};
    worker_do(&task->task);
}

/* ---- beginning and end ---------------------------------------------------------------- */

void monitor_forget(struct resource *resource)
{
    for (;;) {
        struct monitor **at = &monitors.first, *monitor;

        pthread_mutex_lock(&monitors.lock);
        while (*at != NULL && (*at)->resource != resource)
            at = &(*at)->next;
        monitor = *at;
        if (monitor != NULL)
            *at = monitor->next;
        pthread_mutex_unlock(&monitors.lock);
        if (monitor == NULL)
            return;
        ask_vm("demonitor", monitor->id, TERM_NONE);
        free(monitor);
    }
}

/* The VM watches from now on. Returns 1 when the process has ended already. */
static int is_ended(uint64_t id)
{
    struct monitor *monitor;
    int ended = 0;

    pthread_mutex_lock(&monitors.lock);
    for (monitor = monitors.first; monitor != NULL && monitor->id != id;)
        monitor = monitor->next;
    if (monitor != NULL) { /* else another thread of the library has cancelled it */
        ended = monitor->state == ENDED;
        monitor->state = WATCHED;
    }
    pthread_mutex_unlock(&monitors.lock);
    return ended;
}

int monitor_start(struct resource *resource, ErlNifPid pid, ErlNifMonitor *public)
{
    struct monitor *monitor = host_malloc(sizeof *monitor);

    pthread_mutex_lock(&monitors.lock);
    uint64_t id = ++monitors.last_id;
    *monitor = (struct monitor){monitors.first, id, resource, pid, ASKED};
    monitors.first = monitor;
    pthread_mutex_unlock(&monitors.lock);
    if (public != NULL) /* before anybody can be told of its end */
        set_id(public, id);
    if (ask_vm("monitor", id, pid.pid) != ATOM(true)) {
        free(take(id, resource));
        return 0;
    }
    if (is_ended(id))
        monitor_down(id);
    return 1;
}

int monitor_stop(struct resource *resource, uint64_t id)
{
    struct monitor *monitor = take(id, resource);

    if (monitor == NULL)
        return 0;
    ask_vm("demonitor", id, TERM_NONE);
    free(monitor);
    return 1;
}
