/* The library of module MODULE, whose destructor takes a lock that a call may have, as that of a statement takes its
 * connection's: see Tame.DestructorsTest. */
#include <erl_nif.h>
#include <unistd.h>

static ErlNifResourceType *type;
static ErlNifMutex *lock;
static int is_held, is_opened, destroyed_len;

static void destroy(ErlNifEnv *env, void *object)
{
    (void)env;
    (void)object;
    enif_mutex_lock(lock);
    __atomic_fetch_add(&destroyed_len, 1, __ATOMIC_SEQ_CST);
    enif_mutex_unlock(lock);
}

static ERL_NIF_TERM make(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *object = enif_alloc_resource(type, 8);
    ERL_NIF_TERM made = enif_make_resource(env, object);

    (void)argc;
    (void)argv;
    enif_release_resource(object);
    return made;
}

/* () -> ok, when open/0 was called. */
static ERL_NIF_TERM hold(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    enif_mutex_lock(lock);
    __atomic_store_n(&is_held, 1, __ATOMIC_SEQ_CST);
    while (!__atomic_load_n(&is_opened, __ATOMIC_SEQ_CST))
        usleep(1000);
    enif_mutex_unlock(lock);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM held(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_int(env, __atomic_load_n(&is_held, __ATOMIC_SEQ_CST));
}

static ERL_NIF_TERM open_(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    __atomic_store_n(&is_opened, 1, __ATOMIC_SEQ_CST);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM destroyed(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_int(env, __atomic_load_n(&destroyed_len, __ATOMIC_SEQ_CST));
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    (void)priv_data;
    (void)info;
    lock = enif_mutex_create("destructor_nif");
    type = enif_open_resource_type(env, NULL, "thing", destroy, ERL_NIF_RT_CREATE, NULL);
    return lock == NULL || type == NULL;
}

static ErlNifFunc functions[] = {
    {"make", 0, make, 0},           {"hold", 0, hold, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"held", 0, held, 0},           {"open", 0, open_, 0},
    {"destroyed", 0, destroyed, 0},
};

#define INIT(NAME) ERL_NIF_INIT(NAME, functions, load, NULL, NULL, NULL)
INIT(MODULE)
