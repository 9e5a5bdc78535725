/* NIFs that do not behave, for the audit. */
#include <erl_nif.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static ERL_NIF_TERM forever_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    volatile int go = 1;

    (void)argc;
    (void)argv;
    while (go) {
    }
    return enif_make_atom(env, "ok");
}

/* Leaves a child in its process group, and one in a session of its own whose parent has ended. */
static ERL_NIF_TERM forking_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    pid_t child;

    (void)argc;
    (void)argv;
    child = fork();
    if (child == 0)
        for (;;)
            pause();
    if (child > 0 && (child = fork()) == 0) {
        setsid();
        if (fork() != 0)
            _exit(0);
        for (;;)
            pause();
    }
    return child > 0 ? enif_make_atom(env, "ok") : enif_make_badarg(env);
}

/* Calls since the library was loaded; the audit calls from one process at a time. */
static unsigned called;

/* Raises from the hundredth call on, as a library without a handle left does. */
static ERL_NIF_TERM tired_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    if (++called >= 100)
        return enif_raise_exception(env, enif_make_atom(env, "too_many"));
    return enif_make_atom(env, "ok");
}

/* Does not come back from the hundredth call on. */
static ERL_NIF_TERM stuck_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    while (++called >= 100)
        pause();
    return enif_make_atom(env, "ok");
}

/* By the time of day, or by what the thread itself used. */
static void keep_busy(clockid_t clock, int us)
{
    struct timespec now;
    ErlNifSInt64 end_ns;

    clock_gettime(clock, &now);
    end_ns = now.tv_sec * 1000000000LL + now.tv_nsec + us * 1000LL;
    do
        clock_gettime(clock, &now);
    while (now.tv_sec * 1000000000LL + now.tv_nsec < end_ns);
}

static ErlNifResourceType *slow_type;

static void slow_dtor(ErlNifEnv *env, void *object)
{
    (void)env;
    (void)object;
    keep_busy(CLOCK_MONOTONIC, 50000);
}

/* Returns at once a resource whose end takes 50 ms. The term owns it. */
static ERL_NIF_TERM slow_end_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *object = enif_alloc_resource(slow_type, 16);
    ERL_NIF_TERM term = enif_make_resource(env, object);

    (void)argc;
    (void)argv;
    enif_release_resource(object);
    return term;
}

/* Each fifth call takes 30 ms and is charged one of them. */
static ERL_NIF_TERM at_times_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    if (++called % 5 == 4) {
        keep_busy(CLOCK_THREAD_CPUTIME_ID, 30000);
        enif_consume_timeslice(env, 100);
    }
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM crash_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    raise(SIGSEGV);
    return enif_make_atom(env, "ok");
}

/* Keeps its thread busy for a number of milliseconds, and looks at nothing. */
static ERL_NIF_TERM stubborn_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    keep_busy(CLOCK_MONOTONIC, 1000 * ms);
    return enif_make_atom(env, "ok");
}

/* Keeps 64 bytes of each call, of the VM's or of malloc's. Nobody owns them. */
static void *volatile lost;

static ERL_NIF_TERM leaky_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    lost = memset(enif_alloc(64), 1, 64);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM leaky_malloc_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *block = malloc(64);

    (void)argc;
    (void)argv;
    if (block != NULL)
        lost = memset(block, 1, 64);
    return enif_make_atom(env, "ok");
}

/* Keeps 300 bytes of each call of 0.9 ms, all of which is charged: little for each round of calls. */
static ERL_NIF_TERM leaky_little_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *block = malloc(300);

    (void)argc;
    (void)argv;
    if (block != NULL)
        lost = memset(block, 1, 300);
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 900);
    enif_consume_timeslice(env, 90);
    return enif_make_atom(env, "ok");
}

/* Keeps 64 KiB of shared memory of each call. */
static ERL_NIF_TERM leaky_shared_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *map = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)argc;
    (void)argv;
    if (map == MAP_FAILED)
        return enif_make_badarg(env);
    memset(map, 1, 65536);
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 100);
    return enif_make_atom(env, "ok");
}

/* Keeps a descriptor of each call. */
static ERL_NIF_TERM leaky_descriptor_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    /* Out of descriptors is as good as another one. */
    (void)!dup(STDERR_FILENO);
    return enif_make_atom(env, "ok");
}

/* Fills a cache of 64 bytes a call until it is full, and frees what it takes besides, for which the
 * VM takes a carrier. The library owns the cache for as long as it is loaded. */
static ERL_NIF_TERM thrifty_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    static void *cache[25000];
    static size_t cached;
    void *work = enif_alloc(1 << 20);

    (void)argc;
    (void)argv;
    if (work != NULL)
        memset(work, 1, 4096);
    enif_free(work);
    if (cached < sizeof cache / sizeof *cache)
        cache[cached++] = enif_alloc(64);
    return enif_make_atom(env, "ok");
}

/* Prints in two ways, one past C's buffers, with bytes that no text has. */
static ERL_NIF_TERM chatty_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    printf("chatty says\303\377 this a thousand times\n");
    if (write(STDOUT_FILENO, "chatty\303\303\n", 9) < 0)
        return enif_make_badarg(env);
    return enif_make_atom(env, "ok");
}

/* Takes binaries below 16 KiB. */
static ERL_NIF_TERM picky_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary data;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &data) || data.size >= 16384)
        return enif_make_badarg(env);
    return enif_make_atom(env, "ok");
}

