/* bench_spin: a CPU kept busy by a yielding NIF as it is written by hand: work for 100 us,
 * report it as 10 % of a timeslice, go on until enif_consume_timeslice says that it is used up,
 * which is after 1 ms, and reschedule with what is left. What tame_spin:spin_yielding/1 is compared
 * with. */
#include <erl_nif.h>

#include "spin.h"

#define CHUNK_US 100
#define CHUNK_PERCENT 10

static ERL_NIF_TERM spin_slices(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (LeftUs, RoundsPerUs, Value) -> ok */
    ErlNifUInt64 left_us, rounds_per_us, value;
    struct spin spin;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &left_us) ||
        !enif_get_uint64(env, argv[1], &rounds_per_us) || !enif_get_uint64(env, argv[2], &value))
        return enif_make_badarg(env);
    spin.left_us = left_us;
    spin.rounds_per_us = rounds_per_us;
    spin.value = value;
    while (spin_step(NULL, &spin, CHUNK_US) == TAME_MORE) {
        if (enif_consume_timeslice(env, CHUNK_PERCENT)) {
            const ERL_NIF_TERM next[] = {enif_make_uint64(env, spin.left_us), argv[1],
                                         enif_make_uint64(env, spin.value)};

            return enif_schedule_nif(env, "spin_slices", 0, spin_slices, 3, next);
        }
    }
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM spin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Us :: non_neg_integer()) -> ok */
    const uint64_t *rounds_per_us = enif_priv_data(env);
    const ERL_NIF_TERM first[] = {argv[0], enif_make_uint64(env, *rounds_per_us),
                                  enif_make_uint64(env, 1)};

    (void)argc;
    return spin_slices(env, 3, first);
}

/* What the deadline of a dirty job is compared with: it is over by itself, without tame. */
static ERL_NIF_TERM dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Us :: non_neg_integer()) -> ok */
    const uint64_t start_ns = tame_now_ns();
    const uint64_t *rounds_per_us = enif_priv_data(env);
    struct spin spin = {.rounds_per_us = *rounds_per_us, .value = 1};
    ErlNifUInt64 us;

    (void)argc;
    if (!enif_get_uint64(env, argv[0], &us))
        return enif_make_badarg(env);
    while (tame_now_ns() - start_ns < us * 1000) {
        spin.left_us = CHUNK_US;
        (void)spin_step(NULL, &spin, CHUNK_US);
    }
    return enif_make_atom(env, "ok");
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    uint64_t *rounds_per_us = enif_alloc(sizeof *rounds_per_us); /* owned by priv_data */

    (void)env;
    (void)load_info;
    if (rounds_per_us == NULL)
        return 1;
    *rounds_per_us = spin_measure(tame_now_ns);
    *priv_data = rounds_per_us;
    return 0;
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    enif_free(priv_data);
}

static ErlNifFunc functions[] = {{"spin", 1, spin, 0},
                                 {"dirty", 1, dirty, ERL_NIF_DIRTY_JOB_CPU_BOUND}};

ERL_NIF_INIT(bench_spin, functions, load, NULL, NULL, unload)
