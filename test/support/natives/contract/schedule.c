/* enif_schedule_nif and enif_consume_timeslice. */
#include "contract.h"

static term count_down(ErlNifEnv *env, int argc, const term argv[])
{
    int n;
    term next[2];

    if (argc != 2 || !enif_get_int(env, argv[0], &n))
        return enif_make_badarg(env);
    if (n <= 0)
        return argv[1];
    next[0] = enif_make_int(env, n - 1);
    next[1] = enif_make_list_cell(env, argv[0], argv[1]);
    return enif_schedule_nif(env, "count_down", 0, count_down, 2, next);
}

/* "Schedules NIF fp to execute ... the return value of enif_schedule_nif must be returned": argv is
 * copied at once, its terms stay valid. */
CASE(schedule)
{
    term next[] = {IN, enif_make_list(env, 0)};
    term result = enif_schedule_nif(env, "count_down", 0, count_down, 2, next);

    next[0] = next[1] = 0;
    return result;
}

static term types_of_threads(ErlNifEnv *env, int argc, const term argv[])
{
    (void)argc;
    return enif_make_list_cell(env, enif_make_int(env, enif_thread_type()), argv[0]);
}

/* "flags ... ERL_NIF_DIRTY_JOB_CPU_BOUND": the next one runs as if on a dirty scheduler. */
CASE(schedule_dirty)
{
    term types = enif_make_list1(env, enif_make_int(env, enif_thread_type()));

    return enif_schedule_nif(env, "types_of_threads", ERL_NIF_DIRTY_JOB_IO_BOUND, types_of_threads,
                             1, &types);
}

/* Both flags at once, and another. */
CASE(schedule_odd)
{
    term types = enif_make_list1(env, enif_make_int(env, enif_thread_type()));
    int flags;

    if (!enif_get_int(env, IN, &flags))
        return enif_make_badarg(env);
    return enif_schedule_nif(env, "types_of_threads", flags, types_of_threads, 1, &types);
}

/* A chain that makes much garbage. IN: hops. */
static term garbage(ErlNifEnv *env, int argc, const term argv[])
{
    int n;
    term next[2], trash;

    if (argc != 2 || !enif_get_int(env, argv[0], &n))
        return enif_make_badarg(env);
    if (n == 0)
        return argv[1];
    memset(enif_make_new_binary(env, 60, &trash), 'g', 60);
    for (int i = 0; i < 10000; i++)
        trash = enif_make_list1(env, trash);
    next[0] = enif_make_int(env, n - 1);
    next[1] = argv[1];
    return enif_schedule_nif(env, "garbage", 0, garbage, 2, next);
}

CASE(schedule_garbage)
{
    term next[] = {IN,
                   enif_make_tuple2(env, IN, text(env, "kept through all hops, and not copied"))};

    return enif_schedule_nif(env, "garbage", 0, garbage, 2, next);
}

/* A map that outlives the garbage of hops, and one that changes in each: looked at there, and in
 * another environment. argv: {Map, Key, Changing}, hops left */
static term map_garbage(ErlNifEnv *env, int argc, const term argv[])
{
    const term *in;
    term next[2], changed, found[2] = {enif_make_int(env, 0), enif_make_int(env, 0)};
    int arity, left;

    (void)argc;
    if (!enif_get_tuple(env, argv[0], &arity, &in) || arity != 3 ||
        !enif_get_int(env, argv[1], &left))
        return enif_make_badarg(env);
    enif_make_map_put(env, in[2], in[1], argv[1], &changed);
    if (left == 0) {
        ErlNifEnv *other = enif_alloc_env();
        enif_get_map_value(other, in[0], in[1], &found[0]);
        enif_get_map_value(other, in[2], in[1], &found[1]);
        enif_free_env(other);
        return enif_make_tuple4(env, in[0], changed, found[0], found[1]);
    }
    for (int i = 0; i < 100 * 1000; i++)
        next[0] = enif_make_tuple2(env, argv[1], argv[1]);
    next[0] = enif_make_tuple3(env, in[0], in[1], changed);
    next[1] = enif_make_int(env, left - 1);
    return enif_schedule_nif(env, "map_garbage", 0, map_garbage, 2, next);
}

/* IN: {Map, Key, Map} */
CASE(schedule_map)
{
    term next[] = {IN, enif_make_int(env, 7)};

    return enif_schedule_nif(env, "map_garbage", 0, map_garbage, 2, next);
}

/* "percent ... the function returns 1 if the timeslice is exhausted": a little never is at once. */
CASE(consume_timeslice)
{
    return enif_make_int(env, enif_consume_timeslice(env, 1));
}
