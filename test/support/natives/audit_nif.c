/* NIFs that do not behave, for the audit. */
#include <erl_nif.h>
#include <signal.h>
#include <time.h>

static ERL_NIF_TERM forever_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    volatile int go = 1;

    (void)argc;
    (void)argv;
    while (go) {
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

static ErlNifFunc functions[] = {{"forever", 1, forever_nif, 0},
                                 {"crash", 1, crash_nif, 0},
                                 {"stubborn", 1, stubborn_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND}};

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
