/* Strings, numbers and names: tokens that may be cut anywhere, by a step's end or a chunk's. */
#ifndef JSON_TOKEN_H
#define JSON_TOKEN_H

#include "number.h"
#include "parser.h"

/* What reading a piece of a token came to. */
enum token { TOKEN_GOES_ON, TOKEN_SPENT, TOKEN_CHUNK_END, TOKEN_WRONG };

static inline void token_begin(struct tame_call *call, struct parser *p, enum where where)
{
    p->where = where;
    p->from = p->done;
    tame_output_shrink(call, &p->text, 0);
}

/* Puts the bytes of the token that are read into `text`, as many as there are units for. */
static inline enum token token_save(struct tame_call *call, struct parser *p, size_t *units)
{
    while (p->from < p->done) {
        const size_t left = p->done - p->from;
        const size_t size = left < COPY_BYTES ? left : COPY_BYTES;

        if (*units == 0)
            return TOKEN_SPENT;
        if (!tame_output_append(call, &p->text, p->in.data + p->from, size)) {
            (void)tame_enomem(call);
            return TOKEN_WRONG;
        }
        p->from += size;
        *units = *units > size ? *units - size : 0;
    }
    return TOKEN_GOES_ON;
}

/* ---- numbers and names ---- */

static inline int in_word(unsigned char byte)
{
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || byte == '-' ||
           byte == '+' || byte == '.' || byte == 'E';
}

/* The word ends here. */
static inline enum tame_status word_end(struct tame_call *call, struct parser *p)
{
    static const char *const names[] = {"true", "false", "null"};
    const size_t here = p->done - p->from, size = p->text.size + here;
    size_t pages = 1 + NUMBER_MAX / COPY_BYTES;
    char word[NUMBER_MAX + 1];
    const char *wrong;
    ERL_NIF_TERM term;

    if (size > NUMBER_MAX)
        return parser_fail_at(call, p, size, "is longer than a number may be");
    if (tame_output_gather(call, &p->text, &pages) != TAME_DONE)
        return tame_enomem(call);
    if (p->text.size > 0)
        memcpy(word, p->text.data, p->text.size);
    if (here > 0)
        memcpy(word + p->text.size, p->in.data + p->from, here);
    word[size] = '\0';
    if (word[0] >= 'a') {
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strcmp(word, names[i]) == 0) {
                parser_push(call, p, enif_make_atom(call->env, word));
                return TAME_MORE;
            }
        return parser_fail_at(call, p, size, "is no value");
    }
    wrong = number_term(call->env, word, size, &term);
    if (wrong != NULL)
        return parser_fail_at(call, p, size, wrong);
    parser_push(call, p, term);
    return TAME_MORE;
}

static inline enum tame_status word_step(struct tame_call *call, struct parser *p, size_t *units)
{
    while (p->done<p->in.size && * units> 0 && in_word(p->in.data[p->done])) {
        p->done++;
        --*units;
    }
    /* Much longer than any number: so what is saved at a chunk's end is short. */
    if (p->text.size + p->done - p->from > NUMBER_MAX)
        return parser_fail_at(call, p, p->text.size + p->done - p->from,
                              "is longer than a number may be");
    if (p->done == p->in.size) {
        size_t enough = 2 * NUMBER_MAX;

        return token_save(call, p, &enough) == TOKEN_WRONG ? TAME_FAILED : TAME_MORE;
    }
    return *units == 0 ? TAME_MORE : word_end(call, p);
}

/* ---- strings ---- */

/* The quote at its end is read. */
static inline enum tame_status string_end(struct tame_call *call, struct parser *p, size_t size)
{
    ERL_NIF_TERM term;

    if (p->text.size > 0) {
        p->where = AT_STRING_END;
        return TAME_MORE;
    }
    if (size <= SHORT_BYTES) {
        unsigned char *to = enif_make_new_binary(call->env, size, &term);

        if (size > 0)
            memcpy(to, p->in.data + p->from, size);
    } else {
        term = enif_make_sub_binary(call->env, call->root[ROOT_CHUNK], p->from, size);
    }
    parser_push(call, p, term);
    return TAME_MORE;
}

