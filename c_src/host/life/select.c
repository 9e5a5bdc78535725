/* Waiting for descriptors, see select.h. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "life/resource_type.h"
#include "life/select.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "os/os.h"
#include "term/atom.h"
#include "term/copy.h"
#include "wire/tell.h"

#define FAILED (INT_MIN | ERL_NIF_SELECT_FAILED)

/* Who waits for one event of a descriptor. */
struct waiting {
    int is_armed;
    ErlNifPid to;
    ErlNifEnv env; /* of message, while it is armed */
    term message;
};

/* The events, by their bit, in the order in which they are told. */
static const struct {
    int bit, cancelled;
    const char *name;
} events_of[] = {
    {OS_READY_READ, ERL_NIF_SELECT_READ_CANCELLED, "ready_input"},
    {OS_READY_WRITE, ERL_NIF_SELECT_WRITE_CANCELLED, "ready_output"},
    {OS_READY_ERROR, ERL_NIF_SELECT_ERROR_CANCELLED, "ready_error"},
};
#define EVENTS 3

struct selected {
    struct resource *resource; /* kept; NULL: it is not selected */
    uint32_t mark;             /* what was asked for last: an answer to another is late */
    int in_set;                /* the system knows it; not a file that is always ready */
    int wants_error;           /* since it is selected: else an error is told as readiness */
    struct waiting waiting[EVENTS];
};

/* Held while a message is written: none comes after enif_select has stopped or cancelled it. The thread
 * that reads the control port never takes it. */
static struct {
    pthread_mutex_t lock;
    int set; /* -1: nothing was selected yet */
    uint32_t last_mark;
    struct selected **of; /* by descriptor; an entry stays for good */
    int len;
} selects = {.lock = PTHREAD_MUTEX_INITIALIZER, .set = -1};

/* ---- one descriptor, with the lock ------------------------------------------------------ */

static int armed(const struct selected *selected)
{
    int events = 0;

    for (int i = 0; i < EVENTS; i++)
        events |= selected->waiting[i].is_armed ? events_of[i].bit : 0;
    return events;
}

static void disarm(struct waiting *waiting)
{
    if (waiting->is_armed)
        env_destroy(&waiting->env);
    waiting->is_armed = 0;
}

/* The bits of those that were armed. */
static int disarm_all(struct selected *selected, int events)
{
    int cancelled = 0;

    for (int i = 0; i < EVENTS; i++) {
        if ((events & events_of[i].bit) == 0 || !selected->waiting[i].is_armed)
            continue;
        disarm(&selected->waiting[i]);
        cancelled |= events_of[i].cancelled;
    }
    return cancelled;
}

static void arm(struct selected *selected, int event, const struct select_message *message)
{
    struct waiting *waiting = &selected->waiting[event];
    term body;

    disarm(waiting);
    env_init(&waiting->env, ENV_INDEPENDENT);
    body = term_copy(&waiting->env, message->message);
    if (!message->is_whole) {
        const term parts[] = {ATOM_LITERAL("select"),
                              resource_term(&waiting->env, selected->resource), body,
                              atom_named(events_of[event].name)};
        body = term_tuple(&waiting->env, 4, parts);
    }
    waiting->message = body;
    waiting->to = message->to;
    waiting->is_armed = 1;
}

static void send(struct selected *selected, int events)
{
    for (int i = 0; i < EVENTS; i++) {
        struct waiting *waiting = &selected->waiting[i];
        if ((events & events_of[i].bit) == 0 || !waiting->is_armed)
            continue;
        if (is_local_pid(waiting->to.pid))
            (void)tell_message(NULL, waiting->to.pid, waiting->message);
        disarm(waiting);
    }
}

/* Tells the system what is waited for now. 0, or an error number. */
static int ask_system(struct selected *selected, int fd, int events)
{
    int error;

    selected->mark = ++selects.last_mark;
    error = os_ready_wait_for(selects.set, fd, events, selected->mark, selected->in_set);
    if (error == 0)
        selected->in_set = 1;
    return error;
}

/* Nobody waits any more. What is returned is to be dropped without the lock. */
static struct resource *forget(struct selected *selected, int fd, int *cancelled)
{
    struct resource *resource = selected->resource;

    *cancelled = disarm_all(selected, OS_READY_READ | OS_READY_WRITE | OS_READY_ERROR);
    if (selected->in_set)
        os_ready_forget(selects.set, fd);
    selected->in_set = selected->wants_error = 0;
    selected->resource = NULL;
    selected->mark = ++selects.last_mark;
    return resource;
}

/* Two resources that select one descriptor are an error of the library: the second has it, as in the
 * VM. */
static struct resource *steal(struct selected *selected, int fd, const struct resource *by)
{
    int cancelled;

    if (selected->resource == NULL || selected->resource == by)
        return NULL;
    fprintf(stderr, "enif_select: a resource of type %s takes descriptor %d from one of type %s\n",
            by->type->name, fd, selected->resource->type->name);
    return forget(selected, fd, &cancelled);
}

/* ---- the thread that waits --------------------------------------------------------------- */

