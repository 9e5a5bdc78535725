/* The text of a JSON number as an integer of any size, or a float. */
#ifndef JSON_NUMBER_H
#define JSON_NUMBER_H

#include <erl_nif.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A longer number is refused: what it costs to convert grows with the square of its length. The
 * longest takes 0.1 ms. */
#define NUMBER_MAX 4096

enum number { NOT_A_NUMBER, AN_INTEGER, A_FLOAT };

static inline size_t digits(const char *text, size_t at)
{
    while (text[at] >= '0' && text[at] <= '9')
        at++;
    return at;
}

/* What the text is, by the grammar of RFC 8259; it ends with a zero. */
static inline enum number number_kind(const char *text)
{
    enum number kind = AN_INTEGER;
    const size_t first = text[0] == '-';
    size_t at = digits(text, first), from;

    if (at == first || (text[first] == '0' && at > first + 1))
        return NOT_A_NUMBER;
    if (text[at] == '.') {
        kind = A_FLOAT;
        from = at + 1;
        at = digits(text, from);
        if (at == from)
            return NOT_A_NUMBER;
    }
    if (text[at] == 'e' || text[at] == 'E') {
        kind = A_FLOAT;
        from = at + 1;
        from += text[from] == '+' || text[from] == '-';
        at = digits(text, from);
        if (at == from)
            return NOT_A_NUMBER;
    }
    return text[at] == '\0' ? kind : NOT_A_NUMBER;
}

/* 32 bits of a number hold nine digits and more. */
#define LIMBS_MAX (NUMBER_MAX / 9 + 1)

/* An integer as the external term format has it: 0 when the VM finds no memory. */
static inline int number_big(ErlNifEnv *env, const char *text, ERL_NIF_TERM *term)
{
    uint32_t limbs[LIMBS_MAX];
    unsigned char bytes[7 + 4 * LIMBS_MAX];
    const int negative = text[0] == '-';
    size_t len = 0, head;

    for (text += negative; *text != '\0';) {
        uint64_t add = 0, times = 1;

        for (int i = 0; i < 9 && *text != '\0'; i++, times *= 10)
            add = add * 10 + (uint64_t)(*text++ - '0');
        for (size_t i = 0; i < len; i++) {
            add += limbs[i] * times;
            limbs[i] = (uint32_t)add;
            add >>= 32;
        }
        if (add > 0)
            limbs[len++] = (uint32_t)add;
    }
    bytes[0] = 131;
    if (4 * len < 256) { /* SMALL_BIG_EXT */
        bytes[1] = 110;
        bytes[2] = (unsigned char)(4 * len);
        head = 3;
    } else { /* LARGE_BIG_EXT */
        bytes[1] = 111;
        for (size_t i = 0; i < 4; i++)
            bytes[2 + i] = (unsigned char)(4 * len >> (24 - 8 * i));
        head = 6;
    }
    bytes[head++] = (unsigned char)negative;
    for (size_t i = 0; i < len; i++)
        for (size_t j = 0; j < 4; j++)
            bytes[head++] = (unsigned char)(limbs[i] >> 8 * j);
    return enif_binary_to_term(env, bytes, head, term, 0) == head;
}

/* Makes the term. Returns NULL, or what is wrong. */
static inline const char *number_term(ErlNifEnv *env, const char *text, size_t size,
                                      ERL_NIF_TERM *term)
{
    double value;

    switch (number_kind(text)) {
    case AN_INTEGER:
        if (size <= 18) {
            *term = enif_make_int64(env, strtoll(text, NULL, 10));
            return NULL;
        }
        return number_big(env, text, term) ? NULL : "is too large a number";
    case A_FLOAT:
        value = strtod(text, NULL);
        if (!isfinite(value))
            return "is too large a number";
        *term = enif_make_double(env, value);
        return NULL;
    default:
        return "is no number";
    }
}

#endif
