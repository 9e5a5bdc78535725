/* As much of erl_nif.h as a job library needs to be called from plain threads, so that sanitizers see
 * its threads and locks without a VM around them. A process is a pthread here, on a scheduler of its
 * own; terms are trees that their environment frees. For one file per program.
 *
 * As in the VM: a destructor runs on a scheduler and never where the last hold is released; a process
 * that is killed ends after its NIF, and on a dirty scheduler during it; a dead process sends
 * nothing. */
#ifndef TEST_FAKE_NIF_H
#define TEST_FAKE_NIF_H

#include <assert.h>
#include <erl_nif.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- terms: a number, an atom, a reference in the word itself; else a tree ------------------------ */

enum fake_kind { FAKE_TREE, FAKE_INT, FAKE_ATOM, FAKE_REF, FAKE_NIL, FAKE_NONE };

enum fake_shape { FAKE_TUPLE, FAKE_CONS, FAKE_RESOURCE, FAKE_BINARY };

struct fake_tree {
    enum fake_shape shape;
    struct fake_tree *next; /* of its environment */
    void *object;           /* a hold on the resource */
    size_t size;
    ERL_NIF_TERM elements[]; /* or the bytes */
};

#define FAKE_TERM(kind, value) ((ERL_NIF_TERM)(value) << 4 | (kind))
#define FAKE_EXCEPTION ((ERL_NIF_TERM)FAKE_NONE)
#define FAKE_SCHEDULED FAKE_TERM(FAKE_NONE, 1)

struct fake_process;

struct enif_environment_t {
    struct fake_process *process; /* NULL: of none */
    struct fake_tree *trees;      /* owned */
    int raised;
    /* What enif_schedule_nif said. */
    ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]);
    int argc, dirty;
    ERL_NIF_TERM argv[16];
};

static void *fake_priv_data;
static int fake_envs; /* that live */

static void *fake_memory(size_t size)
{
    void *memory = calloc(1, size);

    if (memory == NULL)
        abort();
    return memory;
}

static inline int fake_is(ERL_NIF_TERM term, enum fake_kind kind)
{
    return (enum fake_kind)(term & 15) == kind;
}

static struct fake_tree *fake_tree(ERL_NIF_TERM term, enum fake_shape shape)
{
    struct fake_tree *tree = (struct fake_tree *)term;

    return fake_is(term, FAKE_TREE) && tree->shape == shape ? tree : NULL;
}

static ERL_NIF_TERM fake_make(ErlNifEnv *env, enum fake_shape shape, size_t size, size_t bytes,
                              const void *from)
{
    struct fake_tree *tree = fake_memory(sizeof *tree + bytes); /* owned by the environment */

    tree->shape = shape;
    tree->size = size;
    tree->next = env->trees;
    env->trees = tree;
    if (bytes > 0)
        memcpy(tree->elements, from, bytes);
    return (ERL_NIF_TERM)tree;
}

ERL_NIF_TERM enif_make_tuple_from_array(ErlNifEnv *env, const ERL_NIF_TERM arr[], unsigned cnt)
{
    return fake_make(env, FAKE_TUPLE, cnt, cnt * sizeof *arr, arr);
}

ERL_NIF_TERM enif_make_tuple(ErlNifEnv *env, unsigned cnt, ...)
{
    ERL_NIF_TERM elements[8];
    va_list list;

    va_start(list, cnt);
    for (unsigned i = 0; i < cnt; i++)
        elements[i] = va_arg(list, ERL_NIF_TERM);
    va_end(list);
    return enif_make_tuple_from_array(env, elements, cnt);
}

ERL_NIF_TERM enif_make_list(ErlNifEnv *env, unsigned cnt, ...)
{
    (void)env;
    if (cnt != 0)
        abort();
    return FAKE_TERM(FAKE_NIL, 0);
}

ERL_NIF_TERM enif_make_list_cell(ErlNifEnv *env, ERL_NIF_TERM head, ERL_NIF_TERM tail)
{
    const ERL_NIF_TERM cell[] = {head, tail};

    return fake_make(env, FAKE_CONS, 2, sizeof cell, cell);
}

