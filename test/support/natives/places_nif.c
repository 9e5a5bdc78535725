/* A library whose answers depend on where it runs: resources that have to come home, calls that
 * wait for each other, a message to whom it is told. MODULE is its module's name. */
#include <erl_nif.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

static ErlNifResourceType *cell_type;
static int waiting;

static ERL_NIF_TERM new_cell(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Number) -> Cell */
    int *cell = enif_alloc_resource(cell_type, sizeof *cell);
    ERL_NIF_TERM term;

    (void)argc;
    *cell = 0;
    if (!enif_get_int(env, argv[0], cell)) {
        enif_release_resource(cell);
        return enif_make_badarg(env);
    }
    term = enif_make_resource(env, cell);
    enif_release_resource(cell);
    return term;
}

static ERL_NIF_TERM sum(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* ([Cell]) -> {OsPid, Sum} */
    ERL_NIF_TERM head, tail = argv[0];
    void *cell;
    int total = 0;

    (void)argc;
    while (enif_get_list_cell(env, tail, &head, &tail)) {
        if (!enif_get_resource(env, head, cell_type, &cell))
            return enif_make_badarg(env);
        total += *(int *)cell;
    }
    return enif_make_tuple2(env, enif_make_int(env, (int)getpid()), enif_make_int(env, total));
}

static ERL_NIF_TERM meet(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Count) -> ok, when this many calls are in here at once */
    int count;

    (void)argc;
    if (!enif_get_int(env, argv[0], &count))
        return enif_make_badarg(env);
    __atomic_add_fetch(&waiting, 1, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&waiting, __ATOMIC_SEQ_CST) < count)
        usleep(1000);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM arrive(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Count) -> ok: adds Count to the calls that wait in meet */
    int count;

    (void)argc;
    if (!enif_get_int(env, argv[0], &count))
        return enif_make_badarg(env);
    __atomic_add_fetch(&waiting, count, __ATOMIC_SEQ_CST);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM tell(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Name, Message) -> true | false: whether a process of this name was found and told */
    ErlNifPid pid;
    int told = enif_whereis_pid(env, argv[0], &pid) && enif_send(env, &pid, NULL, argv[1]);

    (void)argc;
    return enif_make_atom(env, told ? "true" : "false");
}

static ERL_NIF_TERM leave(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Status, DaemonMs): its process exits, and one that it has forked goes on for a while */
    int status, daemon_ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &status) || !enif_get_int(env, argv[1], &daemon_ms))
        return enif_make_badarg(env);
    if (daemon_ms > 0 && fork() == 0) {
        setsid();
        usleep((useconds_t)daemon_ms * 1000);
    }
    _exit(status);
}

static ERL_NIF_TERM pause_ms(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ms) -> OsPid */
    int ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    usleep((useconds_t)ms * 1000);
    return enif_make_int(env, (int)getpid());
}

static ERL_NIF_TERM atom(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Binary) -> the atom of that name */
    ErlNifBinary name;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &name))
        return enif_make_badarg(env);
    return enif_make_atom_len(env, (const char *)name.data, name.size);
}

/* As a library does that one process may use at a time: the descriptor is kept until it ends. A process
 * that comes second is refused, some time after the first was answered. */
static int is_locked(const char *lock)
{
    const int fd = lock == NULL ? -1 : open(lock, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0)
        return 0;
    close(fd);
    usleep(1200000);
    return 1;
}

/* What the library was given when it was loaded, and by whom. */
struct given {
    ErlNifEnv *env;
    ERL_NIF_TERM info, loader;
};

static ERL_NIF_TERM given(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const struct given *given = enif_priv_data(env);

    (void)argc;
    (void)argv;
    return enif_make_copy(env, given->info);
}

/* A pid, or none. */
static ERL_NIF_TERM loader(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const struct given *given = enif_priv_data(env);

    (void)argc;
    (void)argv;
    return enif_make_copy(env, given->loader);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    struct given *given;
    ErlNifPid self;

    if (is_locked(getenv("PLACES_LOCK")))
        return 1;
    cell_type = enif_open_resource_type(env, NULL, "cell", NULL, ERL_NIF_RT_CREATE, NULL);
    if (cell_type == NULL)
        return 1;
    given = enif_alloc(sizeof *given); /* the library's, until unload */
    given->env = enif_alloc_env();
    given->info = enif_make_copy(given->env, load_info);
    given->loader = enif_self(env, &self) == NULL ? enif_make_atom(given->env, "none")
                                                  : enif_make_pid(given->env, &self);
    *priv_data = given;
    return 0;
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    struct given *given = priv_data;

    (void)env;
    enif_free_env(given->env);
    enif_free(given);
}

static ErlNifFunc functions[] = {
    {"new_cell", 1, new_cell, 0},
    {"sum", 1, sum, 0},
    {"meet", 1, meet, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"arrive", 1, arrive, 0},
    {"tell", 2, tell, 0},
    {"pause_ms", 1, pause_ms, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"leave", 2, leave, 0},
    {"atom", 1, atom, 0},
    {"given", 1, given, 0},
    {"loader", 1, loader, 0},
};

#define INIT(module) ERL_NIF_INIT(module, functions, load, NULL, NULL, unload)
INIT(MODULE)
