/* The functions of the API on atoms. */
#include <string.h>

#include "memory/name.h"
#include "memory/otp.h"
#include "port/ask.h"
#include "term/atom.h"

ERL_NIF_TERM enif_make_atom_len(ErlNifEnv *env, const char *name, size_t len)
{
    term atom = atom_make_latin1((const unsigned char *)name, len, 0);

    return atom == TERM_NONE ? enif_make_badarg(env) : atom;
}

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom_len(env, name, strlen(name));
}

/* A name as UTF-8 in place for ATOM_BYTES_MAX bytes; its size. 0: no atom may have this name. */
static int to_utf8(const char *name, size_t len, ErlNifCharEncoding encoding, unsigned char *utf8,
                   size_t *size)
{
    size_t chars = 0, more;
    int64_t character;

    if (!known_encoding(encoding))
        return 0;
    if (encoding == ERL_NIF_LATIN1) {
        if (len > ATOM_CHARS_MAX)
            return 0;
        *size = latin1_to_utf8((const unsigned char *)name, len, utf8);
        return 1;
    }
    if (len > ATOM_BYTES_MAX)
        return 0;
    for (size_t at = 0; at < len; at += more, chars++) {
        more = utf8_get((const unsigned char *)name + at, len - at, &character);
        if (more == 0 || chars == ATOM_CHARS_MAX)
            return 0;
    }
    memcpy(utf8, name, len);
    *size = len;
    return 1;
}

int enif_make_existing_atom_len(ErlNifEnv *env, const char *name, size_t len, ERL_NIF_TERM *atom,
                                ErlNifCharEncoding encoding)
{
    unsigned char utf8[ATOM_BYTES_MAX];
    size_t size;

    (void)env;
    if (!to_utf8(name, len, encoding, utf8, &size))
        return 0;
    term here = atom_find(utf8, size);
    if (here == TERM_NONE) {
        if (!ask_name("existing_atom", utf8, size))
            return 0;
        here = atom_make(utf8, size, 1);
    }
    *atom = here;
    return here != TERM_NONE;
}

int enif_make_existing_atom(ErlNifEnv *env, const char *name, ERL_NIF_TERM *atom,
                            ErlNifCharEncoding encoding)
{
    return enif_make_existing_atom_len(env, name, strlen(name), atom, encoding);
}

int enif_is_atom(ErlNifEnv *env, ERL_NIF_TERM t)
{
    (void)env;
    return is_atom(t);
}

int enif_get_atom_length(ErlNifEnv *env, ERL_NIF_TERM t, unsigned *len, ErlNifCharEncoding encoding)
{
    (void)env;
    if (!known_encoding(encoding) || !is_atom(t))
        return 0;
    struct atom *atom = atom_of(t);
    if (encoding == ERL_NIF_LATIN1 && !atom->latin1)
        return 0;
    *len = encoding == ERL_NIF_LATIN1 ? atom->chars : atom->size;
    return 1;
}

int enif_get_atom(ErlNifEnv *env, ERL_NIF_TERM t, char *buffer, unsigned size,
                  ErlNifCharEncoding encoding)
{
    unsigned len, out = 0;

    if (!enif_get_atom_length(env, t, &len, encoding) || len >= size)
        return 0;
    struct atom *atom = atom_of(t);
    if (encoding != ERL_NIF_LATIN1) {
        memcpy(buffer, atom->name, (size_t)len + 1);
        return (int)len + 1;
    }
    for (unsigned i = 0; i < atom->size; i++) {
        unsigned char c = atom->name[i];
        if (c >= 0x80)
            c = (unsigned char)(c << 6 | (atom->name[++i] & 0x3f));
        buffer[out++] = (char)c;
    }
    buffer[out] = '\0';
    return (int)len + 1;
}

#if HAS_NIF_2_17
int enif_make_new_atom_len(ErlNifEnv *env, const char *name, size_t len, ERL_NIF_TERM *atom,
                           ErlNifCharEncoding encoding)
{
    unsigned char utf8[ATOM_BYTES_MAX];
    size_t size;

    (void)env;
    if (!to_utf8(name, len, encoding, utf8, &size))
        return 0;
    term made = atom_make(utf8, size, 0);
    if (made == TERM_NONE)
        return 0;
    *atom = made;
    return 1;
}

int enif_make_new_atom(ErlNifEnv *env, const char *name, ERL_NIF_TERM *atom,
                       ErlNifCharEncoding encoding)
{
    return enif_make_new_atom_len(env, name, strlen(name), atom, encoding);
}
#endif

#if HAS_NIF_2_18
/* As the VM of OTP 29 says. */
#define ATOM_CACHE_MAX 2038

unsigned enif_max_atom_cache_index(void)
{
    return ATOM_CACHE_MAX;
}

int enif_get_atom_cache_index(ErlNifEnv *env, ERL_NIF_TERM atom, unsigned *index)
{
    (void)env;
    if (!is_atom(atom))
        return 0;
    *index = (unsigned)(atom >> 6) % (ATOM_CACHE_MAX + 1);
    return 1;
}
#endif