static pthread_mutex_t fake_atoms_lock = PTHREAD_MUTEX_INITIALIZER;
static char fake_atoms[64][40];

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    int i = 0;

    (void)env;
    pthread_mutex_lock(&fake_atoms_lock);
    while (fake_atoms[i][0] != '\0' && strcmp(fake_atoms[i], name) != 0)
        if (++i == 64)
            abort();
    (void)snprintf(fake_atoms[i], sizeof *fake_atoms, "%s", name);
    pthread_mutex_unlock(&fake_atoms_lock);
    return FAKE_TERM(FAKE_ATOM, i);
}

ERL_NIF_TERM enif_make_int(ErlNifEnv *env, int value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, (unsigned)value);
}

ERL_NIF_TERM enif_make_uint(ErlNifEnv *env, unsigned value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, value);
}

/* On 64 bits these are functions of unsigned long. */
ERL_NIF_TERM enif_make_ulong(ErlNifEnv *env, unsigned long value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, value);
}

int enif_get_ulong(ErlNifEnv *env, ERL_NIF_TERM term, unsigned long *value)
{
    (void)env;
    *value = term >> 4;
    return fake_is(term, FAKE_INT);
}

int enif_get_long(ErlNifEnv *env, ERL_NIF_TERM term, long *value)
{
    (void)env;
    *value = (long)(term >> 4);
    return fake_is(term, FAKE_INT);
}

int enif_get_uint(ErlNifEnv *env, ERL_NIF_TERM term, unsigned *value)
{
    (void)env;
    *value = (unsigned)(term >> 4);
    return fake_is(term, FAKE_INT);
}

int enif_get_int(ErlNifEnv *env, ERL_NIF_TERM term, int *value)
{
    (void)env;
    *value = (int)(term >> 4);
    return fake_is(term, FAKE_INT);
}

ERL_NIF_TERM enif_make_double(ErlNifEnv *env, double value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, (unsigned)value);
}

ERL_NIF_TERM enif_make_string(ErlNifEnv *env, const char *text, ErlNifCharEncoding encoding)
{
    (void)encoding;
    return enif_make_atom(env, text);
}

int enif_is_atom(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_ATOM);
}

int enif_is_ref(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_REF);
}

int enif_is_identical(ERL_NIF_TERM one, ERL_NIF_TERM two)
{
    return one == two;
}

int enif_is_empty_list(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_NIL);
}

int enif_get_list_cell(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *head, ERL_NIF_TERM *tail)
{
    const struct fake_tree *cell = fake_tree(term, FAKE_CONS);

    (void)env;
    if (cell == NULL)
        return 0;
    *head = cell->elements[0];
    *tail = cell->elements[1];
    return 1;
}

int enif_get_tuple(ErlNifEnv *env, ERL_NIF_TERM term, int *arity, const ERL_NIF_TERM **elements)
{
    const struct fake_tree *tuple = fake_tree(term, FAKE_TUPLE);

    (void)env;
    if (tuple == NULL)
        return 0;
    *arity = (int)tuple->size;
    *elements = tuple->elements;
    return 1;
}

int enif_is_binary(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_tree(term, FAKE_BINARY) != NULL;
}

int enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifBinary *binary)
{
    struct fake_tree *tree = fake_tree(term, FAKE_BINARY);

    (void)env;
    if (tree == NULL)
        return 0;
    binary->data = (unsigned char *)tree->elements;
    binary->size = tree->size;
    return 1;
}

/* The output owns it; no job of these tests grows one. */
int enif_alloc_binary(size_t size, ErlNifBinary *binary)
{
    binary->size = size;
    binary->data = malloc(size > 0 ? size : 1);
    return binary->data != NULL;
}

void enif_release_binary(ErlNifBinary *binary)
{
    free(binary->data);
}

/* Of its beginning: what tame/input.h looks at. The VM believes the numbers. */
ERL_NIF_TERM enif_make_sub_binary(ErlNifEnv *env, ERL_NIF_TERM term, size_t at, size_t size)
{
    const struct fake_tree *tree = fake_tree(term, FAKE_BINARY);

    (void)env;
    assert(tree != NULL && at <= tree->size && size <= tree->size - at);
    return term;
}

ERL_NIF_TERM enif_raise_exception(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    (void)reason;
    env->raised = 1;
    return FAKE_EXCEPTION;
}

ERL_NIF_TERM enif_make_badarg(ErlNifEnv *env)
{
    return enif_raise_exception(env, 0);
}

int enif_has_pending_exception(ErlNifEnv *env, ERL_NIF_TERM *reason)
{
    (void)reason;
    return env->raised;
}