/* The bytes in `text` become a term: a short string a copy, a long one is given away. */
static inline enum tame_status text_end(struct tame_call *call, struct parser *p, size_t *units)
{
    const size_t all = *units / COPY_BYTES + 1;
    size_t pages = all;
    const enum tame_status status = tame_output_gather(call, &p->text, &pages);
    ERL_NIF_TERM term;

    *units = spent(*units, (all - pages) * COPY_BYTES);
    if (status != TAME_DONE)
        return status;
    if (p->text.size <= COPY_BYTES)
        memcpy(enif_make_new_binary(call->env, p->text.size, &term), p->text.data, p->text.size);
    else
        term = tame_output_term(call, &p->text);
    parser_push(call, p, term);
    return TAME_MORE;
}

static inline enum tame_status string_step(struct tame_call *call, struct parser *p, size_t *units)
{
    const unsigned char *bytes = p->in.data;
    const size_t end = p->in.size - p->done < *units ? p->in.size : p->done + *units;
    const size_t began = p->done;
    unsigned char byte = 0;

    while (p->done < end) {
        if (p->utf8.need == 0) {
            p->done += text_plain(bytes + p->done, end - p->done);
            if (p->done == end)
                break;
        }
        byte = bytes[p->done];
        if (byte < 0x20 || ((byte == '"' || byte == '\\') && p->utf8.need == 0))
            break;
        if (!utf8_next(&p->utf8, byte))
            return parser_fail(call, p, "is not UTF-8");
        p->done++;
    }
    *units -= p->done - began;
    if (p->done > p->from && p->high > 0)
        return parser_fail(call, p, "has half a pair of surrogates");
    if (p->done == p->in.size)
        return token_save(call, p, units) == TOKEN_WRONG ? TAME_FAILED : TAME_MORE;
    if (p->done == end)
        return TAME_MORE;
    if (byte < 0x20)
        return parser_fail(call, p, "has a control character");
    if (byte == '"') {
        const size_t size = p->done - p->from;

        if (p->high > 0)
            return parser_fail(call, p, "has half a pair of surrogates");
        if (p->text.size > 0 && token_save(call, p, units) != TOKEN_GOES_ON)
            return call->impl_failure ? TAME_FAILED : TAME_MORE;
        p->done++;
        return string_end(call, p, size);
    }
    switch (token_save(call, p, units)) {
    case TOKEN_WRONG:
        return TAME_FAILED;
    case TOKEN_SPENT:
        return TAME_MORE;
    default:
        p->done++;
        p->where = IN_ESCAPE;
        return TAME_MORE;
    }
}

/* A character that an escape stands for; the string goes on. */
static inline enum tame_status string_add(struct tame_call *call, struct parser *p, uint32_t code)
{
    unsigned char bytes[4];

    p->where = IN_STRING;
    p->from = p->done;
    return tame_output_append(call, &p->text, bytes, utf8_write(bytes, code)) ? TAME_MORE
                                                                              : tame_enomem(call);
}

static inline enum tame_status escape_step(struct tame_call *call, struct parser *p)
{
    static const char names[] = "\"\\/bfnrt", stand_for[] = "\"\\/\b\f\n\r\t";
    const char byte = (char)p->in.data[p->done];
    const char *name = byte == '\0' ? NULL : strchr(names, byte);

    if (byte == 'u') {
        p->done++;
        p->where = IN_HEX;
        p->hex = 0;
        p->hex_len = 0;
        return TAME_MORE;
    }
    if (name == NULL)
        return parser_fail(call, p, "has an unknown escape");
    if (p->high > 0)
        return parser_fail(call, p, "has half a pair of surrogates");
    p->done++;
    return string_add(call, p, (unsigned char)stand_for[name - names]);
}

static inline enum tame_status hex_step(struct tame_call *call, struct parser *p)
{
    const int value = hex_value(p->in.data[p->done]);
    uint32_t code;

    if (value < 0)
        return parser_fail(call, p, "has an escape without four hexadecimal digits");
    p->done++;
    p->hex = p->hex << 4 | (uint32_t)value;
    if (++p->hex_len < 4)
        return TAME_MORE;
    code = p->hex;
    if ((code >= 0xDC00 && code <= 0xDFFF) != (p->high > 0))
        return parser_fail(call, p, "has half a pair of surrogates");
    if (code >= 0xD800 && code <= 0xDBFF) {
        p->high = code;
        p->where = IN_STRING;
        p->from = p->done;
        return TAME_MORE;
    }
    if (p->high > 0)
        code = 0x10000 + ((p->high - 0xD800) << 10) + (code - 0xDC00);
    p->high = 0;
    return string_add(call, p, code);
}

#endif
