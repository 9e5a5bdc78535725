/* tame_sigint: passes SIGINT on as SIGTERM while it is trapped. */
#include <erl_nif.h>
#include <signal.h>
#include <unistd.h>

/* What a shell says of a process that SIGINT ended. */
#define SIGINT_STATUS 130

/* The process has one disposition of SIGINT, so these belong to the process too. */
static ErlNifMutex *lock;
static int traps;                 /* under lock */
static struct sigaction previous; /* under lock; valid while traps > 0 */
static volatile sig_atomic_t came;

/* Only what is async-signal-safe. */
static void on_sigint(int signal)
{
    (void)signal;
    if (came)
        _exit(SIGINT_STATUS);
    came = 1;
    (void)kill(getpid(), SIGTERM);
}

static ERL_NIF_TERM trap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> ok */
    struct sigaction action = {.sa_handler = on_sigint, .sa_flags = SA_RESTART};

    (void)argc;
    (void)argv;
    enif_mutex_lock(lock);
    if (traps++ == 0)
        (void)sigaction(SIGINT, &action, &previous); /* fails for no valid signal */
    enif_mutex_unlock(lock);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM restore(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> ok */
    (void)argc;
    (void)argv;
    enif_mutex_lock(lock);
    if (traps > 0 && --traps == 0)
        (void)sigaction(SIGINT, &previous, NULL);
    enif_mutex_unlock(lock);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM has_come(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> boolean() */
    (void)argc;
    (void)argv;
    return enif_make_atom(env, came ? "true" : "false");
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    (void)env;
    (void)priv_data;
    (void)info;
    /* Owned by the library, which stays until the VM ends. */
    if (lock == NULL)
        lock = enif_mutex_create("tame_sigint");
    return lock == NULL;
}

static ErlNifFunc functions[] = {
    {"trap", 0, trap, 0}, {"restore", 0, restore, 0}, {"came", 0, has_come, 0}};

ERL_NIF_INIT(tame_sigint, functions, load, NULL, NULL, NULL)
