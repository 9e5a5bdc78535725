/* Resources. */
#include "contract.h"

ErlNifResourceType *plain_type;
static ErlNifResourceType *counted_type, *dyn_type;
static void *kept_object;
static int dtor_count;

static void count_dtor(ErlNifEnv *env, void *object)
{
    (void)env, (void)object;
    __atomic_add_fetch(&dtor_count, 1, __ATOMIC_SEQ_CST);
}

static void dyncall(ErlNifEnv *env, void *object, void *data)
{
    (void)env;
    *(int *)data = ((unsigned char *)object)[0] + 1;
}

int load_resources(ErlNifEnv *env)
{
    ErlNifResourceFlags tried;
    ErlNifResourceTypeInit dyn_init = {.members = 4, .dyncall = dyncall};

    plain_type = enif_open_resource_type(env, NULL, "plain", NULL, ERL_NIF_RT_CREATE, &tried);
    if (tried != ERL_NIF_RT_CREATE)
        return 1;
    counted_type = enif_open_resource_type(env, NULL, "counted", count_dtor,
                                           ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, &tried);
    if (tried != ERL_NIF_RT_CREATE)
        return 2;
    dyn_type = enif_init_resource_type(env, "dyn", &dyn_init, ERL_NIF_RT_CREATE, NULL);
    if (enif_open_resource_type(env, NULL, "none", NULL, ERL_NIF_RT_TAKEOVER, &tried) != NULL)
        return 3;
    return plain_type == NULL || counted_type == NULL || dyn_type == NULL;
}

/* "Creates an opaque handle ... The obtained resource term can be passed to Erlang." */
CASE(resource_make)
{
    term *kept = enif_alloc_resource(plain_type, 64);

    memset(kept, 0, 64);
    ((unsigned char *)kept)[3] = 33;
    term made = enif_make_resource(env, kept);
    enif_release_resource(kept);
    return made;
}

/* "Sets *objp to point to the resource object referred to by term ... Returns true on success or
 * false if term is not a handle to a resource object of type type." */
CASE(resource_get)
{
    void *object = NULL;
    struct results r = {.len = 0};

    int ok = enif_get_resource(env, IN, plain_type, &object);
    add_int(env, &r, ok != 0);
    if (ok) {
        add_int(env, &r, ((unsigned char *)object)[3]++);
        add_int(env, &r, (long)enif_sizeof_resource(object));
        add_int(env, &r, enif_is_identical(IN, enif_make_resource(env, object)));
    }
    add_int(env, &r, enif_get_resource(env, IN, counted_type, &object) != 0);
    return all(env, &r);
}

/* The term of a resource is a reference, the same one each time. */
CASE(resource_terms_are_references)
{
    void *object = enif_alloc_resource(plain_type, 1);
    term a = enif_make_resource(env, object), b = enif_make_resource(env, object);

    enif_release_resource(object);
    return enif_make_tuple4(env, enif_make_int(env, enif_is_ref(env, a) != 0),
                            enif_make_int(env, enif_compare(a, b)),
                            enif_make_int(env, enif_is_identical(a, b) != 0),
                            enif_make_int(env, (int)enif_term_type(env, a)));
}

/* "The destructor ... is called when the last reference has gone"; and not inside of the NIF that
 * releases it. */
CASE(resource_destructor_is_not_called_inside)
{
    int before = dtor_count;
    void *object = enif_alloc_resource(counted_type, 8);

    enif_keep_resource(object);
    enif_release_resource(object);
    enif_release_resource(object);
    return boolean(env, dtor_count == before);
}

CASE(resource_destructors)
{
    return enif_make_int(env, __atomic_load_n(&dtor_count, __ATOMIC_SEQ_CST));
}

/* One whose end is counted; and one that the library keeps for itself and gives out again. */
CASE(resource_make_counted)
{
    void *object = enif_alloc_resource(counted_type, 100);
    term made = enif_make_resource(env, object);

    enif_release_resource(object);
    return made;
}

CASE(resource_kept)
{
    if (kept_object == NULL)
        kept_object = enif_alloc_resource(plain_type, 64);
    return enif_make_resource(env, kept_object);
}

