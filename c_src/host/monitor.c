/* The functions of the API on monitors, see monitor.h. */
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "host.h"
#include "monitor.h"
#include "query.h"
#include "resource.h"
#include "worker.h"

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

/* Takes it out of the table. NULL: it is not there. */
static struct monitor *take(uint64_t id, const struct resource *resource)
{
    struct monitor **at = &host.monitors.first, *monitor;

    pthread_mutex_lock(&host.monitors.lock);
    while (*at != NULL && ((*at)->id != id || (resource != NULL && (*at)->resource != resource)))
        at = &(*at)->next;
    monitor = *at;
    if (monitor != NULL)
        *at = monitor->next;
    pthread_mutex_unlock(&host.monitors.lock);
    return monitor;
}

static term tell(const char *name, uint64_t id, term pid)
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

static uint64_t get_id(const ErlNifMonitor *monitor)
{
    uint64_t id;

    memcpy(&id, monitor->data, sizeof id);
    return id;
}

/* ---- when a process ends -------------------------------------------------------------- */

struct down_job {
    struct job job;
    struct monitor *monitor;
};

static void run_down(struct job *job)
{
    struct monitor *monitor = ((struct down_job *)job)->monitor;
    ErlNifMonitor public;
    ErlNifEnv env;

    set_id(&public, monitor->id);
    env_init(&env, ENV_CALLBACK);
    monitor->resource->type->init.down(&env, monitor->resource->data, &monitor->pid, &public);
    env_destroy(&env);
    shared_drop(&monitor->resource->shared);
    free(monitor);
    free(job);
}

void monitor_down(uint64_t id)
{
    struct down_job *job;
    struct monitor **at = &host.monitors.first, *monitor;

    pthread_mutex_lock(&host.monitors.lock);
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
    pthread_mutex_unlock(&host.monitors.lock);
    if (monitor == NULL)
        return;
    job = host_malloc(sizeof *job);
    *job = (struct down_job){{.run = run_down}, monitor};
    worker_do(&job->job);
}

void monitor_forget(struct resource *resource)
{
    for (;;) {
        struct monitor **at = &host.monitors.first, *monitor;

        pthread_mutex_lock(&host.monitors.lock);
        while (*at != NULL && (*at)->resource != resource)
            at = &(*at)->next;
        monitor = *at;
        if (monitor != NULL)
            *at = monitor->next;
        pthread_mutex_unlock(&host.monitors.lock);
        if (monitor == NULL)
            return;
        tell("demonitor", monitor->id, TERM_NONE);
        free(monitor);
    }
}

/* The VM watches from now on. Returns 1 when the process has ended already. */
static int is_ended(uint64_t id)
{
    struct monitor *monitor;
    int ended = 0;

    pthread_mutex_lock(&host.monitors.lock);
    for (monitor = host.monitors.first; monitor != NULL && monitor->id != id;)
        monitor = monitor->next;
    if (monitor != NULL) { /* else another thread of the library has cancelled it */
        ended = monitor->state == ENDED;
        monitor->state = WATCHED;
    }
    pthread_mutex_unlock(&host.monitors.lock);
    return ended;
}

/* ---- the API -------------------------------------------------------------------------- */

int enif_monitor_process(ErlNifEnv *env, void *object, const ErlNifPid *pid, ErlNifMonitor *public)
{
    struct resource *resource = resource_of(object);
    struct monitor *monitor;

    (void)env;
    if (resource->type->init.down == NULL)
        return -1;
    if (!is_local_pid(pid->pid))
        return 1; /* enif_set_pid_undefined */
    monitor = host_malloc(sizeof *monitor);
    pthread_mutex_lock(&host.monitors.lock);
    uint64_t id = ++host.monitors.last_id;
    *monitor = (struct monitor){host.monitors.first, id, resource, *pid, ASKED};
    host.monitors.first = monitor;
    pthread_mutex_unlock(&host.monitors.lock);
    if (public != NULL) /* before anybody can be told of its end */
        set_id(public, id);
    if (tell("monitor", id, pid->pid) != ATOM(true)) {
        free(take(id, resource));
        return 1;
    }
    if (is_ended(id))
        monitor_down(id);
    return 0;
}

int enif_demonitor_process(ErlNifEnv *env, void *object, const ErlNifMonitor *public)
{
    struct monitor *monitor = take(get_id(public), resource_of(object));

    (void)env;
    if (monitor == NULL)
        return 1;
    tell("demonitor", monitor->id, TERM_NONE);
    free(monitor);
    return 0;
}

int enif_compare_monitors(const ErlNifMonitor *a, const ErlNifMonitor *b)
{
    uint64_t x = get_id(a), y = get_id(b);

    return x < y ? -1 : x > y;
}
