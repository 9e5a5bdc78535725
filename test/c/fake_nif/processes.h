/* processes.h - processes: each a thread that calls NIFs, may be killed, and waits for one message. Part of fake_nif.h. */
#ifndef TEST_FAKE_NIF_PROCESSES_H
#define TEST_FAKE_NIF_PROCESSES_H

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

/* {Ref, go} is all that is sent, and {tame_fd, Ref, _} of descriptors. */
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
        process->go[process->go_len++] = tuple->elements[tuple->size == 3];
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
static __attribute__((unused)) int fake_receive(struct fake_process *process,
                                                ERL_NIF_TERM reference, uint64_t wait_ns)
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
static __attribute__((unused)) ERL_NIF_TERM
fake_call(ErlNifEnv *env, int dirty, ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]),
          int argc, const ERL_NIF_TERM *argv)
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

static int fake_percents; /* atomic: what all processes were charged, but for whole timeslices */

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)env;
    __atomic_add_fetch(&fake_percents, percent < 100 ? percent : 0, __ATOMIC_RELAXED);
    return 0;
}

#endif