/* Resources that do not leave the NIF, and are only named. IN: what for, or a port. */
CASE(resource_named)
{
    term one = case_resource_make_counted(env, 0, NULL);
    term other = case_resource_make_counted(env, 0, NULL), map = enif_make_new_map(env);
    ErlNifBinary bin;
    ErlNifPort port;
    char printed[100];
    int what;

    if (enif_get_local_port(env, IN, &port)) {
        int taken = enif_port_command(env, &port, NULL, one);
        return boolean(env, taken);
    }
    if (!enif_get_int(env, IN, &what))
        return enif_make_badarg(env);
    switch (what) {
    case 0:
        return boolean(env, enif_compare(one, other) != 0);
    case 1:
        return boolean(env, enif_snprintf(printed, sizeof printed, "%T", one) > 0);
    case 2:
        return boolean(env, enif_make_map_put(env, map, one, IN, &map) &&
                                enif_make_map_put(env, map, other, IN, &map));
    case 3:
        return boolean(env, enif_hash(ERL_NIF_PHASH2, one, 0) != 0);
    default:
        if (!enif_term_to_binary(env, one, &bin))
            return enif_make_badarg(env);
        return enif_make_binary(env, &bin);
    }
}

/* A message with a new resource and an atom. IN: {Pid, Name} */
CASE(resource_sent)
{
    const term *in;
    int arity;
    ErlNifPid pid;
    ErlNifBinary name;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid) || !enif_inspect_binary(env, in[1], &name))
        return enif_make_badarg(env);
    return boolean(
        env, enif_send(env, &pid, NULL,
                       enif_make_tuple2(env, case_resource_make_counted(env, 0, NULL),
                                        enif_make_atom_len(env, (char *)name.data, name.size))));
}

/* "Creates a binary term that is memory-managed by a resource object." */
CASE(resource_binary)
{
    unsigned char *object = enif_alloc_resource(plain_type, 300);
    ErlNifEnv *other = enif_alloc_env();
    term made, copy;

    memset(object, 'r', 300);
    made = enif_make_resource_binary(env, object, object + 10, 200);
    copy = enif_make_copy(other, made);
    copy = enif_make_copy(env, copy);
    enif_free_env(other);
    enif_release_resource(object);
    return enif_make_tuple3(env, made, copy, enif_make_sub_binary(env, made, 5, 3));
}

/* "Attempts to ... a term handle to a resource": a resource binary is one. IN: its size. */
CASE(resource_binary_is_resource)
{
    struct results r = {.len = 0};
    unsigned char *object = enif_alloc_resource(plain_type, 300);
    ErlNifEnv *other = enif_alloc_env();
    term terms[6];
    unsigned size;

    if (!enif_get_uint(env, IN, &size) || size > 300)
        return enif_make_badarg(env);
    memset(object, 'r', 300);
    terms[0] = enif_make_resource_binary(env, object, object, size);
    terms[1] = enif_make_copy(env, enif_make_copy(other, terms[0]));
    terms[2] = enif_make_sub_binary(env, terms[0], size / 2, size - size / 2);
    terms[3] = enif_make_copy(env, enif_make_copy(other, terms[2]));
    terms[4] = bytes(env, object, size);
    terms[5] = enif_make_sub_binary(env, terms[1], 0, size);
    for (int i = 0; i < 6; i++) {
        void *got = NULL;
        add_int(env, &r, enif_get_resource(env, terms[i], plain_type, &got) != 0);
        add_int(env, &r, got == object);
        add_int(env, &r, enif_get_resource(env, terms[i], counted_type, &got) != 0);
    }
    enif_free_env(other);
    enif_release_resource(object);
    return all(env, &r);
}

/* Only load and upgrade can open a type. enif_dynamic_resource_call finds it by module and name. */
CASE(resource_dynamic_call)
{
    unsigned char *object = enif_alloc_resource(dyn_type, 1);
    int data = 0;

    object[0] = 41;
    term made = enif_make_resource(env, object);
    enif_release_resource(object);
    int ok = enif_dynamic_resource_call(env, enif_make_atom(env, "contract_nif"),
                                        enif_make_atom(env, "dyn"), made, &data);
    int wrong = enif_dynamic_resource_call(env, enif_make_atom(env, "contract_nif"),
                                           enif_make_atom(env, "no_such_type"), made, &data);
    return enif_make_tuple3(env, enif_make_int(env, ok), enif_make_int(env, wrong != 0),
                            enif_make_int(env, data));
}