/* ---- resources ------------------------------------------------------------------------------------ */

struct enif_resource_type_t {
    struct enif_resource_type_t *next;
    ErlNifResourceDtor *dtor;
    ErlNifResourceDown *down;
};

struct fake_resource {
    ErlNifResourceType *type;
    int holds;
    struct fake_process *monitored;
    struct fake_resource *next; /* of those that are to be destroyed, or that monitor a process */
    long double object[];
};

struct fake_process {
    pthread_mutex_t lock; /* guards all of it but killed, which is read without it too */
    pthread_cond_t told;
    struct fake_process *next;
    int killed, dead, dirty;
    ERL_NIF_TERM go[8]; /* references that {Ref, go} has come with */
    int go_len;
};

static pthread_mutex_t fake_resources_lock = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static pthread_cond_t fake_doomed_came = PTHREAD_COND_INITIALIZER;
static struct fake_resource *fake_doomed, *fake_monitoring;
static int fake_over, fake_resources; /* that live */

/* Not inline: gcc would see that it leaves what enif_alloc_resource gave. */
__attribute__((noinline)) static struct fake_resource *fake_resource(const void *object)
{
    return (struct fake_resource *)((char *)object - offsetof(struct fake_resource, object));
}

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    struct fake_resource *resource = malloc(sizeof *resource + size); /* its holders own it */

    if (resource == NULL)
        abort();
    memset(resource, 0, sizeof *resource);
    memset(resource->object, 0xa5, size); /* nobody may rely on zeros */
    resource->type = type;
    resource->holds = 1;
    __atomic_add_fetch(&fake_resources, 1, __ATOMIC_SEQ_CST);
    return resource->object;
}

void enif_keep_resource(void *object)
{
    __atomic_add_fetch(&fake_resource(object)->holds, 1, __ATOMIC_RELAXED);
}