/* How many processes have called: each call of an audit by itself is another one, and so are its rows. */
static unsigned processes(ErlNifEnv *env)
{
    static ErlNifPid last;
    static unsigned count;
    ErlNifPid self;

    if (enif_self(env, &self) != NULL && (count == 0 || enif_compare_pids(&self, &last) != 0)) {
        last = self;
        count++;
    }
    return count;
}

/* An audit of one size takes 11 processes, and up to 3 where it looks for the call that held it. Then come
 * those whose memory is looked at. */
static ERL_NIF_TERM crash_late_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    if (processes(env) > 15)
        raise(SIGSEGV);
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 100);
    enif_consume_timeslice(env, 10);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM tired_late_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    if (processes(env) > 15)
        return enif_raise_exception(env, enif_make_atom(env, "too_many"));
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM hang_late_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    while (processes(env) > 15)
        pause();
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 100);
    enif_consume_timeslice(env, 10);
    return enif_make_atom(env, "ok");
}

/* As at_times, until its calls are traced one by one. */
static ERL_NIF_TERM crash_at_times_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    if (processes(env) > 11)
        raise(SIGSEGV);
    return at_times_nif(env, argc, argv);
}

static ErlNifResourceType *steps_type;

static void steps_dtor(ErlNifEnv *env, void *object)
{
    (void)env;
    if (*(int *)object > 0)
        raise(SIGSEGV);
}

static ERL_NIF_TERM step_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *left;

    if (!enif_get_resource(env, argv[0], steps_type, &left))
        return enif_make_badarg(env);
    if (*(int *)left == 0)
        return enif_make_atom(env, "ok");
    keep_busy(CLOCK_MONOTONIC, 400);
    --*(int *)left;
    enif_consume_timeslice(env, 100);
    return enif_schedule_nif(env, "crash_killed", 0, step_nif, argc, argv);
}

/* Yields in 200 steps, and ends the VM with its caller before the last. The term owns the count. */
static ERL_NIF_TERM crash_killed_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int *left = enif_alloc_resource(steps_type, sizeof *left);
    ERL_NIF_TERM term = enif_make_resource(env, left);

    (void)argc;
    (void)argv;
    *left = 200;
    enif_release_resource(left);
    return enif_schedule_nif(env, "crash_killed", 0, step_nif, 1, &term);
}

/* Keeps a dirty thread for 80 ms, and for ever once its caller is gone. */
static ERL_NIF_TERM hang_killed_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int left;

    (void)argc;
    (void)argv;
    for (left = 200; left > 0; left--) {
        keep_busy(CLOCK_MONOTONIC, 400);
        while (!enif_is_current_process_alive(env))
            pause();
    }
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM more_dirty_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 90000);
    return enif_make_atom(env, "ok");
}

/* Holds its normal scheduler for 60 ms, then a dirty one for 90 ms: less is seen of them on a busy
 * machine. */
static ERL_NIF_TERM twofold_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    keep_busy(CLOCK_THREAD_CPUTIME_ID, 60000);
    return enif_schedule_nif(env, "twofold", ERL_NIF_DIRTY_JOB_CPU_BOUND, more_dirty_nif, argc,
                             argv);
}

static ErlNifFunc functions[] = {{"forever", 1, forever_nif, 0},
                                 {"forking", 1, forking_nif, 0},
                                 {"crash", 1, crash_nif, 0},
                                 {"stubborn", 1, stubborn_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"leaky", 1, leaky_nif, 0},
                                 {"leaky_malloc", 1, leaky_malloc_nif, 0},
                                 {"thrifty", 1, thrifty_nif, 0},
                                 {"chatty", 1, chatty_nif, 0},
                                 {"picky", 1, picky_nif, 0},
                                 {"tired", 1, tired_nif, 0},
                                 {"stuck", 1, stuck_nif, 0},
                                 {"slow_end", 1, slow_end_nif, 0},
                                 {"at_times", 1, at_times_nif, 0},
                                 {"leaky_little", 1, leaky_little_nif, 0},
                                 {"leaky_shared", 1, leaky_shared_nif, 0},
                                 {"leaky_descriptor", 1, leaky_descriptor_nif, 0},
                                 {"crash_late", 1, crash_late_nif, 0},
                                 {"hang_late", 1, hang_late_nif, 0},
                                 {"tired_late", 1, tired_late_nif, 0},
                                 {"crash_at_times", 1, crash_at_times_nif, 0},
                                 {"crash_killed", 1, crash_killed_nif, 0},
                                 {"hang_killed", 1, hang_killed_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"twofold", 1, twofold_nif, 0}};

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)priv_data;
    (void)load_info;
#ifdef CRASH_ON_LOAD
    raise(SIGABRT);
#endif
    slow_type = enif_open_resource_type(env, NULL, "slow", slow_dtor, ERL_NIF_RT_CREATE, NULL);
    steps_type = enif_open_resource_type(env, NULL, "steps", steps_dtor, ERL_NIF_RT_CREATE, NULL);
    return slow_type == NULL || steps_type == NULL;
}

#ifdef CRASH_ON_OPEN
__attribute__((constructor)) static void crash(void)
{
    raise(SIGBUS);
}
#endif

/* The name must be there before ERL_NIF_INIT makes a text of it. */
#define INIT(module) ERL_NIF_INIT(module, functions, load, NULL, NULL, NULL)

INIT(MODULE)
