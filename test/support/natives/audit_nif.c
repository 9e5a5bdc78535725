/* NIFs that do not behave, for the audit. */
#include <erl_nif.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
    struct timespec now;
    ErlNifSInt64 end_ns;
    int ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    clock_gettime(CLOCK_MONOTONIC, &now);
    end_ns = now.tv_sec * 1000000000LL + now.tv_nsec + ms * 1000000LL;
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (now.tv_sec * 1000000000LL + now.tv_nsec < end_ns);
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

static ErlNifFunc functions[] = {
    {"forever", 1, forever_nif, 0}, {"forking", 1, forking_nif, 0},
    {"crash", 1, crash_nif, 0},     {"stubborn", 1, stubborn_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"leaky", 1, leaky_nif, 0},     {"leaky_malloc", 1, leaky_malloc_nif, 0},
    {"thrifty", 1, thrifty_nif, 0}, {"chatty", 1, chatty_nif, 0},
    {"picky", 1, picky_nif, 0}};

#ifdef CRASH_ON_LOAD
static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)env;
    (void)priv_data;
    (void)load_info;
    raise(SIGABRT);
    return 0;
}
#else
#define load NULL
#endif

#ifdef CRASH_ON_OPEN
__attribute__((constructor)) static void crash(void)
{
    raise(SIGBUS);
}
#endif

/* The name must be there before ERL_NIF_INIT makes a text of it. */
#define INIT(module) ERL_NIF_INIT(module, functions, load, NULL, NULL, NULL)

INIT(MODULE)