static void tell_ready(const struct os_ready *ready)
{
    struct selected *selected;
    int events = ready->events, rest;

    pthread_mutex_lock(&selects.lock);
    selected = selects.of[ready->fd];
    if (selected->in_set && selected->mark == ready->mark) {
        /* Who did not ask for errors finds them when it reads or writes. */
        if ((events & OS_READY_ERROR) != 0 && !selected->wants_error)
            events = armed(selected);
        send(selected, events);
        rest = armed(selected);
        if (rest != 0 && ask_system(selected, ready->fd, rest) != 0)
            send(selected, rest);
    }
    pthread_mutex_unlock(&selects.lock);
}

static void *wait_for_ever(void *arg)
{
    struct os_ready ready;

    (void)arg;
    for (;;) {
        os_ready_next(selects.set, &ready);
        tell_ready(&ready);
    }
    return NULL;
}

static int start(void)
{
    if (selects.set >= 0)
        return 1;
    selects.set = os_ready_open(); /* the process's */
    if (selects.set >= 0 && worker_thread(wait_for_ever, NULL) != 0) {
        close(selects.set);
        selects.set = -1;
    }
    return selects.set >= 0;
}

/* ---- what the library asks --------------------------------------------------------------- */

/* With the lock. NULL: it cannot be a descriptor. */
static struct selected *selected_at(int fd)
{
    if (fd < 0 || fd >= sysconf(_SC_OPEN_MAX))
        return NULL;
    if (fd >= selects.len) {
        selects.of = host_realloc(selects.of, (size_t)(fd + 1) * sizeof *selects.of);
        while (selects.len <= fd)
            selects.of[selects.len++] = NULL;
    }
    if (selects.of[fd] == NULL)
        selects.of[fd] = host_calloc(sizeof *selects.of[fd]); /* the process's */
    return selects.of[fd];
}

/* With the lock. */
static int wait_for(struct selected *selected, struct resource *resource, int fd, int events,
                    const struct select_message *message)
{
    const int before = armed(selected);
    const int error = (before & events) == events ? 0 : ask_system(selected, fd, before | events);

    /* A file without readiness is always ready. */
    if (error != 0 && error != EPERM)
        return FAILED;
    if (selected->resource == NULL) {
        shared_keep(&resource->shared);
        selected->resource = resource;
    }
    selected->wants_error |= (events & OS_READY_ERROR) != 0;
    for (int i = 0; i < EVENTS; i++) {
        if (events & events_of[i].bit)
            arm(selected, i, message);
    }
    if (error == EPERM)
        send(selected, OS_READY_READ | OS_READY_WRITE);
    return 0;
}

int select_wait_for(struct resource *resource, int fd, int events,
                    const struct select_message *message)
{
    struct resource *let_go = NULL;
    struct selected *selected;
    int result = FAILED, cancelled;

    pthread_mutex_lock(&selects.lock);
    selected = selected_at(fd);
    if (selected == NULL) {
        result = INT_MIN | ERL_NIF_SELECT_INVALID_EVENT;
    } else if (start()) {
        let_go = steal(selected, fd, resource);
        result = wait_for(selected, resource, fd, events, message);
        /* A descriptor that was closed and had nobody waiting is unknown again. */
        if (result != 0 && let_go == NULL && armed(selected) == 0)
            let_go = forget(selected, fd, &cancelled);
    }
    pthread_mutex_unlock(&selects.lock);
    if (let_go != NULL)
        shared_drop(&let_go->shared);
    return result;
}

int select_cancel(struct resource *resource, int fd, int events)
{
    struct resource *let_go = NULL;
    struct selected *selected;
    int result = INT_MIN | ERL_NIF_SELECT_INVALID_EVENT;

    pthread_mutex_lock(&selects.lock);
    selected = selected_at(fd);
    if (selected != NULL) {
        let_go = steal(selected, fd, resource);
        result = disarm_all(selected, events);
        if (result != 0 && selected->in_set && ask_system(selected, fd, armed(selected)) != 0)
            result = FAILED;
    }
    pthread_mutex_unlock(&selects.lock);
    if (let_go != NULL)
        shared_drop(&let_go->shared);
    return result;
}

int select_stop(struct resource *resource, int fd)
{
    struct resource *let_go = NULL;
    struct resource_callbacks callbacks;
    struct selected *selected;
    ErlNifEnv env;
    int cancelled = 0;

    pthread_mutex_lock(&selects.lock);
    selected = selected_at(fd);
    if (selected != NULL) {
        let_go = steal(selected, fd, resource);
        if (let_go == NULL && selected->resource != NULL)
            let_go = forget(selected, fd, &cancelled);
    }
    pthread_mutex_unlock(&selects.lock);
    if (selected == NULL)
        return INT_MIN | ERL_NIF_SELECT_INVALID_EVENT;
    callbacks = resource_callbacks(resource->type);
    if (callbacks.init.stop != NULL) {
        env_init(&env, ENV_CALLBACK);
        env.library = callbacks.owner;
        callbacks.init.stop(&env, resource->data, fd, 1);
        env_destroy(&env);
    }
    resource_callbacks_done(&callbacks);
    if (let_go != NULL)
        shared_drop(&let_go->shared);
    /* Nothing of errors, as in the VM. */
    return ERL_NIF_SELECT_STOP_CALLED | (cancelled & ~ERL_NIF_SELECT_ERROR_CANCELLED);
}
