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

/* The reference of the VM's monitor. */
struct watch_ref {
    uint32_t len, words[REF_WORDS_MAX];
};

/* What the library keeps of a monitor. */
struct public_monitor {
    uint64_t id;
    struct watch_ref ref;
};

_Static_assert(sizeof(struct public_monitor) <= sizeof(ErlNifMonitor), "the library's is smaller");

/* While it is in the table it keeps no reference to its resource: the VM's do not either. It leaves
 * the table when it fires, is cancelled, or its resource is destroyed. */
struct monitor {
    struct monitor *next;           /* of its bucket */
    struct monitor *beside, **link; /* of its resource's, and what points to this one of them */
    uint64_t id;
    struct resource *resource;
    ErlNifPid pid;
    struct watch_ref ref; /* once the VM watches */
    enum {
        ASKED,
        WATCHED,
        ENDED
    } state; /* ENDED: it fired before the VM had said that it watches */
};

/* By number: they are given in turn, so that buckets are even. */
static struct {
    pthread_mutex_t lock;
    struct monitor **buckets; /* the process's */
    size_t buckets_len, len;  /* buckets: a power of 2, or none yet */
    uint64_t last_id;
} monitors = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the table, with its lock --------------------------------------------------------- */

static struct monitor **bucket(uint64_t id)
{
    return &monitors.buckets[id & (monitors.buckets_len - 1)];
}

static void grow(void)
{
    struct monitor **before = monitors.buckets, *next;
    const size_t before_len = monitors.buckets_len;

    monitors.buckets_len = before_len == 0 ? 16 : 2 * before_len;
    monitors.buckets = host_calloc(monitors.buckets_len * sizeof *before);
    for (size_t i = 0; i < before_len; i++) {
        for (struct monitor *monitor = before[i]; monitor != NULL; monitor = next) {
            next = monitor->next;
            monitor->next = *bucket(monitor->id);
            *bucket(monitor->id) = monitor;
        }
    }
    free(before);
}

static void put(struct monitor *monitor)
{
    struct monitor **first = &monitor->resource->monitors;

    if (monitors.len++ == monitors.buckets_len)
        grow();
    monitor->next = *bucket(monitor->id);
    *bucket(monitor->id) = monitor;
    monitor->beside = *first;
    monitor->link = first;
    if (*first != NULL)
        (*first)->link = &monitor->beside;
    *first = monitor;
}

/* NULL: it is not there. */
static struct monitor *find(uint64_t id)
{
    struct monitor *monitor = monitors.len == 0 ? NULL : *bucket(id);

    while (monitor != NULL && monitor->id != id)
        monitor = monitor->next;
    return monitor;
}

static void remove_it(struct monitor *monitor)
{
    struct monitor **at = bucket(monitor->id);

    while (*at != monitor)
        at = &(*at)->next;
    *at = monitor->next;
    *monitor->link = monitor->beside;
    if (monitor->beside != NULL)
        monitor->beside->link = monitor->link;
    monitors.len--;
}

/* Takes it out of the table, with the lock taken here. NULL: it is not there, or another's. */
static struct monitor *take(uint64_t id, const struct resource *resource)
{
    pthread_mutex_lock(&monitors.lock);
    struct monitor *monitor = find(id);
    if (monitor != NULL && monitor->resource != resource)
        monitor = NULL;
    if (monitor != NULL)
        remove_it(monitor);
    pthread_mutex_unlock(&monitors.lock);
    return monitor;
}

/* ---- the VM's part -------------------------------------------------------------------- */

/* Asks for the VM's monitor of this number; its reference is in *ref then. Returns 0 when the process
 * has ended already. */
static int ask_for_monitor(uint64_t id, term pid, struct watch_ref *ref)
{
    ErlNifEnv env;
    term answer;
    int is_there;

    env_init(&env, ENV_INDEPENDENT);
    answer = query_ask(&env, query_term(&env, "monitor", 2, term_unsigned(&env, id), pid));
    is_there = is_kind(answer, BOX_REF);
    if (is_there) {
        const struct box_ref *box = box_of(answer);
        ref->len = box->len;
        memcpy(ref->words, box->words, sizeof ref->words);
    }
    env_destroy(&env);
    return is_there;
}

