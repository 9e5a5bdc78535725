/* envs.h - environments. Part of fake_nif.h. */
#ifndef TEST_FAKE_NIF_ENVS_H
#define TEST_FAKE_NIF_ENVS_H

ErlNifEnv *enif_alloc_env(void)
{
    __atomic_add_fetch(&fake_envs, 1, __ATOMIC_SEQ_CST);
    return fake_memory(sizeof(ErlNifEnv));
}

void enif_clear_env(ErlNifEnv *env)
{
    while (env->trees != NULL) {
        struct fake_tree *tree = env->trees;

        env->trees = tree->next;
        if (tree->shape == FAKE_RESOURCE)
            enif_release_resource(tree->object);
        free(tree);
    }
    env->raised = 0;
}

void enif_free_env(ErlNifEnv *env)
{
    enif_clear_env(env);
    free(env);
    __atomic_sub_fetch(&fake_envs, 1, __ATOMIC_SEQ_CST);
}

ERL_NIF_TERM enif_make_copy(ErlNifEnv *env, ERL_NIF_TERM term)
{
    const struct fake_tree *tree = (const struct fake_tree *)term;
    ERL_NIF_TERM elements[8];

    if (!fake_is(term, FAKE_TREE))
        return term;
    switch (tree->shape) {
    case FAKE_RESOURCE:
        return enif_make_resource(env, tree->object);
    case FAKE_BINARY:
        return fake_make(env, FAKE_BINARY, tree->size, tree->size, tree->elements);
    default:
        for (size_t i = 0; i < tree->size; i++)
            elements[i] = enif_make_copy(env, tree->elements[i]);
        return fake_make(env, tree->shape, tree->size, tree->size * sizeof *elements, elements);
    }
}

void *enif_priv_data(ErlNifEnv *env)
{
    (void)env;
    return fake_priv_data;
}

#endif
