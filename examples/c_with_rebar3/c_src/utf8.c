/* A NIF that checks UTF-8 (RFC 3629, section 4: the syntax of its byte sequences). */
#include <erl_nif.h>

/* The length of the sequence that starts at text, or 0 where it is none. */
static size_t sequence(const unsigned char *text, size_t left)
{
    unsigned char lead = text[0], low = 0x80, high = 0xBF;
    size_t len;

    if (lead < 0x80)
        return 1;
    if (lead >= 0xC2 && lead <= 0xDF)
        len = 2;
    else if ((lead & 0xF0) == 0xE0)
        len = 3;
    else if (lead >= 0xF0 && lead <= 0xF4)
        len = 4;
    else
        return 0;

    /* The second byte is narrower after these, so that nothing has two spellings. */
    if (lead == 0xE0)
        low = 0xA0;
    if (lead == 0xED)
        high = 0x9F;
    if (lead == 0xF0)
        low = 0x90;
    if (lead == 0xF4)
        high = 0x8F;

    if (left < len || text[1] < low || text[1] > high)
        return 0;
    for (size_t i = 2; i < len; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    return len;
}

static ERL_NIF_TERM check(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Binary) -> Binary */
    ErlNifBinary text;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &text))
        return enif_make_badarg(env);
    for (size_t at = 0, len; at < text.size; at += len)
        if ((len = sequence(text.data + at, text.size - at)) == 0)
            return enif_make_badarg(env);
    return argv[0];
}

static ErlNifFunc functions[] = {{"check", 1, check, 0}};

ERL_NIF_INIT(utf8, functions, NULL, NULL, NULL, NULL)
