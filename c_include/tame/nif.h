/* tame/nif.h - the function table, and the library's life cycle.
 *
 * Part of tame.h. A library lists its functions once:
 *
 *     #define FUNCTIONS(JOB, NIF)                                                                \
 *         JOB(deflate_nif, 2, deflate, TAME_AUTO)                                                \
 *         NIF(new, 1, new_context, TAME_INLINE)
 *     TAME_NIF_INIT(my_module, FUNCTIONS, .resources = resources, .load = load)
 *
 * A row of a job is the NIF's name and arity, the struct tame_job, and the placement. A row of a
 * plain NIF has a function of erl_nif.h's form, and TAME_INLINE, TAME_DIRTY_CPU or TAME_DIRTY_IO. */
#ifndef TAME_NIF_H
#define TAME_NIF_H

#include "otp_features.h"
#include "verb.h"

/* What happens to resources that live when the module is loaded anew. */
enum tame_upgrade {
    TAME_UPGRADE_REFUSED, /* the module is not loaded, and standard error says why */
    TAME_UPGRADE_KEEPS    /* the new library has them: both know them by the same structs */
};

/* What a library has besides its functions: all of it may be left out. */
struct tame_library {
    /* The types of its resources, up to a NULL. */
    const struct tame_resource *const *resources;
    enum tame_upgrade upgrade;
    /* When the module is loaded, and loaded anew: 0, or the module is not loaded. *data is this
     * instance's own; tame_data gives it to NIFs, init, build and result. */
    int (*load)(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info);
    /* When nothing of the instance is left; after a load that went well. With TAME_UPGRADE_KEEPS the
     * resources that it made may live on: they must not point to its data. */
    void (*unload)(ErlNifEnv *env, void *data);
};

/* What the load hook made. */
static inline void *tame_data(ErlNifEnv *env)
{
    return ((struct tame_impl_instance *)enif_priv_data(env))->data;
}

/* A row that appears twice is an enumerator that appears twice: the compiler says so. */
#define TAME_IMPL_JOB_ENUM(NAME, ARITY, JOB, PLACEMENT) tame_impl_row_##NAME##_##ARITY,
#define TAME_IMPL_NIF_ENUM(NAME, ARITY, FUNCTION, PLACEMENT) tame_impl_nif_row_##NAME##_##ARITY,
#define TAME_IMPL_NOTHING(NAME, ARITY, WHAT, PLACEMENT)

