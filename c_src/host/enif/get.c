/* The functions of the API that look at terms: types, numbers, lists, tuples, strings, order. */
#include <limits.h>
#include <string.h>

#include "memory/name.h"
#include "memory/otp.h"
#include "term/order.h"
#include "term/term.h"

/* ---- types ---------------------------------------------------------------------------- */

ErlNifTermType enif_term_type(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return term_type(t);
}

int enif_is_ref(ErlNifEnv *env, ERL_NIF_TERM t)
{
    return enif_term_type(env, t) == ERL_NIF_TERM_TYPE_REFERENCE;
}

int enif_is_fun(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_kind(t, BOX_FUN);
}

int enif_is_tuple(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_tuple(t);
}

int enif_is_list(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_list_cell(t) || t == TERM_NIL;
}

int enif_is_empty_list(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return t == TERM_NIL;
}

int enif_is_number(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_number(t);
}

int enif_is_identical(ERL_NIF_TERM a, ERL_NIF_TERM b)
{
    return term_identical(a, b);
}

int enif_compare(ERL_NIF_TERM a, ERL_NIF_TERM b)
{
    return term_compare(a, b, 0);
}

/* ---- numbers -------------------------------------------------------------------------- */

int enif_get_long(ErlNifEnv *env, ERL_NIF_TERM t, long *value)
{
    int negative;
    uint64_t magnitude;

    (void)env;
    if (!term_magnitude(t, &negative, &magnitude) ||
        magnitude > (uint64_t)LONG_MAX + (negative != 0))
        return 0;
    *value = negative ? (long)-magnitude : (long)magnitude;
    return 1;
}

int enif_get_ulong(ErlNifEnv *env, ERL_NIF_TERM t, unsigned long *value)
{
    int negative;
    uint64_t magnitude;

    (void)env;
    if (!term_magnitude(t, &negative, &magnitude) || (negative && magnitude != 0))
        return 0;
    *value = magnitude;
    return 1;
}

int enif_get_int(ErlNifEnv *env, ERL_NIF_TERM t, int *value)
{
    long wide;

    if (!enif_get_long(env, t, &wide) || wide < INT_MIN || wide > INT_MAX)
        return 0;
    *value = (int)wide;
    return 1;
}

int enif_get_uint(ErlNifEnv *env, ERL_NIF_TERM t, unsigned *value)
{
    unsigned long wide;

    if (!enif_get_ulong(env, t, &wide) || wide > UINT_MAX)
        return 0;
    *value = (unsigned)wide;
    return 1;
}

int enif_get_double(ErlNifEnv *env, ERL_NIF_TERM t, double *value)
{
    (void)env;
    if (!is_kind(t, BOX_FLOAT))
        return 0;
    *value = ((struct box_float *)box_of(t))->value;
    return 1;
}

/* ---- lists, tuples -------------------------------------------------------------------- */

int enif_get_list_cell(ErlNifEnv *env, ERL_NIF_TERM t, ERL_NIF_TERM *head, ERL_NIF_TERM *tail)
{
    (void)env;
    if (!is_list_cell(t))
        return 0;
    *head = cell_of(t)[0];
    *tail = cell_of(t)[1];
    return 1;
}

int enif_get_list_length(ErlNifEnv *env, ERL_NIF_TERM t, unsigned *len)
{
    unsigned count = 0;

    (void)env;
    for (; is_list_cell(t); t = cell_of(t)[1])
        count++;
    if (t != TERM_NIL)
        return 0;
    *len = count;
    return 1;
}

int enif_get_tuple(ErlNifEnv *env, ERL_NIF_TERM t, int *arity, const ERL_NIF_TERM **elements)
{
    (void)env;
    if (!is_tuple(t))
        return 0;
    *arity = (int)box_size(t);
    *elements = ((struct box_tuple *)box_of(t))->elements;
    return 1;
}

/* ---- strings -------------------------------------------------------------------------- */

/* The bytes of a character in an encoding that is known, and how many there are. 0: it has none there. */
static size_t character(term t, ErlNifCharEncoding encoding, unsigned char *bytes)
{
    if (!is_small(t))
        return 0;
    if (encoding != ERL_NIF_LATIN1)
        return utf8_put(small_value(t), bytes);
    bytes[0] = (unsigned char)small_value(t);
    return small_value(t) >= 0 && small_value(t) <= 255;
}

#if HAS_NIF_2_17
int enif_get_string_length(ErlNifEnv *env, ERL_NIF_TERM list, unsigned *len,
                           ErlNifCharEncoding encoding)
{
    unsigned count = 0;

    (void)env;
    if (!known_encoding(encoding))
        return 0;
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        unsigned char bytes[4];
        size_t more = character(cell_of(list)[0], encoding, bytes);
        if (more == 0)
            return 0;
        count += (unsigned)more;
    }
    if (list != TERM_NIL)
        return 0;
    *len = count;
    return 1;
}
#endif

/* As many whole characters as fit, ended by a zero byte; then the result is less than zero. 0: not a
 * list of characters. */
int enif_get_string(ErlNifEnv *env, ERL_NIF_TERM list, char *buffer, unsigned size,
                    ErlNifCharEncoding encoding)
{
    unsigned len = 0;

    (void)env;
    if (size == 0 || !known_encoding(encoding))
        return 0;
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        unsigned char bytes[4];
        size_t more = character(cell_of(list)[0], encoding, bytes);
        buffer[len] = '\0';
        if (more == 0)
            return 0;
        if (more > size - 1 - len)
            return -(int)(len + 1);
        memcpy(buffer + len, bytes, more);
        len += (unsigned)more;
    }
    buffer[len] = '\0';
    return list == TERM_NIL ? (int)len + 1 : 0;
}
