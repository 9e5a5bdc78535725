/* tame/nif.h - the function table, and the library's life cycle.
 *
 * Part of tame.h. A library lists its functions once:
 *
 *     #define FUNCTIONS(F)                                                                       \
 *         F(exor_nif, 2, exor, TAME_AUTO)                                                        \
 *         F(exor_yielding_nif, 2, exor, TAME_YIELDING)
 *     TAME_NIF_INIT(my_module, FUNCTIONS)
 *
 * Each row is the NIF's name and arity, the struct tame_job, and the placement. */
#ifndef TAME_NIF_H
#define TAME_NIF_H

#include "otp_features.h"
#include "again.h"

/* A row that appears twice is an enumerator that appears twice: the compiler says so. */
#define TAME_IMPL_ENUM(NAME, ARITY, JOB, PLACEMENT) tame_impl_row_##NAME##_##ARITY,
#define TAME_IMPL_ROW(NAME, ARITY, JOB, PLACEMENT) \
    {#NAME, ARITY, &JOB, PLACEMENT, tame_impl_row_##NAME##_##ARITY},
#define TAME_IMPL_ENTRY(NAME, ARITY, JOB, PLACEMENT)                                              \
    static ERL_NIF_TERM tame_impl_entry_##NAME##_##ARITY(ErlNifEnv *env, int argc,                \
                                                         const ERL_NIF_TERM argv[])               \
    {                                                                                             \
        return tame_impl_enter(env, argc, argv, &tame_impl_rows[tame_impl_row_##NAME##_##ARITY]); \
    }
#define TAME_IMPL_FUNC(NAME, ARITY, JOB, PLACEMENT)               \
    {#NAME, ARITY, tame_impl_entry_##NAME##_##ARITY,              \
     (PLACEMENT) == TAME_DIRTY_CPU  ? ERL_NIF_DIRTY_JOB_CPU_BOUND \
     : (PLACEMENT) == TAME_DIRTY_IO ? ERL_NIF_DIRTY_JOB_IO_BOUND  \
                                    : 0},

/* Whether the caller of a row may have to wait. Then the row needs an argument: the second call is
 * told from the first by it. */
static inline int tame_impl_may_wait(const struct tame_impl_row *row)
{
    return row->job->max_running > 0 || row->placement == TAME_AUTO ||
           row->placement == TAME_THREAD || row->placement == TAME_POOL;
}

/* Refuses a row that could not work, with the reason on standard error. */
static inline int tame_impl_check(const char *module, const struct tame_impl_row *row)
{
    const char *wrong =
        row->job->state_size == 0    ? "its state_size is 0"
        : row->job->init == NULL     ? "it has no init"
        : row->job->step == NULL     ? "it has no step"
        : row->job->result == NULL   ? "it has no result"
        : row->arity > TAME_MAX_ARGS ? "it takes more than TAME_MAX_ARGS arguments"
        : row->arity == 0 && tame_impl_may_wait(row)
            ? "without an argument it cannot wait, as with max_running and as auto, thread "
              "and pool do"
        : row->job->stack_kib > TAME_MAX_STACK_KIB ? "its stack_kib is more than TAME_MAX_STACK_KIB"
                                                   : NULL;

    if (wrong != NULL)
        enif_fprintf(stderr, "tame: the job of %s:%s/%d is refused: %s\n", module, row->name,
                     row->arity, wrong);
    return wrong == NULL;
}

/* A VM that halts while native code runs frees the memory that this code uses. OTP 26 and newer can
 * be told to wait for the calls that are in the library, and say before that they are about to:
 * then dirty, yielding dirty and pool runs end at their next step. */
#if TAME_IMPL_HAS_HALT_OPTIONS
static inline void tame_impl_on_halt(void *priv_data)
{
    struct tame_impl_instance *instance = (struct tame_impl_instance *)priv_data;

    __atomic_store_n(&instance->halting, 1, __ATOMIC_RELAXED);
    tame_impl_pool_halt(instance->pool);
}

static inline void tame_impl_delay_halt(ErlNifEnv *env)
{
    /* A VM that refuses behaves as an older one. */
    (void)enif_set_option(env, ERL_NIF_OPT_DELAY_HALT);
    (void)enif_set_option(env, ERL_NIF_OPT_ON_HALT, tame_impl_on_halt);
}
#else
static inline void tame_impl_delay_halt(ErlNifEnv *env)
{
    (void)env;
}
#endif

static inline int tame_impl_load(ErlNifEnv *env, void **priv_data, const char *module,
                                 const struct tame_impl_row *rows, int rows_len)
{
    /* Owned by priv_data until unload, and by each run. */
    struct tame_impl_instance *instance = (struct tame_impl_instance *)enif_alloc(sizeof *instance);
    ErlNifResourceTypeInit init;
    uint32_t stack_kib = 0;
    char name[64];

    if (instance == NULL)
        return 1;
    memset(instance, 0, sizeof *instance);
    instance->references = 1;
    instance->module = module;
    instance->row_stats =
        (struct tame_impl_row_stats *)enif_alloc(sizeof *instance->row_stats * (size_t)rows_len);
    instance->gates = tame_impl_gates_open(rows_len);
    for (int i = 0; i < rows_len; i++)
        if (rows[i].job->stack_kib > stack_kib)
            stack_kib = rows[i].job->stack_kib;
    instance->pool = tame_impl_pool_open(stack_kib);

    memset(&init, 0, sizeof init);
    init.dtor = tame_impl_run_destroy;
    init.down = tame_impl_run_down;
    init.dyncall = tame_impl_run_again;
    init.members = 4; /* as many as are set here, with `stop`, which is NULL */
    /* A name of its own: another instance of this library has another type, because taking this one
     * over would run that build's destructor on this build's runs. */
    enif_snprintf(name, sizeof name, "tame_run_%p", (void *)instance);
    instance->run_type = enif_init_resource_type(env, name, &init, ERL_NIF_RT_CREATE, NULL);
    instance->tag = enif_make_atom(env, "$tame");
    instance->module_name = enif_make_atom(env, module);
    instance->type_name = enif_make_atom(env, name);

    int ok = instance->row_stats != NULL && instance->gates != NULL && instance->pool != NULL &&
             instance->run_type != NULL;
    for (int i = 0; ok && i < rows_len; i++) {
        memset(&instance->row_stats[i], 0, sizeof instance->row_stats[i]);
        ok = tame_impl_check(module, &rows[i]);
    }
    if (!ok) {
        if (instance->pool != NULL)
            tame_impl_pool_close(instance->pool);
        tame_impl_instance_release(instance);
        return 1;
    }
    *priv_data = instance;
    tame_impl_delay_halt(env);
    return 0;
}

static inline void tame_impl_unload(ErlNifEnv *env, void *priv_data)
{
    struct tame_impl_instance *instance = (struct tame_impl_instance *)priv_data;

    (void)env;
    tame_impl_pool_close(instance->pool);
    instance->pool = NULL;
    tame_impl_instance_release(instance);
}

#define TAME_NIF_INIT(MODULE, FUNCTIONS)                                                     \
    enum { FUNCTIONS(TAME_IMPL_ENUM) tame_impl_rows_len };                                   \
    static const struct tame_impl_row tame_impl_rows[] = {FUNCTIONS(TAME_IMPL_ROW)};         \
    FUNCTIONS(TAME_IMPL_ENTRY)                                                               \
    static ErlNifFunc tame_impl_functions[] = {FUNCTIONS(TAME_IMPL_FUNC)};                   \
    static int tame_impl_on_load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)   \
    {                                                                                        \
        (void)load_info;                                                                     \
        return tame_impl_load(env, priv_data, #MODULE, tame_impl_rows, tame_impl_rows_len);  \
    }                                                                                        \
    static int tame_impl_on_upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data,  \
                                    ERL_NIF_TERM load_info)                                  \
    {                                                                                        \
        (void)old_priv_data;                                                                 \
        return tame_impl_on_load(env, priv_data, load_info);                                 \
    }                                                                                        \
    ERL_NIF_INIT(MODULE, tame_impl_functions, tame_impl_on_load, NULL, tame_impl_on_upgrade, \
                 tame_impl_unload)

#endif