void enif_release_resource(void *object)
{
    struct fake_resource *resource = fake_resource(object), **at;

    if (__atomic_sub_fetch(&resource->holds, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    pthread_mutex_lock(&fake_resources_lock);
    if (resource->monitored != NULL) {
        for (at = &fake_monitoring; *at != resource; at = &(*at)->next) {
        }
        *at = resource->next;
    }
    resource->next = fake_doomed;
    fake_doomed = resource;
    pthread_cond_signal(&fake_doomed_came);
    pthread_mutex_unlock(&fake_resources_lock);
}

/* The scheduler that runs destructors. */
static void *fake_destroyer(void *arg)
{
    struct enif_environment_t env;

    (void)arg;
    memset(&env, 0, sizeof env);
    pthread_mutex_lock(&fake_resources_lock);
    while (!fake_over || fake_doomed != NULL) {
        struct fake_resource *resource = fake_doomed;

        if (resource == NULL) {
            pthread_cond_wait(&fake_doomed_came, &fake_resources_lock);
            continue;
        }
        fake_doomed = resource->next;
        pthread_mutex_unlock(&fake_resources_lock);
        resource->type->dtor(&env, resource->object);
        free(resource);
        pthread_mutex_lock(&fake_resources_lock);
        __atomic_sub_fetch(&fake_resources, 1, __ATOMIC_SEQ_CST);
    }
    pthread_mutex_unlock(&fake_resources_lock);
    return NULL;
}

int enif_monitor_process(ErlNifEnv *env, void *object, const ErlNifPid *pid, ErlNifMonitor *monitor)
{
    struct fake_resource *resource = fake_resource(object);
    struct fake_process *process = (struct fake_process *)pid->pid;

    (void)env;
    (void)monitor;
    pthread_mutex_lock(&fake_resources_lock);
    resource->monitored = process;
    resource->next = fake_monitoring;
    fake_monitoring = resource;
    pthread_mutex_unlock(&fake_resources_lock);
    return 0;
}

/* The process is dead: once, by who finds it so. */
static void fake_down(struct fake_process *process)
{
    struct enif_environment_t env;
    ErlNifPid pid = {(ERL_NIF_TERM)process};
    ErlNifMonitor monitor;

    memset(&env, 0, sizeof env);
    memset(&monitor, 0, sizeof monitor);
    pthread_mutex_lock(&fake_resources_lock);
    for (;;) {
        struct fake_resource **at = &fake_monitoring, *resource;
        int held;

        while (*at != NULL && (*at)->monitored != process)
            at = &(*at)->next;
        resource = *at;
        if (resource == NULL)
            break;
        *at = resource->next;
        resource->monitored = NULL;
        held = __atomic_load_n(&resource->holds, __ATOMIC_RELAXED);
        while (held > 0 && !__atomic_compare_exchange_n(&resource->holds, &held, held + 1, 0,
                                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
        }
        if (held == 0) /* about to be destroyed */
            continue;
        pthread_mutex_unlock(&fake_resources_lock);
        resource->type->down(&env, resource->object, &pid, &monitor);
        enif_release_resource(resource->object);
        pthread_mutex_lock(&fake_resources_lock);
    }
    pthread_mutex_unlock(&fake_resources_lock);
}

ERL_NIF_TERM enif_make_resource(ErlNifEnv *env, void *object)
{
    const ERL_NIF_TERM term = fake_make(env, FAKE_RESOURCE, 0, 0, NULL);

    enif_keep_resource(object);
    ((struct fake_tree *)term)->object = object;
    return term;
}

int enif_get_resource(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifResourceType *type, void **object)
{
    const struct fake_tree *tree = fake_tree(term, FAKE_RESOURCE);

    (void)env;
    if (tree == NULL || fake_resource(tree->object)->type != type)
        return 0;
    *object = tree->object;
    return 1;
}

ErlNifResourceType *enif_init_resource_type(ErlNifEnv *env, const char *name,
                                            const ErlNifResourceTypeInit *init,
                                            ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    static ErlNifResourceType *all;
    ErlNifResourceType *type = fake_memory(sizeof *type); /* kept to the end */

    (void)env;
    (void)name;
    (void)flags;
    (void)tried;
    type->next = all;
    all = type;
    type->dtor = init->dtor;
    type->down = init->members > 2 ? init->down : NULL;
    return type;
}

ErlNifResourceType *enif_open_resource_type_x(ErlNifEnv *env, const char *name,
                                              const ErlNifResourceTypeInit *init,
                                              ErlNifResourceFlags flags, ErlNifResourceFlags *tried)
{
    ErlNifResourceTypeInit only = {.dtor = init->dtor, .members = 1};

    return enif_init_resource_type(env, name, &only, flags, tried);
}

int enif_dynamic_resource_call(ErlNifEnv *env, ERL_NIF_TERM module, ERL_NIF_TERM name,
                               ERL_NIF_TERM term, void *data)
{
    (void)env;
    (void)module;
    (void)name;
    (void)term;
    (void)data;
    return 1;
}

/* ---- environments --------------------------------------------------------------------------------- */

ErlNifEnv *enif_alloc_env(void)
{
    __atomic_add_fetch(&fake_envs, 1, __ATOMIC_SEQ_CST);
    return fake_memory(sizeof(ErlNifEnv));
}

void enif_clear_env(ErlNifEnv *env)
{
    while (env->trees != NULL) {
        struct fake_tree *tree = env->trees;

        env->trees = tree->next;
        if (tree->shape == FAKE_RESOURCE)
            enif_release_resource(tree->object);
        free(tree);
    }
    env->raised = 0;
}

void enif_free_env(ErlNifEnv *env)
{
    enif_clear_env(env);
    free(env);
    __atomic_sub_fetch(&fake_envs, 1, __ATOMIC_SEQ_CST);
}

ERL_NIF_TERM enif_make_copy(ErlNifEnv *env, ERL_NIF_TERM term)
{
    const struct fake_tree *tree = (const struct fake_tree *)term;
    ERL_NIF_TERM elements[8];

    if (!fake_is(term, FAKE_TREE))
        return term;
    switch (tree->shape) {
    case FAKE_RESOURCE:
        return enif_make_resource(env, tree->object);
    case FAKE_BINARY:
        return fake_make(env, FAKE_BINARY, tree->size, tree->size, tree->elements);
    default:
        for (size_t i = 0; i < tree->size; i++)
            elements[i] = enif_make_copy(env, tree->elements[i]);
        return fake_make(env, tree->shape, tree->size, tree->size * sizeof *elements, elements);
    }
}

void *enif_priv_data(ErlNifEnv *env)
{
    (void)env;
    return fake_priv_data;
}

/* ---- processes ------------------------------------------------------------------------------------ */

static __thread int fake_on_dirty;
static __thread int fake_on_scheduler;

int enif_thread_type(void)
{
    return fake_on_dirty       ? ERL_NIF_THR_DIRTY_CPU_SCHEDULER
           : fake_on_scheduler ? ERL_NIF_THR_NORMAL_SCHEDULER
                               : ERL_NIF_THR_UNDEFINED;
}

ErlNifPid *enif_self(ErlNifEnv *env, ErlNifPid *pid)
{
    if (env->process == NULL)
        return NULL;
    pid->pid = (ERL_NIF_TERM)env->process;
    return pid;
}

/* Of pids alone. */
int enif_compare(ERL_NIF_TERM one, ERL_NIF_TERM two)
{
    return one < two ? -1 : one > two;
}

int enif_whereis_pid(ErlNifEnv *env, ERL_NIF_TERM name, ErlNifPid *pid)
{
    (void)env;
    (void)name;
    (void)pid;
    return 0;
}

int enif_is_current_process_alive(ErlNifEnv *env)
{
    return !__atomic_load_n(&env->process->killed, __ATOMIC_SEQ_CST);
}

/* {Ref, go} is all that is sent. */
int enif_send(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *message_env, ERL_NIF_TERM message)
{
    struct fake_process *process = (struct fake_process *)to->pid;
    const struct fake_tree *tuple = fake_tree(message, FAKE_TUPLE);
    int sent;

    (void)message_env;
    if (env != NULL && fake_on_dirty && env->process != NULL && !enif_is_current_process_alive(env))
        return 0;
    pthread_mutex_lock(&process->lock);
    sent = !process->dead;
    if (sent) {
        if (process->go_len == 8)
            abort();
        process->go[process->go_len++] = tuple->elements[0];
        pthread_cond_signal(&process->told);
    }
    pthread_mutex_unlock(&process->lock);
    return sent;
}

static struct fake_process *fake_process_begin(void)
{
    static struct fake_process *all;
    struct fake_process *process = fake_memory(sizeof *process); /* kept: its address is a pid */

    pthread_mutex_init(&process->lock, NULL);
    pthread_cond_init(&process->told, NULL);
    process->next = __atomic_load_n(&all, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&all, &process->next, process, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
    }
    return process;
}

/* Returns whether it is this thread that finds it dead. */
static int fake_dies(struct fake_process *process)
{
    const int dies = process->killed && !process->dead;

    process->dead |= dies;
    return dies;
}

static void fake_kill(struct fake_process *process)
{
    int dies;

    pthread_mutex_lock(&process->lock);
    __atomic_store_n(&process->killed, 1, __ATOMIC_SEQ_CST);
    dies = process->dirty && fake_dies(process);
    pthread_cond_signal(&process->told);
    pthread_mutex_unlock(&process->lock);
    if (dies)
        fake_down(process);
}

/* Between two NIFs, and while it waits. Returns 1 when it is dead. */
static int fake_looks(struct fake_process *process, int to_dirty)
{
    int dies, dead;

    pthread_mutex_lock(&process->lock);
    process->dirty = to_dirty;
    dies = fake_dies(process);
    dead = process->dead;
    pthread_mutex_unlock(&process->lock);
    if (dies)
        fake_down(process);
    return dead;
}

/* Waits for {Ref, go}: 1; 0: the time is over, or the process is killed. */
static int fake_receive(struct fake_process *process, ERL_NIF_TERM reference, uint64_t wait_ns)
{
    struct timespec until;
    int come = 0, error = 0;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)((until.tv_nsec + (long)(wait_ns % 1000000000)) / 1000000000 +
                             (long)(wait_ns / 1000000000));
    until.tv_nsec = (until.tv_nsec + (long)(wait_ns % 1000000000)) % 1000000000;
    pthread_mutex_lock(&process->lock);
    while (!process->killed) {
        for (int i = 0; i < process->go_len && !come; i++) {
            come = process->go[i] == reference;
            if (come)
                process->go[i] = process->go[--process->go_len];
        }
        if (come || error != 0)
            break;
        error = pthread_cond_timedwait(&process->told, &process->lock, &until);
    }
    pthread_mutex_unlock(&process->lock);
    return come;
}

ERL_NIF_TERM enif_schedule_nif(ErlNifEnv *env, const char *name, int flags,
                               ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]),
                               int argc, const ERL_NIF_TERM argv[])
{
    (void)name;
    env->nif = nif;
    env->dirty = flags != 0;
    env->argc = argc;
    memcpy(env->argv, argv, sizeof *argv * (size_t)argc);
    return FAKE_SCHEDULED;
}

