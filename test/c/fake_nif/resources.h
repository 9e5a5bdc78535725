/* resources.h - resources, and the scheduler that runs their destructors. Part of fake_nif.h. */
#ifndef TEST_FAKE_NIF_RESOURCES_H
#define TEST_FAKE_NIF_RESOURCES_H

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
static ErlNifResourceType
    *fake_full_type; /* for whose resources there is no memory; NULL: there is for all */

/* Not inline: gcc would see that it leaves what enif_alloc_resource gave. */
__attribute__((noinline)) static struct fake_resource *fake_resource(const void *object)
{
    return (struct fake_resource *)((char *)object - offsetof(struct fake_resource, object));
}

void *enif_alloc_resource(ErlNifResourceType *type, size_t size)
{
    struct fake_resource *resource;

    if (type == fake_full_type)
        return NULL;
    resource = malloc(sizeof *resource + size); /* its holders own it */
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
    int dead;

    (void)env;
    (void)monitor;
    pthread_mutex_lock(&fake_resources_lock);
    pthread_mutex_lock(&process->lock);
    dead = process->dead;
    pthread_mutex_unlock(&process->lock);
    if (dead) {
        pthread_mutex_unlock(&fake_resources_lock);
        return 1;
    }
    resource->monitored = process;
    resource->next = fake_monitoring;
    fake_monitoring = resource;
    pthread_mutex_unlock(&fake_resources_lock);
    return 0;
}

ErlNifUInt64 enif_hash(ErlNifHash type, ERL_NIF_TERM term, ErlNifUInt64 salt)
{
    (void)type;
    return term ^ salt;
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
    ErlNifResourceTypeInit only = {.dtor = init->dtor, .down = init->down, .members = 3};

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

#endif
