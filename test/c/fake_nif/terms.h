/* terms.h - terms: a number, an atom, a reference in the word itself; else a tree. Part of fake_nif.h. */
#ifndef TEST_FAKE_NIF_TERMS_H
#define TEST_FAKE_NIF_TERMS_H

enum fake_kind { FAKE_TREE, FAKE_INT, FAKE_ATOM, FAKE_REF, FAKE_NIL, FAKE_NONE };

enum fake_shape { FAKE_TUPLE, FAKE_CONS, FAKE_RESOURCE, FAKE_BINARY };

struct fake_tree {
    enum fake_shape shape;
    struct fake_tree *next; /* of its environment */
    void *object;           /* a hold on the resource */
    size_t size;
    ERL_NIF_TERM elements[]; /* or the bytes */
};

#define FAKE_TERM(kind, value) ((ERL_NIF_TERM)(value) << 4 | (kind))
#define FAKE_EXCEPTION ((ERL_NIF_TERM)FAKE_NONE)
#define FAKE_SCHEDULED FAKE_TERM(FAKE_NONE, 1)

struct fake_process;

struct enif_environment_t {
    struct fake_process *process; /* NULL: of none */
    struct fake_tree *trees;      /* owned */
    int raised;
    ERL_NIF_TERM reason; /* of what was raised last */
    /* What enif_schedule_nif said. */
    ERL_NIF_TERM (*nif)(ErlNifEnv *, int, const ERL_NIF_TERM[]);
    int argc, dirty;
    ERL_NIF_TERM argv[16];
};

static void *fake_priv_data;
static int fake_envs; /* that live */

static inline int fake_is(ERL_NIF_TERM term, enum fake_kind kind)
{
    return (enum fake_kind)(term & 15) == kind;
}

static struct fake_tree *fake_tree(ERL_NIF_TERM term, enum fake_shape shape)
{
    struct fake_tree *tree = (struct fake_tree *)term;

    return fake_is(term, FAKE_TREE) && tree->shape == shape ? tree : NULL;
}

static ERL_NIF_TERM fake_make(ErlNifEnv *env, enum fake_shape shape, size_t size, size_t bytes,
                              const void *from)
{
    struct fake_tree *tree = fake_memory(sizeof *tree + bytes); /* owned by the environment */

    tree->shape = shape;
    tree->size = size;
    tree->next = env->trees;
    env->trees = tree;
    if (bytes > 0)
        memcpy(tree->elements, from, bytes);
    return (ERL_NIF_TERM)tree;
}

ERL_NIF_TERM enif_make_tuple_from_array(ErlNifEnv *env, const ERL_NIF_TERM arr[], unsigned cnt)
{
    return fake_make(env, FAKE_TUPLE, cnt, cnt * sizeof *arr, arr);
}

ERL_NIF_TERM enif_make_tuple(ErlNifEnv *env, unsigned cnt, ...)
{
    ERL_NIF_TERM elements[8];
    va_list list;

    va_start(list, cnt);
    for (unsigned i = 0; i < cnt; i++)
        elements[i] = va_arg(list, ERL_NIF_TERM);
    va_end(list);
    return enif_make_tuple_from_array(env, elements, cnt);
}

ERL_NIF_TERM enif_make_list(ErlNifEnv *env, unsigned cnt, ...)
{
    (void)env;
    if (cnt != 0)
        abort();
    return FAKE_TERM(FAKE_NIL, 0);
}

ERL_NIF_TERM enif_make_list_cell(ErlNifEnv *env, ERL_NIF_TERM head, ERL_NIF_TERM tail)
{
    const ERL_NIF_TERM cell[] = {head, tail};

    return fake_make(env, FAKE_CONS, 2, sizeof cell, cell);
}

static pthread_mutex_t fake_atoms_lock = PTHREAD_MUTEX_INITIALIZER;
static char fake_atoms[64][40];

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    int i = 0;

    (void)env;
    pthread_mutex_lock(&fake_atoms_lock);
    while (fake_atoms[i][0] != '\0' && strcmp(fake_atoms[i], name) != 0)
        if (++i == 64)
            abort();
    (void)snprintf(fake_atoms[i], sizeof *fake_atoms, "%s", name);
    pthread_mutex_unlock(&fake_atoms_lock);
    return FAKE_TERM(FAKE_ATOM, i);
}