#define TAME_IMPL_JOB_ROW(NAME, ARITY, JOB, PLACEMENT) \
    {#NAME, ARITY, &JOB, PLACEMENT, tame_impl_row_##NAME##_##ARITY},
/* On a normal scheduler, from where it goes to its dirty one with what holds the library. */
#define TAME_IMPL_JOB_ENTRY(NAME, ARITY, JOB, PLACEMENT)                                   \
    static ERL_NIF_TERM tame_impl_entry_##NAME##_##ARITY(ErlNifEnv *env, int argc,         \
                                                         const ERL_NIF_TERM argv[])        \
    {                                                                                      \
        const struct tame_impl_row *row = &tame_impl_rows[tame_impl_row_##NAME##_##ARITY]; \
                                                                                           \
        return TAME_IMPL_FLAGS(PLACEMENT) == 0                                             \
                   ? tame_impl_start(env, argc, argv, row, UINT64_MAX, 0)                  \
                   : tame_impl_start_anywhere(env, argc, argv, row, UINT64_MAX);           \
    }
#define TAME_IMPL_FLAGS(PLACEMENT)                                \
    ((PLACEMENT) == TAME_DIRTY_CPU  ? ERL_NIF_DIRTY_JOB_CPU_BOUND \
     : (PLACEMENT) == TAME_DIRTY_IO ? ERL_NIF_DIRTY_JOB_IO_BOUND  \
                                    : 0)
#define TAME_IMPL_JOB_FUNC(NAME, ARITY, JOB, PLACEMENT) \
    {#NAME, ARITY, tame_impl_entry_##NAME##_##ARITY, 0},
/* The same of a plain NIF, packed with its hold. */
#define TAME_IMPL_NIF_ENTRY(NAME, ARITY, FUNCTION, PLACEMENT)                              \
    static ERL_NIF_TERM tame_impl_held_##NAME##_##ARITY(ErlNifEnv *env, int argc,          \
                                                        const ERL_NIF_TERM argv[])         \
    {                                                                                      \
        ERL_NIF_TERM args[(ARITY) + 1];                                                    \
                                                                                           \
        (void)argc;                                                                        \
        return tame_impl_unpack(env, argv, ARITY, args) == 0 ? enif_make_badarg(env)       \
                                                             : FUNCTION(env, ARITY, args); \
    }                                                                                      \
    static ERL_NIF_TERM tame_impl_plain_entry_##NAME##_##ARITY(ErlNifEnv *env, int argc,   \
                                                               const ERL_NIF_TERM argv[])  \
    {                                                                                      \
        const ERL_NIF_TERM hold = tame_impl_hold_term(env);                                \
        ERL_NIF_TERM packed[(ARITY) + 1];                                                  \
                                                                                           \
        if (hold == 0)                                                                     \
            return tame_impl_raise_enomem(env);                                            \
        argc = tame_impl_pack(env, hold, argc, argv, packed);                              \
        return enif_schedule_nif(env, #NAME, TAME_IMPL_FLAGS(PLACEMENT),                   \
                                 tame_impl_held_##NAME##_##ARITY, argc, packed);           \
    }
#define TAME_IMPL_NIF_FUNC(NAME, ARITY, FUNCTION, PLACEMENT) \
    {#NAME, ARITY,                                           \
     TAME_IMPL_FLAGS(PLACEMENT) == 0 ? FUNCTION : tame_impl_plain_entry_##NAME##_##ARITY, 0},
/* An array of no elements: a plain NIF in any other placement does not compile. */
#define TAME_IMPL_NIF_CHECK(NAME, ARITY, FUNCTION, PLACEMENT)                              \
    typedef char tame_impl_plain_##NAME##_##ARITY[(PLACEMENT) == TAME_INLINE ||            \
                                                          (PLACEMENT) == TAME_DIRTY_CPU || \
                                                          (PLACEMENT) == TAME_DIRTY_IO     \
                                                      ? 1                                  \
                                                      : -1];

/* Refuses a row that could not work, with the reason on standard error. */
static inline int tame_impl_check(const char *module, const struct tame_impl_row *row)
{
    const struct tame_job *job = row->job;
    const char *wrong =
        job->state_size == 0         ? "its state_size is 0"
        : job->init == NULL          ? "it has no init"
        : job->step == NULL          ? "it has no step"
        : job->result == NULL        ? "it has no result"
        : row->arity > TAME_MAX_ARGS ? "it takes more than TAME_MAX_ARGS arguments"
        : job->terms && (row->placement == TAME_POOL || row->placement == TAME_THREAD)
            ? "its steps use terms, which are at hand on the VM's schedulers only: not with "
              "TAME_POOL and TAME_THREAD"
        : job->stack_kib > TAME_MAX_STACK_KIB ? "its stack_kib is more than TAME_MAX_STACK_KIB"
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

/* Opens the author's types of resource. With TAME_UPGRADE_KEEPS a type has a name that the next
 * instance knows, and takes over; else a name of this instance's own. Returns 0 when it cannot be,
 * and says why on standard error. */
static inline int tame_impl_open_types(ErlNifEnv *env, struct tame_impl_instance *instance,
                                       const struct tame_library *library)
{
    const int keeps = library->upgrade == TAME_UPGRADE_KEEPS;
    const uint32_t living = __atomic_load_n(&instance->lineage->contexts, __ATOMIC_RELAXED);

    while (library->resources != NULL && library->resources[instance->types_len] != NULL)
        instance->types_len++;
    instance->listed = library->resources;
    if (living > 0 && !keeps) {
        enif_fprintf(stderr,
                     "tame: %s is not loaded anew: %u of its resources live, and its library does "
                     "not say TAME_UPGRADE_KEEPS\n",
                     instance->module, living);
        return 0;
    }
    instance->types = (ErlNifResourceType **)enif_alloc(sizeof *instance->types *
                                                        (size_t)(instance->types_len + 1));
    instance->kept =
        (void **)enif_alloc(sizeof *instance->kept * (size_t)(instance->types_len + 1));
    if (instance->types == NULL || instance->kept == NULL)
        return 0;
    for (int i = 0; i < instance->types_len; i++) {
        const struct tame_resource *type = instance->listed[i];
        ErlNifResourceFlags tried = ERL_NIF_RT_CREATE;
        ErlNifResourceTypeInit init;
        char name[128];

        memset(&init, 0, sizeof init);
        init.dtor = type->impl_destroy;
        if (keeps)
            enif_snprintf(name, sizeof name, "tame%d_%s", TAME_IMPL_LAYOUT, type->name);
        else
            enif_snprintf(name, sizeof name, "%s_%p", type->name, (void *)instance);
        instance->types[i] = enif_open_resource_type_x(
            env, name, &init,
            (ErlNifResourceFlags)(keeps ? ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER
                                        : ERL_NIF_RT_CREATE),
            &tried);
        if (instance->types[i] == NULL)
            return 0;
        if (living > 0 && tried == ERL_NIF_RT_CREATE) {
            enif_fprintf(stderr,
                         "tame: %s is not loaded anew: %u of its resources live, and the library "
                         "that made them was built with another tame.h, or without %s\n",
                         instance->module, living, type->name);
            return 0;
        }
    }
    return 1;
}

/* Frees an instance that does not come to life, or that nothing is left of but what holds it. */
static inline int tame_impl_close(struct tame_impl_instance *instance)
{
    if (instance->pool != NULL)
        tame_impl_pool_close(instance->pool);
    instance->pool = NULL;
    tame_impl_instance_release(instance);
    return 1;
}

/* The next instance takes the watches over: so the old library need not stay until processes end. */
static inline ErlNifResourceType *tame_impl_open_watch_type(ErlNifEnv *env)
{
    ErlNifResourceTypeInit init;
    char name[64];

    memset(&init, 0, sizeof init);
    init.dtor = tame_impl_watch_destroy;
    init.down = tame_impl_process_down;
    enif_snprintf(name, sizeof name, "tame%d_watch", TAME_IMPL_LAYOUT);
    return enif_open_resource_type_x(
        env, name, &init, (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER), NULL);
}

/* The rows, the memory, the threads' pool, the types; 0 without one of them. */
static inline int tame_impl_open(ErlNifEnv *env, struct tame_impl_instance *instance,
                                 const struct tame_library *library)
{
    const size_t rows = (size_t)instance->rows_len + 1; /* never nothing */
    ErlNifResourceTypeInit init;
    ErlNifSysInfo info;
    uint32_t stack_kib = 0;
    char name[64];

    for (int i = 0; i < instance->rows_len; i++) {
        if (!tame_impl_check(instance->module, &instance->rows[i]))
            return 0;
        if (instance->rows[i].job->stack_kib > stack_kib)
            stack_kib = instance->rows[i].job->stack_kib;
    }
    enif_system_info(&info, sizeof info);
    instance->schedulers = info.scheduler_threads > 0 ? (uint32_t)info.scheduler_threads : 1;
    instance->cpus = tame_impl_os_cpus("");
    instance->lock = enif_mutex_create((char *)"tame_gates");
    instance->gates = (struct tame_impl_gate *)enif_alloc(sizeof *instance->gates * rows);
    instance->row_stats =
        (struct tame_impl_row_stats *)enif_alloc(sizeof *instance->row_stats * rows);
    instance->names = (ERL_NIF_TERM *)enif_alloc(sizeof *instance->names * rows);
    instance->pool = tame_impl_pool_open(instance, stack_kib);
    if (instance->lock == NULL || instance->gates == NULL || instance->row_stats == NULL ||
        instance->names == NULL || instance->pool == NULL || instance->watches == NULL)
        return 0;
    memset(instance->gates, 0, sizeof *instance->gates * rows);
    memset(instance->row_stats, 0, sizeof *instance->row_stats * rows);
    for (int i = 0; i < instance->rows_len; i++)
        instance->names[i] = enif_make_atom(env, instance->rows[i].name);

    memset(&init, 0, sizeof init);
    init.dtor = tame_impl_run_destroy;
    init.dyncall = tame_impl_answer;
    init.members = 4; /* as many as are set here, with `stop`, which is NULL */
    /* A name of its own: another instance of this library has another type, because taking this one
     * over would run that build's destructor on this build's runs. */
    enif_snprintf(name, sizeof name, "tame_run_%p", (void *)instance);
    instance->run_type = enif_init_resource_type(env, name, &init, ERL_NIF_RT_CREATE, NULL);
    instance->watch_type = tame_impl_open_watch_type(env);
    instance->nil = enif_make_list(env, 0);
    instance->tag = enif_make_atom(env, "$tame");
    instance->module_name = enif_make_atom(env, instance->module);
    instance->type_name = enif_make_atom(env, name);
    return instance->run_type != NULL && instance->watch_type != NULL &&
           tame_impl_open_types(env, instance, library);
}

/* Those of the instance which is replaced, or new ones; NULL without memory. */
static inline struct tame_impl_watches *
tame_impl_watches_of(const struct tame_impl_instance *replaced)
{
    return replaced == NULL || replaced->layout != TAME_IMPL_LAYOUT
               ? tame_impl_watches_new()
               : tame_impl_watches_keep(replaced->watches);
}

/* That of the instance which is replaced, or a new one; NULL without memory. */
static inline struct tame_impl_lineage *
tame_impl_lineage_of(const struct tame_impl_instance *replaced)
{
    struct tame_impl_lineage *lineage =
        replaced == NULL || replaced->layout < 5 ? NULL : replaced->lineage;

    if (lineage == NULL) {
        lineage = (struct tame_impl_lineage *)enif_alloc(sizeof *lineage); /* the instance's */
        if (lineage != NULL)
            memset(lineage, 0, sizeof *lineage);
    }
    if (lineage != NULL)
        __atomic_fetch_add(&lineage->references, 1, __ATOMIC_RELAXED);
    return lineage;
}

static inline int tame_impl_load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info,
                                 const char *module, const struct tame_library *library,
                                 const struct tame_impl_row *rows, int rows_len, const void *old)
{
    /* Owned by priv_data until unload, by each run and by each resource. */
    struct tame_impl_instance *instance = (struct tame_impl_instance *)enif_alloc(sizeof *instance);

    if (instance == NULL)
        return 1;
    memset(instance, 0, sizeof *instance);
    instance->references = 1;
    instance->layout = TAME_IMPL_LAYOUT;
    instance->module = module;
    instance->rows = rows;
    instance->rows_len = rows_len;
    instance->lineage = tame_impl_lineage_of((const struct tame_impl_instance *)old);
    instance->watches = tame_impl_watches_of((const struct tame_impl_instance *)old);
    instance->caller_ended = tame_impl_caller_ended;
    if (instance->lineage == NULL || !tame_impl_open(env, instance, library))
        return tame_impl_close(instance);
    *priv_data = instance; /* where the hook finds it */
    if (library->load != NULL && library->load(env, &instance->data, load_info) != 0) {
        *priv_data = NULL;
        return tame_impl_close(instance);
    }
    instance->unload = library->unload;
    tame_impl_delay_halt(env);
    return 0;
}

static inline void tame_impl_unload(ErlNifEnv *env, void *priv_data)
{
    struct tame_impl_instance *instance = (struct tame_impl_instance *)priv_data;

    if (instance->unload != NULL)
        instance->unload(env, instance->data);
    (void)tame_impl_close(instance);
}

/* After FUNCTIONS the members of struct tame_library, each by its name. */
#define TAME_NIF_INIT(MODULE, FUNCTIONS, ...)                                                \
    FUNCTIONS(TAME_IMPL_NOTHING, TAME_IMPL_NIF_CHECK)                                        \
    enum { FUNCTIONS(TAME_IMPL_JOB_ENUM, TAME_IMPL_NOTHING) tame_impl_rows_len };            \
    enum { FUNCTIONS(TAME_IMPL_NOTHING, TAME_IMPL_NIF_ENUM) tame_impl_nif_rows_len };        \
    static const struct tame_impl_row tame_impl_rows[] = {                                   \
        FUNCTIONS(TAME_IMPL_JOB_ROW, TAME_IMPL_NOTHING){NULL, 0, NULL, TAME_AUTO, 0}};       \
    FUNCTIONS(TAME_IMPL_JOB_ENTRY, TAME_IMPL_NIF_ENTRY)                                      \
    static ErlNifFunc tame_impl_functions[] = {                                              \
        FUNCTIONS(TAME_IMPL_JOB_FUNC, TAME_IMPL_NIF_FUNC){"$tame", 3, tame_impl_verb, 0}};   \
    static const struct tame_library tame_impl_library = {__VA_ARGS__};                      \
    static int tame_impl_on_load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)   \
    {                                                                                        \
        return tame_impl_load(env, priv_data, load_info, #MODULE, &tame_impl_library,        \
                              tame_impl_rows, tame_impl_rows_len, NULL);                     \
    }                                                                                        \
    static int tame_impl_on_upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data,  \
                                    ERL_NIF_TERM load_info)                                  \
    {                                                                                        \
        return tame_impl_load(env, priv_data, load_info, #MODULE, &tame_impl_library,        \
                              tame_impl_rows, tame_impl_rows_len, *old_priv_data);           \
    }                                                                                        \
    ERL_NIF_INIT(MODULE, tame_impl_functions, tame_impl_on_load, NULL, tame_impl_on_upgrade, \
                 tame_impl_unload)

#endif
