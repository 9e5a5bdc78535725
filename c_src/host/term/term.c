/* Making terms, and what they are, see term.h. */
#include <string.h>

#include "memory/name.h"
#include "term/term.h"

/* ---- making --------------------------------------------------------------------------- */

term term_big(ErlNifEnv *env, int negative, const uint64_t *digits, size_t len)
{
    while (len > 0 && digits[len - 1] == 0)
        len--;
    if (len == 0)
        return make_small(0);
    if (len == 1 && digits[0] <= (uint64_t)SMALL_MAX + (negative != 0))
        return make_small(negative ? (int64_t)-digits[0] : (int64_t)digits[0]);

    struct box_big *big = env_alloc(env, sizeof *big + len * sizeof *digits);
    big->header = box_header(BOX_BIG, len);
    big->negative = negative != 0;
    memcpy(big->digits, digits, len * sizeof *digits);
    return make_boxed(big);
}

term term_integer(ErlNifEnv *env, int64_t value)
{
    uint64_t digit = value < 0 ? -(uint64_t)value : (uint64_t)value;

    if (value >= SMALL_MIN && value <= SMALL_MAX)
        return make_small(value);
    return term_big(env, value < 0, &digit, 1);
}

term term_unsigned(ErlNifEnv *env, uint64_t value)
{
    return term_big(env, 0, &value, 1);
}

term term_float(ErlNifEnv *env, double value)
{
    struct box_float *box = env_alloc(env, sizeof *box);

    box->header = box_header(BOX_FLOAT, 0);
    box->value = value;
    return make_boxed(box);
}

term term_new_tuple(ErlNifEnv *env, size_t arity, term **elements)
{
    struct box_tuple *tuple = env_alloc(env, sizeof *tuple + arity * sizeof(term));

    tuple->header = box_header(BOX_TUPLE, arity);
    *elements = tuple->elements;
    return make_boxed(tuple);
}

term term_tuple(ErlNifEnv *env, size_t arity, const term *elements)
{
    term *place, tuple = term_new_tuple(env, arity, &place);

    if (arity > 0)
        memcpy(place, elements, arity * sizeof(term));
    return tuple;
}

term term_cons(ErlNifEnv *env, term head, term tail)
{
    term *cell = env_alloc(env, 2 * sizeof *cell);

    cell[0] = head;
    cell[1] = tail;
    return make_cell(cell);
}

term term_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits,
                 struct shared *owner)
{
    struct box_binary *binary = env_alloc(env, sizeof *binary);

    *binary = (struct box_binary){box_header(BOX_BINARY, 0), data, size, size == 0 ? 0 : last_bits,
                                  owner};
    if (owner != NULL)
        env_keep(env, owner);
    return make_boxed(binary);
}

term term_small_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits)
{
    unsigned char *copy = env_alloc(env, size + BINARY_SLACK_BYTES);

    if (size > 0)
        memcpy(copy, data, size);
    return term_binary(env, copy, size, last_bits, NULL);
}

term term_ref(ErlNifEnv *env, const uint32_t *words, size_t len)
{
    struct box_ref *ref = env_alloc(env, sizeof *ref);

    ref->header = box_header(BOX_REF, 0);
    ref->len = (uint32_t)len;
    memcpy(ref->words, words, len * sizeof *words);
    return make_boxed(ref);
}

term term_opaque(ErlNifEnv *env, enum box_kind kind, ErlNifTermType type,
                 const unsigned char *bytes, size_t size)
{
    struct box_opaque *box = env_alloc(env, sizeof *box + size);

    *box = (struct box_opaque){box_header(kind, 0), type, size, (unsigned char *)(box + 1)};
    memcpy(box + 1, bytes, size);
    return make_boxed(box);
}

term term_text(ErlNifEnv *env, const char *text)
{
    return term_binary(env, (const unsigned char *)text, strlen(text), 0, NULL);
}

term term_latin1(ErlNifEnv *env, const char *name)
{
    const size_t size = strlen(name);
    unsigned char *utf8 = env_alloc(env, 2 * size + 1);

    return term_binary(env, utf8, latin1_to_utf8((const unsigned char *)name, size, utf8), 0, NULL);
}

/* ---- looking -------------------------------------------------------------------------- */

ErlNifTermType term_type(term t)
{
    if (is_list_cell(t) || t == TERM_NIL)
        return ERL_NIF_TERM_TYPE_LIST;
    if (is_small(t))
        return ERL_NIF_TERM_TYPE_INTEGER;
    if (is_atom(t))
        return ERL_NIF_TERM_TYPE_ATOM;
    if (is_local_pid(t))
        return ERL_NIF_TERM_TYPE_PID;
    if (is_local_port(t))
        return ERL_NIF_TERM_TYPE_PORT;
    if (!is_boxed(t))
        return (ErlNifTermType)-1;
    switch (box_kind(t)) {
    case BOX_TUPLE:
        return ERL_NIF_TERM_TYPE_TUPLE;
    case BOX_BIG:
        return ERL_NIF_TERM_TYPE_INTEGER;
    case BOX_FLOAT:
        return ERL_NIF_TERM_TYPE_FLOAT;
    case BOX_BINARY:
        return ERL_NIF_TERM_TYPE_BITSTRING;
    case BOX_MAP:
        return ERL_NIF_TERM_TYPE_MAP;
    case BOX_REF:
    case BOX_RESOURCE:
        return ERL_NIF_TERM_TYPE_REFERENCE;
    case BOX_FUN:
        return ERL_NIF_TERM_TYPE_FUN;
    case BOX_FOREIGN:
        break;
    }
    return ((struct box_opaque *)box_of(t))->type;
}

int term_magnitude(term t, int *negative, uint64_t *magnitude)
{
    if (is_small(t)) {
        int64_t value = small_value(t);
        *negative = value < 0;
        *magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
        return 1;
    }
    if (!is_kind(t, BOX_BIG) || box_size(t) != 1)
        return 0;
    struct box_big *big = box_of(t);
    *negative = (int)big->negative;
    *magnitude = big->digits[0];
    return 1;
}