ERL_NIF_TERM enif_make_int(ErlNifEnv *env, int value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, (unsigned)value);
}

ERL_NIF_TERM enif_make_uint(ErlNifEnv *env, unsigned value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, value);
}

/* On 64 bits these are functions of unsigned long. */
ERL_NIF_TERM enif_make_ulong(ErlNifEnv *env, unsigned long value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, value);
}

int enif_get_ulong(ErlNifEnv *env, ERL_NIF_TERM term, unsigned long *value)
{
    (void)env;
    *value = term >> 4;
    return fake_is(term, FAKE_INT);
}

int enif_get_long(ErlNifEnv *env, ERL_NIF_TERM term, long *value)
{
    (void)env;
    *value = (long)(term >> 4);
    return fake_is(term, FAKE_INT);
}

int enif_get_uint(ErlNifEnv *env, ERL_NIF_TERM term, unsigned *value)
{
    (void)env;
    *value = (unsigned)(term >> 4);
    return fake_is(term, FAKE_INT);
}

int enif_get_int(ErlNifEnv *env, ERL_NIF_TERM term, int *value)
{
    (void)env;
    *value = (int)(term >> 4);
    return fake_is(term, FAKE_INT);
}

ERL_NIF_TERM enif_make_double(ErlNifEnv *env, double value)
{
    (void)env;
    return FAKE_TERM(FAKE_INT, (unsigned)value);
}

ERL_NIF_TERM enif_make_string(ErlNifEnv *env, const char *text, ErlNifCharEncoding encoding)
{
    (void)encoding;
    return enif_make_atom(env, text);
}

int enif_is_atom(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_ATOM);
}

int enif_is_ref(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_REF);
}

int enif_is_identical(ERL_NIF_TERM one, ERL_NIF_TERM two)
{
    return one == two;
}

int enif_is_empty_list(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_is(term, FAKE_NIL);
}

int enif_get_list_cell(ErlNifEnv *env, ERL_NIF_TERM term, ERL_NIF_TERM *head, ERL_NIF_TERM *tail)
{
    const struct fake_tree *cell = fake_tree(term, FAKE_CONS);

    (void)env;
    if (cell == NULL)
        return 0;
    *head = cell->elements[0];
    *tail = cell->elements[1];
    return 1;
}

int enif_get_tuple(ErlNifEnv *env, ERL_NIF_TERM term, int *arity, const ERL_NIF_TERM **elements)
{
    const struct fake_tree *tuple = fake_tree(term, FAKE_TUPLE);

    (void)env;
    if (tuple == NULL)
        return 0;
    *arity = (int)tuple->size;
    *elements = tuple->elements;
    return 1;
}

int enif_is_binary(ErlNifEnv *env, ERL_NIF_TERM term)
{
    (void)env;
    return fake_tree(term, FAKE_BINARY) != NULL;
}

int enif_inspect_binary(ErlNifEnv *env, ERL_NIF_TERM term, ErlNifBinary *binary)
{
    struct fake_tree *tree = fake_tree(term, FAKE_BINARY);

    (void)env;
    if (tree == NULL)
        return 0;
    binary->data = (unsigned char *)tree->elements;
    binary->size = tree->size;
    return 1;
}

/* The output owns it; no job of these tests grows one. */
int enif_alloc_binary(size_t size, ErlNifBinary *binary)
{
    binary->size = size;
    binary->data = malloc(size > 0 ? size : 1);
    return binary->data != NULL;
}

void enif_release_binary(ErlNifBinary *binary)
{
    free(binary->data);
}

/* Of its beginning: what tame/input.h looks at. The VM believes the numbers. */
ERL_NIF_TERM enif_make_sub_binary(ErlNifEnv *env, ERL_NIF_TERM term, size_t at, size_t size)
{
    const struct fake_tree *tree = fake_tree(term, FAKE_BINARY);

    (void)env;
    assert(tree != NULL && at <= tree->size && size <= tree->size - at);
    return term;
}

ERL_NIF_TERM enif_raise_exception(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    env->reason = reason;
    env->raised = 1;
    return FAKE_EXCEPTION;
}

ERL_NIF_TERM enif_make_badarg(ErlNifEnv *env)
{
    return enif_raise_exception(env, 0);
}

int enif_has_pending_exception(ErlNifEnv *env, ERL_NIF_TERM *reason)
{
    (void)reason;
    return env->raised;
}

#endif
