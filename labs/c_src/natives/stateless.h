/* What a NIF library that keeps nothing gives as its upgrade callback. Without one a module could not be loaded anew;
 * with this one the new code binds the same functions once more. */
#ifndef TAME_LABS_STATELESS_H
#define TAME_LABS_STATELESS_H

#include <erl_nif.h>

static int stateless_upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data,
                             ERL_NIF_TERM load_info)
{
    (void)env;
    (void)priv_data;
    (void)old_priv_data;
    (void)load_info;
    return 0;
}

#endif
