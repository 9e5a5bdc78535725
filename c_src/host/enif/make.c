/* The functions of the API that make terms: numbers, lists, tuples, strings. */
#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "memory/name.h"
#include "memory/otp.h"
#include "term/term.h"

ERL_NIF_TERM enif_make_int(ErlNifEnv *env, int value)
{
    (void)env;
    return make_small(value);
}

ERL_NIF_TERM enif_make_uint(ErlNifEnv *env, unsigned value)
{
    (void)env;
    return make_small(value);
}

ERL_NIF_TERM enif_make_long(ErlNifEnv *env, long value)
{
    return term_integer(env, value);
}

ERL_NIF_TERM enif_make_ulong(ErlNifEnv *env, unsigned long value)
{
    return term_unsigned(env, value);
}

ERL_NIF_TERM enif_make_double(ErlNifEnv *env, double value)
{
    return isfinite(value) ? term_float(env, value) : enif_make_badarg(env);
}

ERL_NIF_TERM enif_make_tuple_from_array(ErlNifEnv *env, const ERL_NIF_TERM elements[], unsigned len)
{
    return term_tuple(env, len, elements);
}

ERL_NIF_TERM enif_make_tuple(ErlNifEnv *env, unsigned len, ...)
{
    term *elements, tuple = term_new_tuple(env, len, &elements);
    va_list args;

    va_start(args, len);
    for (unsigned i = 0; i < len; i++)
        elements[i] = va_arg(args, term);
    va_end(args);
    return tuple;
}

ERL_NIF_TERM enif_make_list_cell(ErlNifEnv *env, ERL_NIF_TERM head, ERL_NIF_TERM tail)
{
    return term_cons(env, head, tail);
}

/* A proper list of len cells in a row, whose heads the caller fills in. */
static term new_list(ErlNifEnv *env, size_t len, term **cells)
{
    if (len == 0)
        return TERM_NIL;
    *cells = env_alloc(env, 2 * len * sizeof(term));
    for (size_t i = 0; i < len; i++)
        (*cells)[2 * i + 1] = i + 1 < len ? make_cell(*cells + 2 * i + 2) : TERM_NIL;
    return make_cell(*cells);
}

ERL_NIF_TERM enif_make_list_from_array(ErlNifEnv *env, const ERL_NIF_TERM elements[], unsigned len)
{
    term *cells, list = new_list(env, len, &cells);

    for (unsigned i = 0; i < len; i++)
        cells[2 * i] = elements[i];
    return list;
}

ERL_NIF_TERM enif_make_list(ErlNifEnv *env, unsigned len, ...)
{
    term *cells, list = new_list(env, len, &cells);
    va_list args;

    va_start(args, len);
    for (unsigned i = 0; i < len; i++)
        cells[2 * i] = va_arg(args, term);
    va_end(args);
    return list;
}

#if HAS_NIF_2_17
static ERL_NIF_TERM make_utf8(ErlNifEnv *env, const unsigned char *text, size_t size)
{
    size_t len = 0, more;
    int64_t character;
    term *cells, list;

    for (size_t at = 0; at < size; at += more, len++) {
        more = utf8_get(text + at, size - at, &character);
        if (more == 0)
            return enif_make_badarg(env);
    }
    list = new_list(env, len, &cells);
    for (size_t i = 0; i < len; i++) {
        text += utf8_get(text, 4, &character); /* whole, as was seen */
        cells[2 * i] = make_small(character);
    }
    return list;
}
#endif

ERL_NIF_TERM enif_make_string_len(ErlNifEnv *env, const char *text, size_t size,
                                  ErlNifCharEncoding encoding)
{
    term *cells, list;

#if HAS_NIF_2_17
    if (encoding == ERL_NIF_UTF8)
        return make_utf8(env, (const unsigned char *)text, size);
#endif
    if (encoding != ERL_NIF_LATIN1)
        return enif_make_badarg(env);
    list = new_list(env, size, &cells);
    for (size_t i = 0; i < size; i++)
        cells[2 * i] = make_small((unsigned char)text[i]);
    return list;
}

ERL_NIF_TERM enif_make_string(ErlNifEnv *env, const char *text, ErlNifCharEncoding encoding)
{
    return enif_make_string_len(env, text, strlen(text), encoding);
}

int enif_make_reverse_list(ErlNifEnv *env, ERL_NIF_TERM list, ERL_NIF_TERM *reversed)
{
    term made = TERM_NIL;

    for (; is_list_cell(list); list = cell_of(list)[1])
        made = term_cons(env, cell_of(list)[0], made);
    if (list != TERM_NIL)
        return 0;
    *reversed = made;
    return 1;
}
