/* bench_threads: what tame.h's placements thread and pool are compared with, written by hand. Each
 * NIF copies its term into an environment of its own, because a term of the caller is not valid on
 * another thread, and the thread answers with {Ref, Term} by enif_send. No scheduler ever waits for
 * a thread: the threads that are made for one call are joined by one reaper thread. */
#include <erl_nif.h>
#include <string.h>

#include "queue.h"

/* Workers of the pool: enough that one caller always finds an idle one. */
#define POOL_WORKERS 2

/* A lock, a condition and the echoes that wait behind them. */
struct mailbox {
    ErlNifMutex *lock;
    ErlNifCond *filled;
    struct queue queue; /* of struct echo; guarded by lock */
    int closed;         /* no more will come; guarded by lock */
};

/* One instance of the loaded library; lives in priv_data. */
struct library {
    struct mailbox work;     /* echoes for the pool */
    struct mailbox finished; /* echoes whose own thread is about to end, for the reaper */
    ErlNifTid workers[POOL_WORKERS];
    int worker_count;
    ErlNifTid reaper;
    int reaper_runs;
    ErlNifMutex *starts; /* guards running */
    ErlNifCond *none_run;
    int running; /* threads of the thread-per-call method not yet joined */
};

/* One echo on its way through a thread. Owned by the thread that handles it. */
struct echo {
    struct queue_node node; /* first, so that a node is its echo */
    struct library *library;
    ErlNifEnv *env; /* holds reply */
    ErlNifPid caller;
    ERL_NIF_TERM reply; /* {Ref, Term} */
    ErlNifTid tid;      /* thread-per-call only */
};

/* ---- mailboxes ------------------------------------------------------------------------- */

static int mailbox_open(struct mailbox *box, char *name)
{
    box->lock = enif_mutex_create(name);
    box->filled = enif_cond_create(name);
    queue_init(&box->queue);
    box->closed = 0;
    return box->lock != NULL && box->filled != NULL;
}

static void mailbox_put(struct mailbox *box, struct echo *echo)
{
    enif_mutex_lock(box->lock);
    queue_push(&box->queue, &echo->node); /* the queue owns the echo now */
    enif_cond_signal(box->filled);
    enif_mutex_unlock(box->lock);
}

/* Waits for an echo. NULL when the mailbox is closed and empty. */
static struct echo *mailbox_take(struct mailbox *box)
{
    struct queue_node *node;

    enif_mutex_lock(box->lock);
    while ((node = queue_pop(&box->queue)) == NULL && !box->closed)
        enif_cond_wait(box->filled, box->lock);
    enif_mutex_unlock(box->lock);
    return (struct echo *)node; /* the caller owns the echo now */
}

static void mailbox_close(struct mailbox *box)
{
    enif_mutex_lock(box->lock);
    box->closed = 1;
    enif_cond_broadcast(box->filled);
    enif_mutex_unlock(box->lock);
}

static void mailbox_free(struct mailbox *box)
{
    if (box->filled != NULL)
        enif_cond_destroy(box->filled);
    if (box->lock != NULL)
        enif_mutex_destroy(box->lock);
}

/* ---- echoes ------------------------------------------------------------------------------ */

static void echo_free(struct echo *echo)
{
    enif_free_env(echo->env);
    enif_free(echo);
}

/* (Ref, Term): an echo that owns copies of both, or NULL when memory is short. */
static struct echo *echo_new(ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    struct echo *echo = enif_alloc(sizeof *echo);

    if (echo == NULL)
        return NULL;
    memset(echo, 0, sizeof *echo);
    echo->library = enif_priv_data(env);
    echo->env = enif_alloc_env();
    if (echo->env == NULL) {
        enif_free(echo);
        return NULL;
    }
    enif_self(env, &echo->caller);
    echo->reply = enif_make_tuple2(echo->env, enif_make_copy(echo->env, argv[0]),
                                   enif_make_copy(echo->env, argv[1]));
    return echo;
}

static void echo_reply(struct echo *echo)
{
    /* A caller that has died meanwhile is no error: there is nobody left to tell. */
    (void)enif_send(NULL, &echo->caller, echo->env, echo->reply);
}

/* ---- threads --------------------------------------------------------------------------- */

static void *pool_worker(void *arg)
{
    struct library *library = arg;
    struct echo *echo;

    while ((echo = mailbox_take(&library->work)) != NULL) {
        echo_reply(echo);
        echo_free(echo);
    }
    return NULL;
}