static void ask_to_forget(uint64_t id)
{
    ErlNifEnv env;

    env_init(&env, ENV_INDEPENDENT);
    (void)query_ask(&env, query_term(&env, "demonitor", 1, term_unsigned(&env, id)));
    env_destroy(&env);
}

static void set_public(ErlNifMonitor *monitor, uint64_t id, const struct watch_ref *ref)
{
    const struct public_monitor public = {id, *ref};

    memset(monitor, 0, sizeof *monitor);
    memcpy(monitor->data, &public, sizeof public);
}

static struct public_monitor public_of(const ErlNifMonitor *monitor)
{
    struct public_monitor public;

    memcpy(&public, monitor->data, sizeof public);
    return public;
}

uint64_t monitor_id(const ErlNifMonitor *monitor)
{
    return public_of(monitor).id;
}

term monitor_ref(ErlNifEnv *env, const ErlNifMonitor *monitor)
{
    const struct public_monitor public = public_of(monitor);

    /* The library may have written there. */
    if (public.ref.len == 0 || public.ref.len > REF_WORDS_MAX)
        return TERM_NONE;
    return term_ref(env, public.ref.words, public.ref.len);
}

/* ---- when a process ends -------------------------------------------------------------- */

struct down_task {
    struct task task;
    struct monitor *monitor;
};

static void run_down(struct task *task)
{
    struct monitor *monitor = ((struct down_task *)task)->monitor;
    struct resource_callbacks callbacks;
    ErlNifMonitor public;
    ErlNifEnv env;

    callbacks = resource_callbacks(monitor->resource->type);
    set_public(&public, monitor->id, &monitor->ref);
    /* The library that has taken the type over since may have none. */
    if (callbacks.init.down != NULL) {
        env_init(&env, ENV_CALLBACK);
        env.library = callbacks.owner;
        callbacks.init.down(&env, monitor->resource->data, &monitor->pid, &public);
        env_destroy(&env);
    }
    resource_callbacks_done(&callbacks);
    shared_drop(&monitor->resource->shared);
    free(monitor);
    free(task);
}

void monitor_down(uint64_t id)
{
    struct down_task *task;
    struct monitor *monitor;

    pthread_mutex_lock(&monitors.lock);
    monitor = find(id);
    if (monitor != NULL && monitor->state != WATCHED) {
        monitor->state = ENDED; /* whether there is a monitor at all is still to be read */
        monitor = NULL;
    } else if (monitor != NULL) {
        remove_it(monitor);
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
        struct monitor *monitor;

        pthread_mutex_lock(&monitors.lock);
        monitor = resource->monitors;
        if (monitor != NULL)
            remove_it(monitor);
        pthread_mutex_unlock(&monitors.lock);
        if (monitor == NULL)
            return;
        ask_to_forget(monitor->id);
        free(monitor);
    }
}

/* The VM watches from now on. Returns 1 when the process has ended already. */
static int is_ended(uint64_t id, const struct watch_ref *ref)
{
    struct monitor *monitor;
    int ended = 0;

    pthread_mutex_lock(&monitors.lock);
    monitor = find(id);
    if (monitor != NULL) { /* else another thread of the library has cancelled it */
        ended = monitor->state == ENDED;
        monitor->state = WATCHED;
        monitor->ref = *ref;
    }
    pthread_mutex_unlock(&monitors.lock);
    return ended;
}

int monitor_start(struct resource *resource, ErlNifPid pid, ErlNifMonitor *public)
{
    struct monitor *monitor = host_malloc(sizeof *monitor); /* the table's */
    struct watch_ref ref = {0};

    pthread_mutex_lock(&monitors.lock);
    uint64_t id = ++monitors.last_id;
    *monitor = (struct monitor){.id = id, .resource = resource, .pid = pid, .state = ASKED};
    put(monitor);
    pthread_mutex_unlock(&monitors.lock);
    if (!ask_for_monitor(id, pid.pid, &ref)) {
        free(take(id, resource));
        return 0;
    }
    if (public != NULL) /* before anybody can be told of its end */
        set_public(public, id, &ref);
    if (is_ended(id, &ref))
        monitor_down(id);
    return 1;
}

int monitor_stop(struct resource *resource, uint64_t id)
{
    struct monitor *monitor = take(id, resource);

    if (monitor == NULL)
        return 0;
    ask_to_forget(id);
    free(monitor);
    return 1;
}
