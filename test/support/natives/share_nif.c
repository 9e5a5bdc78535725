/* The library of module NAME (-DNAME=share_one), version VERSION: what libraries that share a host see of
 * each other. Each event of its life is a line of the file that load_info names. */
#include <erl_nif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)

#define LARGE_BYTES (4u << 20)

struct data {
    char log[256];
    ErlNifResourceType *box;
    int upgrades;
};

static void note(const struct data *data, const char *what)
{
    FILE *log = fopen(data->log, "r+"); /* the test makes it, and may have removed it */

    if (log != NULL) {
        fseek(log, 0, SEEK_END);
        fprintf(log, "%s %s %d\n", what, TEXT(NAME), VERSION);
        fclose(log);
    }
}

static void box_end(ErlNifEnv *env, void *box)
{
    (void)box;
    note(enif_priv_data(env), "box");
}

/* Adds the box's number to *call_data, and the version of who answers. */
static void box_called(ErlNifEnv *env, void *box, void *call_data)
{
    (void)env;
    *(int *)call_data += *(int *)box + VERSION;
}

static int open_box(ErlNifEnv *env, struct data *data)
{
    ErlNifResourceTypeInit init = {.dtor = box_end, .dyncall = box_called, .members = 4};

    data->box =
        enif_init_resource_type(env, "box", &init, ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
    return data->box == NULL;
}

static struct data *data_new(ErlNifEnv *env, ERL_NIF_TERM info, int *refuse)
{
    struct data *data = enif_alloc(sizeof *data); /* unload's */
    const ERL_NIF_TERM *parts;
    int arity;

    memset(data, 0, sizeof *data);
    if (!enif_get_tuple(env, info, &arity, &parts) || arity != 2 ||
        enif_get_string(env, parts[0], data->log, sizeof data->log, ERL_NIF_LATIN1) <= 0 ||
        !enif_get_int(env, parts[1], refuse))
        *refuse = -1;
    if (*refuse == -2)
        abort();
    if (*refuse == -3) { /* asks the VM for much, and is content */
        ERL_NIF_TERM large;

        memset(enif_make_new_binary(env, LARGE_BYTES, &large), 1, LARGE_BYTES);
        *refuse = enif_hash(ERL_NIF_PHASH2, large, 0) == 0;
    }
    return data;
}

static int load(ErlNifEnv *env, void **priv, ERL_NIF_TERM info)
{
    int refuse = 0;
    struct data *data = data_new(env, info, &refuse);

    *priv = data;
    if (refuse != 0)
        return refuse;
    note(data, "load");
    return open_box(env, data);
}

static int upgrade(ErlNifEnv *env, void **priv, void **before, ERL_NIF_TERM info)
{
    int refuse = 0;
    struct data *data = data_new(env, info, &refuse);

    *priv = data;
    if (refuse != 0)
        return refuse;
    data->upgrades = ((struct data *)*before)->upgrades + 1;
    note(data, "upgrade");
    return open_box(env, data);
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env;
    note(data, "unload");
    enif_free(data);
}

/* {OsPid, Module, Version, Upgrades} */
static ERL_NIF_TERM who(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct data *data = enif_priv_data(env);

    (void)argc;
    (void)argv;
    return enif_make_tuple4(env, enif_make_int(env, getpid()), enif_make_atom(env, TEXT(NAME)),
                            enif_make_int(env, VERSION), enif_make_int(env, data->upgrades));
}

static ERL_NIF_TERM new_box(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct data *data = enif_priv_data(env);
    int number;

    (void)argc;
    if (!enif_get_int(env, argv[0], &number))
        return enif_make_badarg(env);
    int *box = enif_alloc_resource(data->box, sizeof *box);
    *box = number;
    ERL_NIF_TERM term = enif_make_resource(env, box);
    enif_release_resource(box);
    return term;
}

/* late_box(Number, Path): made when there is a file of that name. */
static ERL_NIF_TERM late_box(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    char path[256];

    if (enif_get_string(env, argv[1], path, sizeof path, ERL_NIF_LATIN1) <= 0)
        return enif_make_badarg(env);
    note(enif_priv_data(env), "waits");
    while (access(path, F_OK) != 0)
        usleep(1000);
    return new_box(env, argc - 1, argv);
}

/* Of its own type only. */
static ERL_NIF_TERM read_box(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct data *data = enif_priv_data(env);
    void *box;

    (void)argc;
    if (!enif_get_resource(env, argv[0], data->box, &box))
        return enif_make_badarg(env);
    return enif_make_int(env, *(int *)box);
}

/* call_box(Module, Box): through the library of that module, whichever it is. */
static ERL_NIF_TERM call_box(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int sum = 0;

    (void)argc;
    if (enif_dynamic_resource_call(env, argv[0], enif_make_atom(env, "box"), argv[1], &sum) != 0)
        return enif_make_atom(env, "none");
    return enif_make_int(env, sum);
}

static ERL_NIF_TERM crash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)env;
    (void)argc;
    (void)argv;
    abort();
}

/* nap(Ms): then the version that was called. */
static ERL_NIF_TERM nap(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int ms;

    (void)argc;
    if (!enif_get_int(env, argv[0], &ms))
        return enif_make_badarg(env);
    usleep((useconds_t)ms * 1000);
    return enif_make_int(env, VERSION);
}

static ErlNifFunc functions[] = {
    {"who", 0, who, 0},
    {"new_box", 1, new_box, 0},
    {"read_box", 1, read_box, 0},
    {"call_box", 2, call_box, 0},
    {"crash", 0, crash, 0},
    {"nap", 1, nap, 0},
    {"late_box", 2, late_box, ERL_NIF_DIRTY_JOB_IO_BOUND},
#if VERSION > 1
    {"only_new", 0, who, 0},
#endif
};

/* The macro's own arguments are not expanded. */
#define INIT(...) ERL_NIF_INIT(__VA_ARGS__)
INIT(NAME, functions, load, NULL, upgrade, unload)
