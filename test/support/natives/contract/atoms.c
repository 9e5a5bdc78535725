/* Atoms and strings. */
#include "contract.h"

/* "Writes a NULL-terminated string in the buffer pointed to by buf ... Returns the number of bytes
 * written (including terminating NULL character) or 0 if atom is not an atom with maximum length of
 * size-1 bytes in the specified encoding." */
CASE(atoms)
{
    struct results r = {.len = 0};
    unsigned len = 4711;

    add_int(env, &r, enif_get_atom_length(env, IN, &len, ERL_NIF_LATIN1));
    add_int(env, &r, len);
    for (unsigned size = 0; size < 8; size++) {
        char buffer[16];
        memset(buffer, '#', sizeof buffer);
        int got = enif_get_atom(env, IN, buffer, size, ERL_NIF_LATIN1);
        add_int(env, &r, got);
        if (got > 0)
            add(&r, bytes(env, buffer, sizeof buffer));
    }
    char large[300];
    int got = enif_get_atom(env, IN, large, sizeof large, ERL_NIF_LATIN1);
    add_int(env, &r, got);
    if (got > 0)
        add(&r, bytes(env, large, (size_t)got));
    return all(env, &r);
}

/* "Creates an atom term from the NULL-terminated C-string name with ISO Latin-1 encoding. If the
 * length of name exceeds the maximum length allowed for an atom (255 characters), enif_make_atom
 * invokes enif_make_badarg." */
CASE(make_atom_of_binary)
{
    ErlNifBinary bin;

    enif_inspect_binary(env, IN, &bin);
    return enif_make_atom_len(env, (char *)bin.data, bin.size);
}

/* "Tries to create the term of an already existing atom ... Returns true on success or false." */
CASE(make_existing_atom)
{
    ErlNifBinary bin;
    term atom = enif_make_int(env, 0);

    enif_inspect_binary(env, IN, &bin);
    int found = enif_make_existing_atom_len(env, (char *)bin.data, bin.size, &atom, ERL_NIF_LATIN1);
    return enif_make_tuple2(env, enif_make_int(env, found), atom);
}

/* An atom's term is the same word whenever it is made. */
CASE(atoms_are_words)
{
    term a = enif_make_atom(env, "a_word_of_its_own"), b = enif_make_atom(env, "a_word_of_its_own");

    return boolean(env, a == b && enif_is_identical(a, b));
}

/* "Writes a NULL-terminated string ... It returns one of the following: the number of bytes written
 * (including terminating NULL character); -size if the string was truncated because of buffer
 * space; 0 if list is not a string that can be encoded with encoding or if size was < 1. The
 * written string is always NULL-terminated, unless buffer size is < 1." */
CASE(get_string)
{
    struct results r = {.len = 0};

    for (unsigned size = 0; size < 8; size++) {
        char buffer[8];
        memset(buffer, '#', sizeof buffer);
        int got = enif_get_string(env, IN, buffer, size, ERL_NIF_LATIN1);
        add_int(env, &r, got);
        if (got != 0)
            add(&r, bytes(env, buffer, sizeof buffer));
#if ERL_NIF_MINOR_VERSION >= 17
        memset(buffer, '#', sizeof buffer);
        got = enif_get_string(env, IN, buffer, size, ERL_NIF_UTF8);
        add_int(env, &r, got);
        if (got != 0)
            add(&r, bytes(env, buffer, (size_t)(got < 0 ? -got : got)));
#endif
    }
#if ERL_NIF_MINOR_VERSION >= 17
    unsigned len = 0;
    add_int(env, &r, enif_get_string_length(env, IN, &len, ERL_NIF_UTF8));
    add_int(env, &r, (int)len);
#endif
    return all(env, &r);
}

/* OTP 26 and newer. A binary that is no UTF-8 is a badarg. */
CASE(make_utf8)
{
#if ERL_NIF_MINOR_VERSION >= 17
    ErlNifBinary text;

    if (!enif_inspect_binary(env, IN, &text))
        return enif_make_badarg(env);
    return enif_make_string_len(env, (const char *)text.data, text.size, ERL_NIF_UTF8);
#else
    return IN;
#endif
}

/* "Creates a list containing the characters of the NULL-terminated string." */
CASE(make_string)
{
    return enif_make_tuple3(env, enif_make_string(env, "", ERL_NIF_LATIN1),
                            enif_make_string(env, "a\xe9\xff", ERL_NIF_LATIN1),
                            enif_make_string_len(env, "a\0b", 3, ERL_NIF_LATIN1));
}
