/* The kinds of threads: each has a NIF that does a use there. The function table and load. */
#include "threads.h"
#include <string.h>
#include <unistd.h>

typedef ERL_NIF_TERM (*op)(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                           const ErlNifPid *pid);

ErlNifResourceType *plain_type;
static ErlNifResourceType *work_type; /* its callbacks do an op */

static ERL_NIF_TERM here(ErlNifEnv *env)
{
    const int type = enif_thread_type();

    return atom(env, type == ERL_NIF_THR_UNDEFINED             ? "none"
                     : type == ERL_NIF_THR_NORMAL_SCHEDULER    ? "normal"
                     : type == ERL_NIF_THR_DIRTY_CPU_SCHEDULER ? "dirty_cpu"
                     : type == ERL_NIF_THR_DIRTY_IO_SCHEDULER  ? "dirty_io"
                                                               : "unknown");
}

#define ROW(of)                     \
    {                               \
        .name = #of, .run = op_##of \
    }

static const struct {
    const char *name;
    op run;
} ops[] = {
    OPS(ROW),
    {"port_command_closed", op_port_command},
};

static op find_op(ErlNifEnv *env, ERL_NIF_TERM name)
{
    char text[32];

    if (enif_get_atom(env, name, text, sizeof text, ERL_NIF_LATIN1))
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (strcmp(ops[i].name, text) == 0)
                return ops[i].run;
    return NULL;
}

/* An op that is done elsewhere: a resource of work_type. Its answer goes to pid: {Ref, Thread,
 * Term}. */
struct work {
    op run;
    ErlNifEnv *env; /* owned; holds term and reference */
    ERL_NIF_TERM term, reference;
    ErlNifPid pid;
    ErlNifMonitor monitor;
    int fds[2];
    int in_dtor; /* the op is for the destructor */
};

/* (Op, Term, Ref) -> {Ref, Thread, Term}, where the NIF runs. */
static ERL_NIF_TERM scheduler_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const op run = find_op(env, argv[0]);
    ErlNifPid self;
    ERL_NIF_TERM term;

    (void)argc;
    if (run == NULL)
        return enif_make_badarg(env);
    term = run(env, env, argv[1], enif_self(env, &self));
    /* What enif_schedule_nif returns is no term, and has to be returned as it is. */
    return run == op_schedule_nif ? term : enif_make_tuple3(env, argv[2], here(env), term);
}

static void do_work(ErlNifEnv *caller, struct work *work)
{
    const ERL_NIF_TERM term = work->run(caller, work->env, work->term, &work->pid);

    (void)enif_send(caller, &work->pid, NULL,
                    enif_make_tuple3(work->env, work->reference, here(work->env), term));
    enif_free_env(work->env);
    work->env = NULL;
}

static struct work *new_work(ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    struct work *work = enif_alloc_resource(work_type, sizeof *work);

    memset(work, 0, sizeof *work);
    work->run = find_op(env, argv[0]);
    work->env = enif_alloc_env();
    work->term = enif_make_copy(work->env, argv[1]);
    work->reference = enif_make_copy(work->env, argv[2]);
    enif_self(env, &work->pid);
    return work;
}

static void *on_thread(void *arg)
{
    do_work(NULL, arg);
    return NULL;
}

static void *release_on_thread(void *arg)
{
    enif_release_resource(arg);
    return NULL;
}

/* On a dirty I/O scheduler, which waits for the thread. */
static ERL_NIF_TERM with_thread(ErlNifEnv *env, struct work *work, void *(*run)(void *))
{
    ErlNifTid tid;

    if (enif_thread_create("threads_test", &tid, run, work, NULL) != 0)
        return enif_make_badarg(env);
    enif_thread_join(tid, NULL);
    return atom(env, "ok");
}

static ERL_NIF_TERM thread_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);
    const ERL_NIF_TERM ok = with_thread(env, work, on_thread);

    (void)argc;
    enif_release_resource(work);
    return ok;
}

static ERL_NIF_TERM dtor_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    work->in_dtor = 1;
    enif_release_resource(work);
    return atom(env, "ok");
}

static ERL_NIF_TERM dtor_thread_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    work->in_dtor = 1;
    return with_thread(env, work, release_on_thread);
}

/* The fourth argument is a process that the test ends. */
static ERL_NIF_TERM down_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);
    ErlNifPid victim;

    (void)argc;
    /* The callback releases it. */
    return enif_get_local_pid(env, argv[3], &victim) &&
                   enif_monitor_process(env, work, &victim, &work->monitor) == 0
               ? atom(env, "ok")
               : enif_make_badarg(env);
}

static ERL_NIF_TERM stop_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    if (pipe(work->fds) != 0 ||
        enif_select(env, work->fds[0], ERL_NIF_SELECT_READ, work, NULL, atom(env, "undefined")) < 0)
        return enif_make_badarg(env);
    (void)enif_select(env, work->fds[0], ERL_NIF_SELECT_STOP, work, NULL, atom(env, "undefined"));
    enif_release_resource(work);
    return atom(env, "ok");
}

static void work_dtor(ErlNifEnv *env, void *object)
{
    struct work *work = object;

    if (work->in_dtor)
        do_work(env, work);
    if (work->env != NULL)
        enif_free_env(work->env);
}

static void work_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid, (void)monitor;
    do_work(env, object);
    enif_release_resource(object);
}

static void work_stop(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    struct work *work = object;

    (void)event, (void)is_direct_call;
    do_work(env, work);
    close(work->fds[0]);
    close(work->fds[1]);
}

static void plain_dtor(ErlNifEnv *env, void *object)
{
    ErlNifPid *pid = object;
    ErlNifEnv *message;

    if (enif_is_pid_undefined(pid))
        return;
    message = enif_alloc_env();
    (void)enif_send(env, pid, message,
                    enif_make_tuple2(message, atom(message, "dtor"), here(message)));
    enif_free_env(message);
}

static void plain_stop(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    (void)env, (void)object, (void)event, (void)is_direct_call;
}

static void plain_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)object, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit work = {.dtor = work_dtor, .stop = work_stop, .down = work_down};
    ErlNifResourceTypeInit plain = {.dtor = plain_dtor, .stop = plain_stop, .down = plain_down};

    (void)info;
    *priv_data = &plain_type;
    work_type = enif_open_resource_type_x(env, "work", &work, ERL_NIF_RT_CREATE, NULL);
    plain_type = enif_open_resource_type_x(env, "plain", &plain, ERL_NIF_RT_CREATE, NULL);
    return work_type == NULL || plain_type == NULL;
}

static ErlNifFunc functions[] = {{"normal", 3, scheduler_nif, 0},
                                 {"dirty_cpu", 3, scheduler_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"dirty_io", 3, scheduler_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"thread", 3, thread_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"dtor", 3, dtor_nif, 0},
                                 {"dtor_thread", 3, dtor_thread_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"down", 4, down_nif, 0},
                                 {"stop", 3, stop_nif, 0}};

ERL_NIF_INIT(Elixir.Tame.Threads, functions, load, NULL, NULL, NULL)
