/* The functions of the API on threads and thread-specific data, on POSIX threads. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "life/crash.h"
#include "memory/alloc.h"
#include "memory/nif.h"

/* ---- thread-specific data ------------------------------------------------------------- */

#define KEYS_MAX 1024

static struct {
    pthread_mutex_t lock;
    struct {
        char *name;   /* NULL: free */
        unsigned use; /* counts up when the key is made anew, so that old values are not seen */
    } of[KEYS_MAX];
} keys = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* KEYS_MAX of them, or NULL. */
static _Thread_local struct {
    void *data;
    unsigned use;
} * own_data;

int enif_tsd_key_create(char *name, ErlNifTSDKey *key)
{
    int found = -1;

    pthread_mutex_lock(&keys.lock);
    for (int i = 0; i < KEYS_MAX && found < 0; i++) {
        if (keys.of[i].name == NULL)
            found = i;
    }
    if (found >= 0) {
        keys.of[found].name = strdup(name == NULL ? "" : name);
        keys.of[found].use++;
        *key = found;
    }
    pthread_mutex_unlock(&keys.lock);
    return found < 0 ? ENOMEM : 0;
}

void enif_tsd_key_destroy(ErlNifTSDKey key)
{
    pthread_mutex_lock(&keys.lock);
    free(keys.of[key].name);
    keys.of[key].name = NULL;
    pthread_mutex_unlock(&keys.lock);
}

void enif_tsd_set(ErlNifTSDKey key, void *data)
{
    if (own_data == NULL)
        own_data = host_calloc(KEYS_MAX * sizeof *own_data);
    own_data[key].data = data;
    own_data[key].use = keys.of[key].use;
}

void *enif_tsd_get(ErlNifTSDKey key)
{
    if (own_data == NULL || own_data[key].use != keys.of[key].use)
        return NULL;
    return own_data[key].data;
}

/* ---- threads -------------------------------------------------------------------------- */

struct nif_thread {
    pthread_t thread;
    char *name;
    void *(*main)(void *);
    void *arg;
    void *result;
};

/* Of enif_thread_create, or made when it is asked for. */
static _Thread_local struct nif_thread *own_thread;

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    ErlNifThreadOpts *options = malloc(sizeof *options);

    (void)name;
    if (options != NULL)
        options->suggested_stack_size = -1;
    return options;
}

void enif_thread_opts_destroy(ErlNifThreadOpts *options)
{
    free(options);
}

static void *thread_main(void *arg)
{
    struct nif_thread *self = arg;

    own_thread = self;
    crash_watch_thread();
    self->result = self->main(self->arg);
    free(own_data);
    return self->result;
}

int enif_thread_create(char *name, ErlNifTid *tid, void *(*function)(void *), void *arg,
                       ErlNifThreadOpts *options)
{
    struct nif_thread *thread = host_calloc(sizeof *thread);
    pthread_attr_t attributes;
    int error;

    *thread = (struct nif_thread){
        .name = name == NULL ? NULL : strdup(name), .main = function, .arg = arg};
    pthread_attr_init(&attributes);
    if (options != NULL && options->suggested_stack_size > 0) {
        size_t bytes = (size_t)options->suggested_stack_size * 1024 * sizeof(void *);
        pthread_attr_setstacksize(&attributes, bytes < 65536 ? 65536 : bytes);
    }
    error = pthread_create(&thread->thread, &attributes, thread_main, thread);
    pthread_attr_destroy(&attributes);
    if (error != 0) {
        free(thread->name);
        free(thread);
        return error;
    }
    *tid = (ErlNifTid)thread;
    return 0;
}

/* A thread that is not of enif_thread_create gets its identity when it first asks, for good. */
ErlNifTid enif_thread_self(void)
{
    if (own_thread == NULL) {
        own_thread = host_calloc(sizeof *own_thread);
        own_thread->thread = pthread_self();
    }
    return (ErlNifTid)own_thread;
}

int enif_equal_tids(ErlNifTid a, ErlNifTid b)
{
    return a == b;
}

void enif_thread_exit(void *result)
{
    if (own_thread != NULL)
        own_thread->result = result;
    free(own_data);
    pthread_exit(result);
}

int enif_thread_join(ErlNifTid tid, void **result)
{
    struct nif_thread *thread = (struct nif_thread *)tid;
    void *value;
    int error = pthread_join(thread->thread, &value);

    if (error != 0)
        return error;
    if (result != NULL)
        *result = value;
    free(thread->name);
    free(thread);
    return 0;
}

char *enif_thread_name(ErlNifTid tid)
{
    return tid == NULL ? NULL : ((struct nif_thread *)tid)->name;
}
