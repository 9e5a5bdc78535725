/* The library of module MODULE, for replies that a host has trouble with: see Tame.RepliesTest. */
#include <erl_nif.h>
#include <unistd.h>

/* (Name, N) -> N times the atom of this name, which is a string */
static ERL_NIF_TERM repeat(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    char name[256];
    unsigned n;

    (void)argc;
    if (enif_get_string(env, argv[0], name, sizeof name, ERL_NIF_LATIN1) <= 0 ||
        !enif_get_uint(env, argv[1], &n))
        return enif_make_badarg(env);
    while (n-- > 0)
        list = enif_make_list_cell(env, enif_make_atom(env, name), list);
    return list;
}

/* (Prefix, N) -> N atoms */
static ERL_NIF_TERM atoms(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    char prefix[128], name[256];
    unsigned n;

    (void)argc;
    if (enif_get_string(env, argv[0], prefix, sizeof prefix, ERL_NIF_LATIN1) <= 0 ||
        !enif_get_uint(env, argv[1], &n))
        return enif_make_badarg(env);
    while (n-- > 0) {
        enif_snprintf(name, sizeof name, "%s%u", prefix, n);
        list = enif_make_list_cell(env, enif_make_atom(env, name), list);
    }
    return list;
}

/* (N) -> N resources; again/0 -> the same once more, each twice */
static ErlNifResourceType *type;
static void *kept[100000];
static unsigned kept_len;

static ERL_NIF_TERM again(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);

    (void)argc;
    (void)argv;
    for (unsigned i = 0; i < 2 * kept_len; i++)
        list = enif_make_list_cell(env, enif_make_resource(env, kept[i / 2]), list);
    return list;
}

static ERL_NIF_TERM resources(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n) || n > sizeof kept / sizeof *kept)
        return enif_make_badarg(env);
    for (kept_len = 0; kept_len < n; kept_len++)
        kept[kept_len] = enif_alloc_resource(type, 1); /* the library's, for ever */
    return again(env, 0, NULL);
}

/* (N) -> N resources that the library does not keep; destroyed/0 -> how many of them it has seen the end of */
static ErlNifResourceType *fleeting_type;
static unsigned destroyed_count;

static void fleeting_ends(ErlNifEnv *env, void *object)
{
    (void)env;
    (void)object;
    __atomic_fetch_add(&destroyed_count, 1, __ATOMIC_SEQ_CST);
}

static ERL_NIF_TERM fleeting(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM list = enif_make_list(env, 0);
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n))
        return enif_make_badarg(env);
    while (n-- > 0) {
        void *object = enif_alloc_resource(fleeting_type, 1);

        list = enif_make_list_cell(env, enif_make_resource(env, object), list);
        enif_release_resource(object);
    }
    return list;
}

static ERL_NIF_TERM destroyed(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_uint(env, __atomic_load_n(&destroyed_count, __ATOMIC_SEQ_CST));
}

static ERL_NIF_TERM no_term(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env;
    (void)argc;
    (void)argv;
    return 0;
}

/* (How, N) -> a pair that has another one twice, and so on N times: a few words, and 2^N leaves. As
 * the value, the reason, a message (then whether it was sent), or what is hashed. */
static ERL_NIF_TERM shared(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM term = enif_make_int(env, 1);
    ErlNifPid caller;
    char how[8];
    unsigned n;

    (void)argc;
    if (!enif_get_atom(env, argv[0], how, sizeof how, ERL_NIF_LATIN1) ||
        !enif_get_uint(env, argv[1], &n))
        return enif_make_badarg(env);
    while (n-- > 0)
        term = enif_make_tuple2(env, term, term);
    switch (*how) {
    case 'v':
        return term;
    case 'r':
        return enif_raise_exception(env, term);
    case 's':
        return enif_make_int(env, enif_send(env, enif_self(env, &caller), NULL, term));
    default:
        return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, term, 0));
    }
}

/* (Ms) -> a reference, which is the VM's, after a pause */
static ERL_NIF_TERM late_ref(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned ms;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &ms))
        return enif_make_badarg(env);
    (void)usleep(ms * 1000);
    return enif_make_ref(env);
}

/* (N): N messages to the caller, one by one */
static ERL_NIF_TERM send_many(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifPid self;
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n))
        return enif_make_badarg(env);
    enif_self(env, &self);
    for (unsigned i = 0; i < n; i++)
        (void)enif_send(env, &self, NULL, enif_make_uint(env, i));
    return enif_make_uint(env, n);
}

/* (N) -> #{#{id => 0} => 0, ... #{id => N - 1} => N - 1} */
static ERL_NIF_TERM map_of_maps(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ERL_NIF_TERM *keys, *values, map;
    unsigned n;

    (void)argc;
    if (!enif_get_uint(env, argv[0], &n))
        return enif_make_badarg(env);
    keys = enif_alloc(2 * n * sizeof *keys); /* ours, until the map is made */
    values = keys + n;
    for (unsigned i = 0; i < n; i++) {
        values[i] = enif_make_uint(env, i);
        (void)enif_make_map_put(env, enif_make_new_map(env), enif_make_atom(env, "id"), values[i],
                                &keys[i]);
    }
    (void)enif_make_map_from_arrays(env, keys, values, n, &map);
    enif_free(keys);
    return map;
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data;
    (void)info;
    type = enif_open_resource_type(env, NULL, "kept", NULL, ERL_NIF_RT_CREATE, NULL);
    fleeting_type =
        enif_open_resource_type(env, NULL, "fleeting", fleeting_ends, ERL_NIF_RT_CREATE, NULL);
    return type == NULL || fleeting_type == NULL;
}

#ifdef BROKEN
void nobody_has_this(void);
void *broken(void);
void *broken(void)
{
    return (void *)nobody_has_this;
}
#endif

static ErlNifFunc functions[] = {
    {"repeat", 2, repeat, 0},           {"atoms", 2, atoms, 0},
    {"resources", 1, resources, 0},     {"again", 0, again, 0},
    {"no_term", 0, no_term, 0},         {"late_ref", 1, late_ref, 0},
    {"shared", 2, shared, 0},           {"send_many", 1, send_many, 0},
    {"map_of_maps", 1, map_of_maps, 0}, {"fleeting", 1, fleeting, 0},
    {"destroyed", 0, destroyed, 0},
};

#define INIT(NAME) ERL_NIF_INIT(NAME, functions, load, NULL, NULL, NULL)
INIT(MODULE)