/* Calls a NIF and what it schedules. Returns 0 when the process has died. */
static ERL_NIF_TERM fake_call(ErlNifEnv *env, int dirty,
                              ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]), int argc,
                              const ERL_NIF_TERM *argv)
{
    ERL_NIF_TERM term, args[16];

    fake_on_scheduler = 1;
    for (;;) {
        if (fake_looks(env->process, dirty))
            return 0;
        fake_on_dirty = dirty;
        memcpy(args, argv, sizeof *argv * (size_t)argc);
        term = nif(env, argc, args);
        fake_on_dirty = 0;
        if (fake_looks(env->process, 0))
            return 0;
        if (term != FAKE_SCHEDULED)
            return term;
        nif = env->nif;
        dirty = env->dirty;
        argc = env->argc;
        argv = env->argv;
    }
}

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)env;
    (void)percent;
    return 0;
}

/* ---- memory, threads, the system ------------------------------------------------------------------ */

void *enif_alloc(size_t size)
{
    return malloc(size);
}

void enif_free(void *memory)
{
    free(memory);
}

ErlNifMutex *enif_mutex_create(char *name)
{
    pthread_mutex_t *mutex = fake_memory(sizeof *mutex);

    (void)name;
    pthread_mutex_init(mutex, NULL);
    return (ErlNifMutex *)mutex;
}