static void *call_thread(void *arg)
{
    struct echo *echo = arg;

    echo_reply(echo);
    mailbox_put(&echo->library->finished, echo); /* the reaper owns the echo now */
    return NULL;
}

/* Joins the threads that have answered, so that no scheduler has to. */
static void *reap(void *arg)
{
    struct library *library = arg;
    struct echo *echo;

    while ((echo = mailbox_take(&library->finished)) != NULL) {
        /* The creator writes tid after the thread may already have answered, under starts. */
        enif_mutex_lock(library->starts);
        ErlNifTid tid = echo->tid;
        enif_mutex_unlock(library->starts);

        enif_thread_join(tid, NULL);
        echo_free(echo);

        enif_mutex_lock(library->starts);
        if (--library->running == 0)
            enif_cond_broadcast(library->none_run);
        enif_mutex_unlock(library->starts);
    }
    return NULL;
}

/* ---- NIFs ------------------------------------------------------------------------------ */

static ERL_NIF_TERM raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

static ERL_NIF_TERM in_queue(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ref, Term) -> ok; {Ref, Term} follows from a worker of the pool */
    struct echo *echo = echo_new(env, argv);

    (void)argc;
    if (echo == NULL)
        return raise_enomem(env);
    mailbox_put(&echo->library->work, echo);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM in_new_thread(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ref, Term) -> ok; {Ref, Term} follows from a thread made for this call */
    struct echo *echo = echo_new(env, argv);
    struct library *library;
    int failed;

    (void)argc;
    if (echo == NULL)
        return raise_enomem(env);
    library = echo->library;

    enif_mutex_lock(library->starts);
    failed = enif_thread_create("bench_call", &echo->tid, call_thread, echo, NULL);
    if (!failed)
        library->running++;
    enif_mutex_unlock(library->starts);

    if (failed) {
        echo_free(echo);
        return enif_raise_exception(env, enif_make_atom(env, "system_limit"));
    }
    return enif_make_atom(env, "ok");
}

/* ---- life cycle ------------------------------------------------------------------------ */

static void library_close(struct library *library)
{
    if (library->starts != NULL && library->none_run != NULL) {
        enif_mutex_lock(library->starts);
        while (library->running > 0)
            enif_cond_wait(library->none_run, library->starts);
        enif_mutex_unlock(library->starts);
    }
    if (library->reaper_runs) {
        mailbox_close(&library->finished);
        enif_thread_join(library->reaper, NULL);
    }
    if (library->worker_count > 0)
        mailbox_close(&library->work);
    while (library->worker_count > 0)
        enif_thread_join(library->workers[--library->worker_count], NULL);

    mailbox_free(&library->work);
    mailbox_free(&library->finished);
    if (library->none_run != NULL)
        enif_cond_destroy(library->none_run);
    if (library->starts != NULL)
        enif_mutex_destroy(library->starts);
    enif_free(library);
}

static int library_open(struct library *library)
{
    library->starts = enif_mutex_create("bench_starts");
    library->none_run = enif_cond_create("bench_none_run");
    if (library->starts == NULL || library->none_run == NULL)
        return 0;
    /* Both are opened, whatever the first says: library_close frees both. */
    if (!(mailbox_open(&library->work, "bench_work") &
          mailbox_open(&library->finished, "bench_finished")))
        return 0;

    library->reaper_runs =
        enif_thread_create("bench_reaper", &library->reaper, reap, library, NULL) == 0;
    if (!library->reaper_runs)
        return 0;
    for (int i = 0; i < POOL_WORKERS; i++) {
        if (enif_thread_create("bench_worker", &library->workers[i], pool_worker, library, NULL) !=
            0)
            return 0;
        library->worker_count++;
    }
    return 1;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    struct library *library = enif_alloc(sizeof *library); /* owned by priv_data until unload */

    (void)env;
    (void)load_info;
    if (library == NULL)
        return 1;
    memset(library, 0, sizeof *library);
    if (!library_open(library)) {
        library_close(library);
        return 1;
    }
    *priv_data = library;
    return 0;
}

/* A new version of the module gets threads of its own; the old ones end with its unload. */
static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    (void)old_priv_data;
    return load(env, priv_data, load_info);
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    library_close(priv_data);
}

static ErlNifFunc functions[] = {
    {"in_new_thread", 2, in_new_thread, 0},
    {"in_queue", 2, in_queue, 0},
};

ERL_NIF_INIT(bench_threads, functions, load, NULL, upgrade, unload)
