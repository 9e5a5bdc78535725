/* The function table, load and unload. */
#include "contract.h"

#define ROW(of)                                    \
    {                                              \
        .name = #of, .arity = 1, .fptr = case_##of \
    }

static ErlNifFunc functions[] = {
    CASES(ROW),
    {"thread_types_dirty_cpu", 1, case_thread_types, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"thread_types_dirty_io", 1, case_thread_types, ERL_NIF_DIRTY_JOB_IO_BOUND},
};

static int load(ErlNifEnv *env, void **priv_data, term load_info)
{
    struct private_data *data = enif_alloc(sizeof *data); /* freed by unload */
    int failed;

    data->env = enif_alloc_env();
    data->load_info = enif_make_copy(data->env, load_info);
    *priv_data = data;
    load_maps(data->env);
    load_threads();
    failed = load_resources(env);
    if (failed == 0)
        failed = load_monitors(env);
    return failed != 0 ? failed : load_select(env);
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    struct private_data *data = priv_data;

    (void)env;
    enif_free_env(data->env);
    enif_free(data);
    unload_threads();
}

ERL_NIF_INIT(contract_nif, functions, load, NULL, NULL, unload)