void enif_mutex_destroy(ErlNifMutex *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
    free(mutex);
}

void enif_mutex_lock(ErlNifMutex *mutex)
{
    pthread_mutex_lock((pthread_mutex_t *)mutex);
}

void enif_mutex_unlock(ErlNifMutex *mutex)
{
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

ErlNifCond *enif_cond_create(char *name)
{
    pthread_cond_t *cond = fake_memory(sizeof *cond);

    (void)name;
    pthread_cond_init(cond, NULL);
    return (ErlNifCond *)cond;
}

void enif_cond_destroy(ErlNifCond *cond)
{
    pthread_cond_destroy((pthread_cond_t *)cond);
    free(cond);
}

void enif_cond_signal(ErlNifCond *cond)
{
    pthread_cond_signal((pthread_cond_t *)cond);
}

void enif_cond_broadcast(ErlNifCond *cond)
{
    pthread_cond_broadcast((pthread_cond_t *)cond);
}

void enif_cond_wait(ErlNifCond *cond, ErlNifMutex *mutex)
{
    pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex);
}

static int fake_refuse_threads; /* one thread of that many is not made; 0: all are */
static int fake_late_us;        /* so long after its thread has begun its maker goes on */

int enif_thread_create(char *name, ErlNifTid *tid, void *(*run)(void *), void *arg,
                       ErlNifThreadOpts *opts)
{
    static unsigned asked;
    pthread_t thread;

    (void)name;
    (void)opts;
    if (fake_refuse_threads > 0 &&
        __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST) % (unsigned)fake_refuse_threads == 0)
        return usleep(50) == 0; /* it takes the system a while to find that out */
    if (pthread_create(&thread, NULL, run, arg) != 0)
        return 1;
    *tid = (ErlNifTid)thread;
    if (fake_late_us > 0)
        (void)usleep((useconds_t)fake_late_us);
    return 0;
}

int enif_thread_join(ErlNifTid tid, void **result)
{
    return pthread_join((pthread_t)tid, result);
}

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    (void)name;
    return fake_memory(sizeof(ErlNifThreadOpts));
}

void enif_thread_opts_destroy(ErlNifThreadOpts *opts)
{
    free(opts);
}

ErlNifTime enif_monotonic_time(ErlNifTimeUnit unit)
{
    struct timespec now;

    (void)unit;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (ErlNifTime)now.tv_sec * 1000000000 + now.tv_nsec;
}

void enif_system_info(ErlNifSysInfo *info, size_t size)
{
    memset(info, 0, size);
    info->scheduler_threads = 4;
}

#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION > 16 /* OTP 26 */
int enif_set_option(ErlNifEnv *env, ErlNifOption option, ...)
{
    (void)env;
    (void)option;
    return 0;
}
#endif

int enif_fprintf(FILE *file, const char *format, ...)
{
    (void)file;
    (void)format;
    return 0;
}

int enif_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(text, size, format, list);
    va_end(list);
    return length;
}

#endif
