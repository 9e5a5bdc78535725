/* tame_permits.c - the permits that the pools of all job libraries share: c_include/tame/permits.h.
 *
 * They are a resource, whose holders are each instance of this library and each pool. So a library
 * has them, and their lock, when this module is gone; the VM keeps a library while a resource of it
 * lives. */
#include <erl_nif.h>
#include <tame/permits.h>

static void destroy(ErlNifEnv *env, void *permits)
{
    (void)env;
    if (((struct tame_impl_permits *)permits)->layout != 0)
        tame_impl_permits_close(permits);
}

/* What another library is told: its hold is its own to take. */
static void answer(ErlNifEnv *env, void *permits, void *told)
{
    (void)env;
    *(void **)told = permits;
}

static ErlNifResourceType *open_type(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init;

    memset(&init, 0, sizeof init);
    init.dtor = destroy;
    init.dyncall = answer;
    init.members = 4;
    return enif_init_resource_type(env, TAME_IMPL_PERMITS_TYPE, &init,
                                   ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    ErlNifResourceType *type = open_type(env);
    /* Held by priv_data until unload. */
    struct tame_impl_permits *permits =
        type == NULL ? NULL : enif_alloc_resource(type, sizeof *permits);

    (void)load_info;
    if (permits == NULL)
        return 1;
    *priv_data = permits;
    if (tame_impl_permits_open(permits))
        return 0;
    permits->layout = 0; /* nothing to close */
    enif_release_resource(permits);
    return 1;
}

/* A new instance has the old one's permits, if it knows them; else those stay with who has them. */
static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    struct tame_impl_permits *permits = *old_priv_data;

    if (permits->layout != TAME_IMPL_PERMITS_LAYOUT)
        return load(env, priv_data, load_info);
    if (open_type(env) == NULL)
        return 1;
    enif_keep_resource(permits);
    *priv_data = permits;
    return 0;
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    enif_release_resource(priv_data);
}

static ERL_NIF_TERM nif_shared(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_list1(env, enif_make_resource(env, enif_priv_data(env)));
}

static ErlNifFunc functions[] = {{"shared", 0, nif_shared, 0}};

ERL_NIF_INIT(tame_permits, functions, load, NULL, upgrade, unload)
