/* A NIF library without functions, of which its module's code shows nothing. MODULE is its name. */
#include <erl_nif.h>

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    (void)env;
    (void)priv_data;
    (void)load_info;
    return 0;
}

static ErlNifFunc functions[] = {};

#define INIT(NAME) ERL_NIF_INIT(NAME, functions, load, NULL, NULL, NULL)

INIT(MODULE)
