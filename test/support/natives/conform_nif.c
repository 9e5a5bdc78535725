/* A library whose functions are each a case for mix tame.conform: the same in a host, another, by chance, the end. */
#include <erl_nif.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

static ErlNifResourceType *boxes;

/* (Term) -> Term */
static ERL_NIF_TERM same(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_make_copy(env, argv[0]);
}

/* (_) -> string(): a host is another program. */
static ERL_NIF_TERM program(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    return enif_is_binary(env, argv[0])
               ? enif_make_string(env, program_invocation_short_name, ERL_NIF_LATIN1)
               : enif_make_badarg(env);
}

/* () -> {ok, integer()}, another each time */
static ERL_NIF_TERM clock_(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct timespec now;

    (void)argc;
    (void)argv;
    clock_gettime(CLOCK_REALTIME, &now);
    return enif_make_tuple2(env, enif_make_atom(env, "ok"),
                            enif_make_int64(env, now.tv_sec * 1000000000 + now.tv_nsec));
}

/* () -> heads | tails */
static ERL_NIF_TERM coin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    unsigned char byte = 0;

    (void)argc;
    (void)argv;
    return getrandom(&byte, 1, 0) == 1 && byte % 2 ? enif_make_atom(env, "heads")
                                                   : enif_make_atom(env, "tails");
}

/* (Binary) -> size; the end of its process for an empty one */
static ERL_NIF_TERM crash(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary bytes;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes))
        return enif_make_badarg(env);
    if (bytes.size == 0)
        abort();
    return enif_make_uint64(env, bytes.size);
}

/* () -> {box, Ref} */
static ERL_NIF_TERM new (ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int *box = enif_alloc_resource(boxes, sizeof *box);

    (void)argc;
    (void)argv;
    *box = 0;
    ERL_NIF_TERM term = enif_make_resource(env, box);
    enif_release_resource(box); /* the term keeps it */
    return enif_make_tuple2(env, enif_make_atom(env, "box"), term);
}

/* (Ref) -> how often it was called with it */
static ERL_NIF_TERM count(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *box;

    (void)argc;
    if (!enif_get_resource(env, argv[0], boxes, &box))
        return enif_make_badarg(env);
    return enif_make_int(env, ++*(int *)box);
}

static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM info)
{
    (void)data;
    (void)info;
    boxes = enif_open_resource_type(env, NULL, "box", NULL, ERL_NIF_RT_CREATE, NULL);
    return boxes == NULL;
}

static ErlNifFunc functions[] = {{"same", 1, same, 0},    {"program", 1, program, 0},
                                 {"clock", 0, clock_, 0}, {"coin", 0, coin, 0},
                                 {"crash", 1, crash, 0},  {"new", 0, new, 0},
                                 {"count", 1, count, 0}};

ERL_NIF_INIT(conform_nif, functions, load, NULL, NULL, NULL)
