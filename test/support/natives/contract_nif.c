/* The contract of erl_nif, clause by clause: each function takes one term and returns what the API
 * said. It runs in the VM and in tame_host, and the results must be the same (test/host).
 *
 * Above each case stands the sentence of the erl_nif manual that it checks.
 */
#include <erl_nif.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef ERL_NIF_TERM term;

#define CASE(name) static term name(ErlNifEnv *env, int argc, const term argv[])
#define IN (argv[0])

/* Results are gathered into a list, in order. */
struct results {
    term items[256];
    unsigned len;
};

static void add(struct results *results, term t)
{
    results->items[results->len++] = t;
}

static void add_int(ErlNifEnv *env, struct results *results, long value)
{
    add(results, enif_make_long(env, value));
}

static term all(ErlNifEnv *env, const struct results *results)
{
    return enif_make_list_from_array(env, results->items, results->len);
}

static term bytes(ErlNifEnv *env, const void *data, size_t size)
{
    term made;
    unsigned char *to = enif_make_new_binary(env, size, &made);

    if (size > 0)
        memcpy(to, data, size);
    return made;
}

static term text(ErlNifEnv *env, const char *s)
{
    return bytes(env, s, strlen(s));
}

/* Whatever is in buffer up to its zero byte. */
static term boolean(ErlNifEnv *env, int value)
{
    return enif_make_atom(env, value ? "true" : "false");
}

static ErlNifResourceType *plain_type, *counted_type, *down_type, *dyn_type;
static void *kept_object;
static term kept_maps[2]; /* of 20 and of 100 pairs, in the private environment */
static ErlNifMutex *mutex;
static ErlNifCond *cond;
static int dtor_count, flag, downs;

#define UNUSED (void)argc, (void)argv, (void)env

/* ---- terms as they are ---------------------------------------------------------------- */

CASE(echo)
{
    (void)env, (void)argc;
    return IN;
}

/* "Makes a copy of term src_term. The copy is created in environment dst_env." */
CASE(copy_there_and_back)
{
    ErlNifEnv *other = enif_alloc_env();
    term copy = enif_make_copy(other, IN);
    term back = enif_make_copy(env, copy);

    (void)argc;
    enif_free_env(other);
    return back;
}

/* "Invalidates all terms in the environment and clears it": it can be used again. */
CASE(clear_env_and_use_again)
{
    ErlNifEnv *other = enif_alloc_env();
    term back;

    (void)argc;
    for (int i = 0; i < 3; i++) {
        enif_make_copy(other, IN);
        enif_clear_env(other);
    }
    back = enif_make_copy(env, enif_make_copy(other, IN));
    enif_free_env(other);
    return back;
}

/* "Allocates a new binary with enif_alloc_binary and stores the result of encoding term according
 * to the Erlang external term format." */
CASE(term_to_binary)
{
    ErlNifBinary bin;

    (void)argc;
    if (!enif_term_to_binary(env, IN, &bin))
        return enif_make_badarg(env);
    return enif_make_binary(env, &bin);
}

/* "Creates a term that is the result of decoding the binary data ... Returns the number of bytes
 * read from data on success, 0 on failure." */
CASE(binary_to_term)
{
    ErlNifBinary bin;
    term made = enif_make_atom(env, "none");
    size_t size;

    (void)argc;
    enif_inspect_binary(env, IN, &bin);
    size = enif_binary_to_term(env, bin.data, bin.size, &made, 0);
    return enif_make_tuple2(env, enif_make_ulong(env, size),
                            size == 0 ? enif_make_atom(env, "none") : made);
}

/* "ERL_NIF_BIN2TERM_SAFE: use this option when receiving data from untrusted sources." */
CASE(binary_to_term_safe)
{
    ErlNifBinary bin;
    term made;

    (void)argc;
    enif_inspect_binary(env, IN, &bin);
    return enif_make_ulong(
        env, enif_binary_to_term(env, bin.data, bin.size, &made, ERL_NIF_BIN2TERM_SAFE));
}

/* ---- types ---------------------------------------------------------------------------- */

/* "Returns true if term is a ..." for each of enif_is_*; and enif_term_type. */
CASE(types)
{
    struct results r = {.len = 0};

    (void)argc;
    add_int(env, &r, enif_is_atom(env, IN));
    add_int(env, &r, enif_is_binary(env, IN));
    add_int(env, &r, enif_is_empty_list(env, IN));
    add_int(env, &r, enif_is_fun(env, IN));
    add_int(env, &r, enif_is_list(env, IN));
    add_int(env, &r, enif_is_map(env, IN));
    add_int(env, &r, enif_is_number(env, IN));
    add_int(env, &r, enif_is_pid(env, IN));
    add_int(env, &r, enif_is_port(env, IN));
    add_int(env, &r, enif_is_ref(env, IN));
    add_int(env, &r, enif_is_tuple(env, IN));
    add_int(env, &r, enif_is_exception(env, IN));
    add_int(env, &r, enif_term_type(env, IN));
    return all(env, &r);
}

/* "Sets *ip to the integer value of term. Returns true on success, or false if term is not an
 * integer or if the integer is outside the bounds of the type." */
CASE(numbers)
{
    struct results r = {.len = 0};
    term no = enif_make_atom(env, "no");
    int i = -7;
    unsigned u = 7;
    long l = -7;
    unsigned long ul = 7;
    ErlNifSInt64 i64 = -7;
    ErlNifUInt64 u64 = 7;
    double d = 7.5;

    (void)argc;
    /* What a variable holds after a failure is nobody's business. */
    add(&r, enif_get_int(env, IN, &i) ? enif_make_int(env, i) : no);
    add(&r, enif_get_uint(env, IN, &u) ? enif_make_uint(env, u) : no);
    add(&r, enif_get_long(env, IN, &l) ? enif_make_long(env, l) : no);
    add(&r, enif_get_ulong(env, IN, &ul) ? enif_make_ulong(env, ul) : no);
    add(&r, enif_get_int64(env, IN, &i64) ? enif_make_int64(env, i64) : no);
    add(&r, enif_get_uint64(env, IN, &u64) ? enif_make_uint64(env, u64) : no);
    add(&r, enif_get_double(env, IN, &d) ? enif_make_double(env, d) : no);
    return all(env, &r);
}

/* "Creates an integer term from ..." at every bound of the types. */
CASE(make_numbers)
{
    struct results r = {.len = 0};
    const long longs[] = {0,
                          1,
                          -1,
                          INT_MAX,
                          INT_MIN,
                          LONG_MAX,
                          LONG_MIN,
                          1L << 59,
                          (1L << 59) - 1,
                          -(1L << 59),
                          -(1L << 59) - 1,
                          1L << 60,
                          -(1L << 60) - 1,
                          1L << 62};

    (void)argc, (void)argv;
    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++) {
        add(&r, enif_make_long(env, longs[i]));
        add(&r, enif_make_ulong(env, (unsigned long)longs[i]));
        add(&r, enif_make_int64(env, longs[i]));
        add(&r, enif_make_uint64(env, (unsigned long)longs[i]));
        add(&r, enif_make_int(env, (int)longs[i]));
        add(&r, enif_make_uint(env, (unsigned)longs[i]));
    }
    add(&r, enif_make_double(env, 0.1));
    add(&r, enif_make_double(env, -1.7976931348623157e308));
    add(&r, enif_make_double(env, 5e-324));
    return all(env, &r);
}

/* "If double argument is not finite or is NaN, enif_make_double invokes enif_make_badarg." */
CASE(make_double_infinite)
{
    (void)argc, (void)argv;
    return enif_make_double(env, HUGE_VAL);
}

CASE(make_double_nan)
{
    (void)argc, (void)argv;
    return enif_make_double(env, nan(""));
}

/* ---- order ---------------------------------------------------------------------------- */

/* "Returns an integer < 0 if lhs < rhs, 0 if lhs = rhs, and > 0 if lhs > rhs. Corresponds to the
 * Erlang operators == ..."; "enif_is_identical corresponds to =:=". */
CASE(order)
{
    const term *pair;
    int arity;

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &pair) || arity != 2)
        return enif_make_badarg(env);
    int order = enif_compare(pair[0], pair[1]);
    return enif_make_tuple2(env, enif_make_int(env, order < 0 ? -1 : order > 0),
                            enif_make_int(env, enif_is_identical(pair[0], pair[1]) != 0));
}

/* "ERL_NIF_PHASH2: hash value similar to what is returned by erlang:phash2/2 ... salt is ignored"
 */
CASE(phash2)
{
    (void)argc;
    return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, IN, 42));
}

/* "Hashes term": the same for identical terms, whatever they were made of. */
CASE(internal_hash_of_a_copy)
{
    ErlNifEnv *other = enif_alloc_env();
    term copy = enif_make_copy(other, IN);
    int same = enif_hash(ERL_NIF_INTERNAL_HASH, IN, 5) == enif_hash(ERL_NIF_INTERNAL_HASH, copy, 5);

    (void)argc;
    enif_free_env(other);
    return boolean(env, same);
}

/* ---- atoms ---------------------------------------------------------------------------- */

/* "Writes a NULL-terminated string in the buffer pointed to by buf ... Returns the number of bytes
 * written (including terminating NULL character) or 0 if atom is not an atom with maximum length of
 * size-1 bytes in the specified encoding." */
CASE(atoms)
{
    struct results r = {.len = 0};
    unsigned len = 4711;

    (void)argc;
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

    (void)argc;
    enif_inspect_binary(env, IN, &bin);
    return enif_make_atom_len(env, (char *)bin.data, bin.size);
}

/* "Tries to create the term of an already existing atom ... Returns true on success or false." */
CASE(make_existing_atom)
{
    ErlNifBinary bin;
    term atom = enif_make_int(env, 0);

    (void)argc;
    enif_inspect_binary(env, IN, &bin);
    int found = enif_make_existing_atom_len(env, (char *)bin.data, bin.size, &atom, ERL_NIF_LATIN1);
    return enif_make_tuple2(env, enif_make_int(env, found), atom);
}

/* An atom's term is the same word whenever it is made. */
CASE(atoms_are_words)
{
    term a = enif_make_atom(env, "a_word_of_its_own"), b = enif_make_atom(env, "a_word_of_its_own");

    (void)argc, (void)argv;
    return boolean(env, a == b && enif_is_identical(a, b));
}

/* ---- strings -------------------------------------------------------------------------- */

/* "Writes a NULL-terminated string ... It returns one of the following: the number of bytes written
 * (including terminating NULL character); -size if the string was truncated because of buffer
 * space; 0 if list is not a string that can be encoded with encoding or if size was < 1. The
 * written string is always NULL-terminated, unless buffer size is < 1." */
CASE(get_string)
{
    struct results r = {.len = 0};

    (void)argc;
    for (unsigned size = 0; size < 8; size++) {
        char buffer[8];
        memset(buffer, '#', sizeof buffer);
        int got = enif_get_string(env, IN, buffer, size, ERL_NIF_LATIN1);
        add_int(env, &r, got);
        if (got != 0)
            add(&r, bytes(env, buffer, sizeof buffer));
    }
    return all(env, &r);
}

/* "Creates a list containing the characters of the NULL-terminated string." */
CASE(make_string)
{
    (void)argc, (void)argv;
    return enif_make_tuple3(env, enif_make_string(env, "", ERL_NIF_LATIN1),
                            enif_make_string(env, "a\xe9\xff", ERL_NIF_LATIN1),
                            enif_make_string_len(env, "a\0b", 3, ERL_NIF_LATIN1));
}

/* ---- lists and tuples ----------------------------------------------------------------- */

/* "Sets *len to the length of list and returns true. Returns false if term is not a proper list."
 * And "Sets *list to the reverse list"; and "Sets *head and *tail from list and returns true, or
 * false if it is not a list or the list is empty." */
CASE(lists)
{
    struct results r = {.len = 0};
    unsigned len = 99;
    term head = IN, tail = IN, reversed = enif_make_atom(env, "none");

    (void)argc;
    add_int(env, &r, enif_get_list_length(env, IN, &len) != 0);
    add_int(env, &r, enif_get_list_cell(env, IN, &head, &tail) != 0);
    add(&r, head);
    add(&r, tail);
    add_int(env, &r, enif_make_reverse_list(env, IN, &reversed) != 0);
    add(&r, reversed);
    return all(env, &r);
}

CASE(list_length)
{
    unsigned len = 0;

    (void)argc;
    enif_get_list_length(env, IN, &len);
    return enif_make_uint(env, len);
}

/* "Creates a list / a tuple containing the elements": of 0 to 9, by each function. */
CASE(make_lists_and_tuples)
{
    struct results r = {.len = 0};
    const term array[] = {IN, enif_make_int(env, 1), IN};

    (void)argc;
    add(&r, enif_make_list(env, 0));
    add(&r, enif_make_list1(env, IN));
    add(&r, enif_make_list3(env, IN, array[1], IN));
    add(&r, enif_make_list9(env, IN, IN, IN, IN, IN, IN, IN, IN, array[1]));
    add(&r, enif_make_list_from_array(env, array, 0));
    add(&r, enif_make_list_from_array(env, array, 3));
    add(&r, enif_make_list_cell(env, IN, array[1]));
    add(&r, enif_make_list_cell(env, IN, enif_make_list(env, 0)));
    add(&r, enif_make_tuple(env, 0));
    add(&r, enif_make_tuple1(env, IN));
    add(&r, enif_make_tuple9(env, IN, IN, IN, IN, IN, IN, IN, IN, array[1]));
    add(&r, enif_make_tuple_from_array(env, array, 0));
    add(&r, enif_make_tuple_from_array(env, array, 3));
    return all(env, &r);
}

/* "If term is a tuple, this function sets *array to point to an array containing the elements of
 * the tuple, and sets *arity to the number of elements." */
CASE(tuple_elements)
{
    const term *elements;
    int arity;

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &elements))
        return enif_make_atom(env, "no_tuple");
    return enif_make_list_from_array(env, elements, (unsigned)arity);
}

/* ---- binaries ------------------------------------------------------------------------- */

/* "Initializes the structure pointed to by bin with information about binary term bin_term. Returns
 * true on success, or false if bin_term is not a binary." And of iolists. */
CASE(inspect)
{
    struct results r = {.len = 0};
    ErlNifBinary bin;

    (void)argc;
    int ok = enif_inspect_binary(env, IN, &bin);
    add_int(env, &r, ok != 0);
    if (ok)
        add(&r, bytes(env, bin.data, bin.size));
    ok = enif_inspect_iolist_as_binary(env, IN, &bin);
    add_int(env, &r, ok != 0);
    if (ok) {
        add(&r, bytes(env, bin.data, bin.size));
        add(&r, enif_make_binary(env, &bin));
    }
    return all(env, &r);
}

/* "Ownership of the binary data is transferred to the created term ... bin is to be considered
 * read-only for the rest of the NIF call": it can still be read. */
CASE(make_binary_leaves_data_readable)
{
    ErlNifBinary bin;
    term a, b;

    (void)argc, (void)argv;
    enif_alloc_binary(200, &bin);
    memset(bin.data, 'x', 200);
    a = enif_make_binary(env, &bin);
    b = bytes(env, bin.data, bin.size);
    return enif_make_tuple2(env, a, b);
}

/* "Changes the size of a binary bin. The source binary can be read-only, in which case it is left
 * untouched and a mutable copy is allocated and assigned to *bin." */
CASE(realloc_binary)
{
    struct results r = {.len = 0};
    ErlNifBinary bin;

    (void)argc;
    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    size_t size = bin.size;
    add_int(env, &r, enif_realloc_binary(&bin, size + 100) != 0);
    memset(bin.data + size, 'y', 100);
    if (size > 0)
        bin.data[0] = 'z';
    add_int(env, &r, enif_realloc_binary(&bin, size + 50) != 0);
    add(&r, enif_make_binary(env, &bin));
    add(&r, IN);
    return all(env, &r);
}

/* "Releases a binary obtained from enif_alloc_binary": of one only looked at it does nothing. */
CASE(release_binary)
{
    ErlNifBinary bin, own;

    (void)argc;
    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    enif_release_binary(&bin);
    enif_alloc_binary(0, &own);
    enif_release_binary(&own);
    enif_alloc_binary(1000, &own);
    enif_release_binary(&own);
    return IN;
}

/* "Ownership of the binary data is transferred": what becomes of one whose data and size the
 * library has changed meanwhile is not said. IN: {Allocated, Moved, Size}. */
CASE(make_binary_moved)
{
    const term *in;
    int arity, allocated, moved, size;
    ErlNifBinary bin;

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 3 ||
        !enif_get_int(env, in[0], &allocated) || !enif_get_int(env, in[1], &moved) ||
        !enif_get_int(env, in[2], &size) || !enif_alloc_binary((size_t)allocated, &bin))
        return enif_make_badarg(env);
    for (int i = 0; i < allocated; i++)
        bin.data[i] = (unsigned char)i;
    bin.data += moved;
    bin.size = (size_t)size;
    term made = enif_make_binary(env, &bin);
    /* A small one is a copy. */
    if (size > 0 && size <= 64)
        bin.data[0] ^= 0xff;
    return made;
}

/* Many libraries end a text with a zero byte behind it; where it stands the VM has room. What comes
 * after is damaged when there is none: so the byte is not zero here. IN: size */
CASE(write_past_end)
{
    ErlNifBinary bins[50];
    struct results r = {.len = 0};
    unsigned size;

    (void)argc;
    if (!enif_get_uint(env, IN, &size))
        return enif_make_badarg(env);
    for (int i = 0; i < 50; i++) {
        enif_alloc_binary(i % 2 == 0 ? size : size / 2, &bins[i]);
        memset(bins[i].data, i, bins[i].size);
        bins[i].data[bins[i].size] = 0xff;
        if (i % 2 == 1)
            enif_realloc_binary(&bins[i], size);
        memset(bins[i].data, i, size);
        bins[i].data[size] = 0xff;
    }
    for (int i = 0; i < 50; i++) {
        if (i % 3 == 0)
            enif_release_binary(&bins[i]);
        else
            add(&r, enif_make_binary(env, &bins[i]));
    }
    return all(env, &r);
}

/* The same of what the environment owns, and of arguments: more than the VM has room for in each
 * case, so it is tried in a host only. IN: a list of binaries. */
CASE(write_past_arguments)
{
    term head, tail = IN, made[20];
    ErlNifBinary bin;
    int len = 0;

    (void)argc;
    while (enif_get_list_cell(env, tail, &head, &tail) && enif_inspect_binary(env, head, &bin)) {
        memset(bin.data + bin.size, 0xff, 7);
        if (len < 20) {
            unsigned char *data = enif_make_new_binary(env, bin.size, &made[len++]);
            memcpy(data, bin.data, bin.size);
            memset(data + bin.size, 0xff, 7);
        }
        if (enif_inspect_iolist_as_binary(env, enif_make_list1(env, head), &bin))
            memset(bin.data + bin.size, 0xff, 7);
        if (enif_term_to_binary(env, head, &bin)) {
            memset(bin.data + bin.size, 0xff, 7);
            enif_release_binary(&bin);
        }
    }
    return enif_make_tuple2(env, IN, enif_make_list_from_array(env, made, (unsigned)len));
}

/* A binary's bytes are where any type of C may be. IN: a list of binaries. */
CASE(alignment)
{
    struct results r = {.len = 0};
    term head, tail = IN;
    ErlNifBinary bin;

    (void)argc;
    while (enif_get_list_cell(env, tail, &head, &tail) && enif_inspect_binary(env, head, &bin))
        add_int(env, &r, (uintptr_t)bin.data % 8);
    return all(env, &r);
}

/* The locale's type of characters is that of the environment. */
CASE(multibyte)
{
    (void)argc, (void)argv;
    return enif_make_long(env, (long)mbstowcs(NULL, "\xc3\xa9", 0));
}

/* "Makes a subbinary of binary bin_term, starting at zero-based position pos with a length of size
 * bytes. bin_term must be a binary or bitstring. pos+size must be less or equal to the number of
 * whole bytes in bin_term." */
CASE(sub_binaries)
{
    struct results r = {.len = 0};
    ErlNifEnv *other = enif_alloc_env();
    ErlNifBinary bin;

    (void)argc;
    enif_inspect_binary(env, IN, &bin);
    add(&r, enif_make_sub_binary(env, IN, 0, bin.size));
    add(&r, enif_make_sub_binary(env, IN, bin.size, 0));
    add(&r, enif_make_sub_binary(env, IN, bin.size / 2, bin.size - bin.size / 2));
    term part = enif_make_sub_binary(env, IN, bin.size / 3, bin.size / 3);
    add(&r, enif_make_sub_binary(env, part, 0, bin.size / 6));
    add(&r, enif_make_copy(env, enif_make_copy(other, part)));
    enif_free_env(other);
    return all(env, &r);
}

/* "Allocates a binary of size size bytes and creates an owning term. The binary data is mutable
 * until the calling NIF returns." */
CASE(make_new_binary)
{
    term small, large;
    unsigned char *s = enif_make_new_binary(env, 3, &small);
    unsigned char *l = enif_make_new_binary(env, 3000, &large);
    term both = enif_make_tuple2(env, small, large);

    (void)argc, (void)argv;
    memcpy(s, "abc", 3);
    memset(l, 'l', 3000);
    return both;
}

/* ---- maps ----------------------------------------------------------------------------- */

/* "Makes a copy of map map_in and inserts key with value. If key already exists in map_in, the old
 * associated value is replaced by value"; update: "Returns true on success or false if map_in is
 * not a map or if it does not contain key"; remove: "If map map_in does not contain key, map_in is
 * returned". IN: {Map, Key, Value}. */
CASE(maps)
{
    struct results r = {.len = 0};
    const term *in;
    int arity;
    size_t size = 77;
    term out, none = enif_make_atom(env, "none");

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 3)
        return enif_make_badarg(env);
    add_int(env, &r, enif_get_map_size(env, in[0], &size) != 0);
    add_int(env, &r, (long)size);
    out = none;
    add_int(env, &r, enif_get_map_value(env, in[0], in[1], &out) != 0);
    add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_put(env, in[0], in[1], in[2], &out) != 0);
    add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_update(env, in[0], in[1], in[2], &out) != 0);
    if (out != 0)
        add(&r, out);
    out = none;
    add_int(env, &r, enif_make_map_remove(env, in[0], in[1], &out) != 0);
    add(&r, out);
    return all(env, &r);
}

static term iterate(ErlNifEnv *env, term map, ErlNifMapIteratorEntry from)
{
    ErlNifMapIterator iter;
    term key, value, list = enif_make_list(env, 0);

    if (!enif_map_iterator_create(env, map, &iter, from))
        return enif_make_atom(env, "no_map");
    list = enif_make_list_cell(
        env,
        enif_make_tuple2(env, boolean(env, enif_map_iterator_is_head(env, &iter)),
                         boolean(env, enif_map_iterator_is_tail(env, &iter))),
        list);
    while (enif_map_iterator_get_pair(env, &iter, &key, &value)) {
        list = enif_make_list_cell(env, enif_make_tuple2(env, key, value), list);
        if (from == ERL_NIF_MAP_ITERATOR_FIRST)
            enif_map_iterator_next(env, &iter);
        else
            enif_map_iterator_prev(env, &iter);
    }
    list = enif_make_list_cell(
        env,
        enif_make_tuple2(env, boolean(env, enif_map_iterator_is_head(env, &iter)),
                         boolean(env, enif_map_iterator_is_tail(env, &iter))),
        list);
    enif_map_iterator_destroy(env, &iter);
    return list;
}

/* "Creates an iterator for the map"; "from first to last", and from last to first. */
CASE(map_order)
{
    (void)argc;
    return enif_make_tuple2(env, iterate(env, IN, ERL_NIF_MAP_ITERATOR_FIRST),
                            iterate(env, IN, ERL_NIF_MAP_ITERATOR_LAST));
}

/* "Moves iterator: returns true if the iterator is pointing to a key-value pair": to and fro. */
CASE(map_walk)
{
    struct results r = {.len = 0};
    ErlNifMapIterator iter;
    term key, value;
    static const char moves[] = "nppnnpnnnnnnnnppppppppnn";

    (void)argc;
    if (!enif_map_iterator_create(env, IN, &iter, ERL_NIF_MAP_ITERATOR_FIRST))
        return enif_make_badarg(env);
    for (const char *move = moves; *move != '\0'; move++) {
        int moved =
            *move == 'n' ? enif_map_iterator_next(env, &iter) : enif_map_iterator_prev(env, &iter);
        add_int(env, &r, moved != 0);
        if (enif_map_iterator_get_pair(env, &iter, &key, &value))
            add(&r, key);
    }
    enif_map_iterator_destroy(env, &iter);
    return all(env, &r);
}

/* A map made key by key, of the list IN as keys: its order up to 32 keys is that of the keys. */
CASE(map_of_keys)
{
    term map = enif_make_new_map(env), head, tail = IN, ordered;

    (void)argc;
    while (enif_get_list_cell(env, tail, &head, &tail))
        enif_make_map_put(env, map, head, enif_make_int(env, 1), &map);
    size_t size;
    enif_get_map_size(env, map, &size);
    ordered = size <= 32 ? iterate(env, map, ERL_NIF_MAP_ITERATOR_FIRST) : enif_make_list(env, 0);
    return enif_make_tuple2(env, map, ordered);
}

/* "Makes a map term from the given keys and values ... returns false if there are any duplicate
 * keys." IN: keys. */
CASE(map_from_arrays)
{
    term keys[512], values[512], head, tail = IN, map = enif_make_atom(env, "none");
    size_t len = 0;

    (void)argc;
    while (len < 512 && enif_get_list_cell(env, tail, &head, &tail)) {
        keys[len] = head;
        values[len] = enif_make_ulong(env, len);
        len++;
    }
    int made = enif_make_map_from_arrays(env, keys, values, len, &map);
    return made ? map : enif_make_atom(env, "duplicate");
}

/* Older versions of a map stay as they were. */
CASE(maps_do_not_change)
{
    term versions[40], map = enif_make_new_map(env);

    (void)argc, (void)argv;
    for (int i = 0; i < 40; i++) {
        versions[i] = map;
        enif_make_map_put(env, map, enif_make_int(env, i), enif_make_int(env, i), &map);
    }
    for (int i = 0; i < 40; i += 7)
        enif_make_map_put(env, versions[i], enif_make_atom(env, "branch"), enif_make_int(env, i),
                          &versions[i]);
    return enif_make_list_from_array(env, versions, 40);
}

/* Terms of a process-independent environment, looked at in one call after the other. */
CASE(maps_of_another_environment)
{
    struct results r = {.len = 0};
    term value = IN;

    (void)argc;
    for (int i = 0; i < 2; i++) {
        term map = kept_maps[i];
        add_int(env, &r, enif_get_map_value(env, map, IN, &value) != 0);
        add(&r, enif_make_copy(env, value));
        if (i == 0)
            add(&r, iterate(env, map, ERL_NIF_MAP_ITERATOR_FIRST));
        add(&r, enif_make_copy(env, map));
    }
    return all(env, &r);
}

/* ---- exceptions ----------------------------------------------------------------------- */

/* "Makes a badarg exception to be returned from a NIF"; and "Returns true if a pending exception is
 * associated with env." */
CASE(badarg)
{
    term reason = 0;

    (void)argc, (void)argv;
    int before = enif_has_pending_exception(env, &reason);
    term raised = enif_make_badarg(env);
    int after = enif_has_pending_exception(env, NULL);
    int again = enif_has_pending_exception(env, &reason);
    if (before || !after || !again || !enif_is_exception(env, raised) ||
        !enif_is_identical(reason, enif_make_atom(env, "badarg")))
        return enif_make_atom(env, "wrong");
    return raised;
}

static int was_exception[2];

static term say_what_was(ErlNifEnv *env, int argc, const term argv[])
{
    (void)argc, (void)argv;
    return enif_make_tuple2(env, enif_make_int(env, was_exception[0]),
                            enif_make_int(env, was_exception[1]));
}

/* "Returns true if t is an exception": what enif_schedule_nif returns is none. */
CASE(scheduled_is_no_exception)
{
    term scheduled = enif_schedule_nif(env, "say_what_was", 0, say_what_was, argc, argv);

    was_exception[0] = enif_is_exception(env, scheduled) != 0;
    was_exception[1] = enif_has_pending_exception(env, NULL) != 0;
    return scheduled;
}

/* "If schedule_nif fails, it returns badarg": then it is one. */
CASE(not_scheduled_is_exception)
{
    term scheduled = enif_schedule_nif(env, "no such flag", 99, say_what_was, argc, argv);

    was_exception[0] = enif_is_exception(env, scheduled) != 0;
    was_exception[1] = enif_has_pending_exception(env, NULL) != 0;
    return scheduled;
}

CASE(was_exception_)
{
    return say_what_was(env, argc, argv);
}

/* "Creates an error exception with the term reason to be returned from a NIF." */
CASE(raise_reason)
{
    (void)argc;
    return enif_raise_exception(env, IN);
}

/* A pending exception wins, whatever the NIF returns. */
CASE(raise_and_return_another)
{
    (void)argc;
    enif_raise_exception(env, IN);
    return enif_make_atom(env, "not_this");
}

/* ---- schedule_nif --------------------------------------------------------------------- */

static term count_down(ErlNifEnv *env, int argc, const term argv[])
{
    int n;
    term next[2];

    if (argc != 2 || !enif_get_int(env, argv[0], &n))
        return enif_make_badarg(env);
    if (n <= 0)
        return argv[1];
    next[0] = enif_make_int(env, n - 1);
    next[1] = enif_make_list_cell(env, argv[0], argv[1]);
    return enif_schedule_nif(env, "count_down", 0, count_down, 2, next);
}

/* "Schedules NIF fp to execute ... the return value of enif_schedule_nif must be returned": argv is
 * copied at once, its terms stay valid. */
CASE(schedule)
{
    term next[] = {IN, enif_make_list(env, 0)};
    term result = enif_schedule_nif(env, "count_down", 0, count_down, 2, next);

    (void)argc;
    next[0] = next[1] = 0;
    return result;
}

static term types_of_threads(ErlNifEnv *env, int argc, const term argv[])
{
    (void)argc;
    return enif_make_list_cell(env, enif_make_int(env, enif_thread_type()), argv[0]);
}

/* "flags ... ERL_NIF_DIRTY_JOB_CPU_BOUND": the next one runs as if on a dirty scheduler. */
CASE(schedule_dirty)
{
    term types = enif_make_list1(env, enif_make_int(env, enif_thread_type()));

    (void)argc, (void)argv;
    return enif_schedule_nif(env, "types_of_threads", ERL_NIF_DIRTY_JOB_IO_BOUND, types_of_threads,
                             1, &types);
}

/* A chain that makes much garbage. IN: hops. */
static term garbage(ErlNifEnv *env, int argc, const term argv[])
{
    int n;
    term next[2], trash;

    if (argc != 2 || !enif_get_int(env, argv[0], &n))
        return enif_make_badarg(env);
    if (n == 0)
        return argv[1];
    memset(enif_make_new_binary(env, 60, &trash), 'g', 60);
    for (int i = 0; i < 10000; i++)
        trash = enif_make_list1(env, trash);
    next[0] = enif_make_int(env, n - 1);
    next[1] = argv[1];
    return enif_schedule_nif(env, "garbage", 0, garbage, 2, next);
}

CASE(schedule_garbage)
{
    term next[] = {IN,
                   enif_make_tuple2(env, IN, text(env, "kept through all hops, and not copied"))};

    (void)argc;
    return enif_schedule_nif(env, "garbage", 0, garbage, 2, next);
}

/* ---- resources ------------------------------------------------------------------------ */

static void count_dtor(ErlNifEnv *env, void *object)
{
    (void)env, (void)object;
    __atomic_add_fetch(&dtor_count, 1, __ATOMIC_SEQ_CST);
}

/* "Creates an opaque handle ... The obtained resource term can be passed to Erlang." */
CASE(resource_make)
{
    term *kept = enif_alloc_resource(plain_type, 64);

    (void)argc, (void)argv;
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

    (void)argc;
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

/* A reference that is no resource's. */
CASE(resource_terms_are_references)
{
    void *object = enif_alloc_resource(plain_type, 1);
    term a = enif_make_resource(env, object), b = enif_make_resource(env, object);

    (void)argc, (void)argv;
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

    (void)argc, (void)argv;
    enif_keep_resource(object);
    enif_release_resource(object);
    enif_release_resource(object);
    return boolean(env, dtor_count == before);
}

CASE(resource_destructors)
{
    (void)argc, (void)argv;
    return enif_make_int(env, __atomic_load_n(&dtor_count, __ATOMIC_SEQ_CST));
}

/* One whose end is counted; and one that the library keeps for itself and gives out again. */
CASE(resource_make_counted)
{
    void *object = enif_alloc_resource(counted_type, 100);
    term made = enif_make_resource(env, object);

    (void)argc, (void)argv;
    enif_release_resource(object);
    return made;
}

CASE(resource_kept)
{
    (void)argc, (void)argv;
    if (kept_object == NULL)
        kept_object = enif_alloc_resource(plain_type, 64);
    return enif_make_resource(env, kept_object);
}

/* "Creates a binary term that is memory-managed by a resource object." */
CASE(resource_binary)
{
    unsigned char *object = enif_alloc_resource(plain_type, 300);
    ErlNifEnv *other = enif_alloc_env();
    term made, copy;

    (void)argc, (void)argv;
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

    (void)argc;
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

/* "Creates or takes over a resource type" only "inside load": elsewhere it fails? The VM of today
 * lets only load and upgrade open types; what is opened in load is found by
 * enif_dynamic_resource_call. */
static void dyncall(ErlNifEnv *env, void *object, void *data)
{
    (void)env;
    *(int *)data = ((unsigned char *)object)[0] + 1;
}

CASE(resource_dynamic_call)
{
    unsigned char *object = enif_alloc_resource(dyn_type, 1);
    int data = 0;

    (void)argc, (void)argv;
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

/* ---- processes ------------------------------------------------------------------------ */

/* "Initializes the ErlNifPid variable at *pid to represent the calling process." */
CASE(self)
{
    ErlNifPid pid;

    (void)argc, (void)argv;
    if (enif_self(env, &pid) == NULL)
        return enif_make_atom(env, "none");
    return enif_make_pid(env, &pid);
}

/* "If term is the pid of a node local process ... returns true"; "enif_is_process_alive". */
CASE(pids)
{
    struct results r = {.len = 0};
    ErlNifPid pid, other;
    ErlNifPort port;

    (void)argc;
    if (enif_get_local_pid(env, IN, &pid)) {
        add_int(env, &r, 1);
        add_int(env, &r, enif_is_process_alive(env, &pid) != 0);
        add(&r, enif_make_pid(env, &pid));
        add_int(env, &r, enif_is_pid_undefined(&pid) != 0);
        other = pid;
        add_int(env, &r, enif_compare_pids(&pid, &other));
    } else if (enif_get_local_port(env, IN, &port)) {
        add_int(env, &r, 2);
        add_int(env, &r, enif_is_port_alive(env, &port) != 0);
    } else {
        add_int(env, &r, 0);
    }
    enif_set_pid_undefined(&pid);
    add_int(env, &r, enif_is_pid_undefined(&pid) != 0);
    add_int(env, &r, enif_is_current_process_alive(env) != 0);
    return all(env, &r);
}

/* "Looks up a process by its registered name." */
CASE(whereis)
{
    ErlNifPid pid;
    ErlNifPort port;
    int is_pid = enif_whereis_pid(env, IN, &pid), is_port = enif_whereis_port(env, IN, &port);

    (void)argc;
    return enif_make_tuple3(env, enif_make_int(env, is_pid != 0), enif_make_int(env, is_port != 0),
                            is_pid ? enif_make_pid(env, &pid) : enif_make_atom(env, "none"));
}

/* "Sends a message to a process ... msg_env is invalidated ... can be used again." IN: {Pid, Term}
 */
CASE(send)
{
    const term *in;
    int arity, ok = 1;
    ErlNifPid pid;
    ErlNifEnv *message = enif_alloc_env();

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid))
        return enif_make_badarg(env);
    for (int i = 0; i < 3; i++)
        ok &= enif_send(env, &pid, message,
                        enif_make_tuple2(message, enif_make_int(message, i),
                                         enif_make_copy(message, in[1]))) != 0;
    /* "msg_env NULL: the message is copied" */
    ok &= enif_send(env, &pid, NULL, in[1]) != 0;
    enif_free_env(message);
    return boolean(env, ok);
}

struct sender {
    ErlNifPid pid;
    ErlNifEnv *env;
    term message;
};

static void *send_main(void *arg)
{
    struct sender *sender = arg;

    enif_send(NULL, &sender->pid, sender->env, sender->message);
    return arg;
}

/* "caller_env NULL: from a thread that is no scheduler" */
CASE(send_from_thread)
{
    const term *in;
    int arity;
    struct sender sender = {.env = enif_alloc_env()};
    ErlNifTid tid;
    void *result = NULL;
    char name[] = "sender";

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &sender.pid))
        return enif_make_badarg(env);
    sender.message = enif_make_copy(sender.env, in[1]);
    int created = enif_thread_create(name, &tid, send_main, &sender, NULL);
    int joined = enif_thread_join(tid, &result);
    enif_free_env(sender.env);
    return boolean(env, created == 0 && joined == 0 && result == &sender);
}

/* "Creates a reference like erlang:make_ref/0" : unique. */
CASE(make_refs)
{
    term a = enif_make_ref(env), b = enif_make_ref(env);

    (void)argc, (void)argv;
    return enif_make_tuple3(env, enif_make_int(env, enif_is_ref(env, a) != 0),
                            enif_make_int(env, enif_is_identical(a, b) != 0),
                            enif_make_int(env, enif_is_identical(a, enif_make_copy(env, a))));
}

/* "Returns a unique integer with the same properties as specified by erlang:unique_integer/1." */
CASE(unique_integers)
{
    struct results r = {.len = 0};
    term last = enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC | ERL_NIF_UNIQUE_POSITIVE);

    (void)argc, (void)argv;
    add_int(env, &r, enif_compare(last, enif_make_int(env, 0)) > 0);
    for (int i = 0; i < 3; i++) {
        term next =
            enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC | ERL_NIF_UNIQUE_POSITIVE);
        add_int(env, &r, enif_compare(next, last) > 0);
        last = next;
    }
    add_int(env, &r, enif_is_number(env, enif_make_unique_integer(env, 0)) != 0);
    return all(env, &r);
}

/* "Works as erlang:port_command/2, except that it is always asynchronous." IN: {Port, Iodata} */
CASE(port_command)
{
    const term *in;
    int arity;
    ErlNifPort port;

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_port(env, in[0], &port))
        return enif_make_badarg(env);
    return enif_make_int(env, enif_port_command(env, &port, NULL, in[1]) != 0);
}

/* ---- monitors ------------------------------------------------------------------------- */

struct watch {
    ErlNifPid report_to;
    ErlNifMonitor monitor;
};

static void watched_is_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    struct watch *watch = object;
    ErlNifEnv *message = enif_alloc_env();
    int same = enif_compare_monitors(monitor, &watch->monitor);

    __atomic_add_fetch(&downs, 1, __ATOMIC_SEQ_CST);
    enif_send(env, &watch->report_to, message,
              enif_make_tuple3(message, enif_make_atom(message, "down"),
                               enif_make_pid(message, pid), enif_make_int(message, same)));
    enif_free_env(message);
}

/* "Starts monitoring a process from a resource. Returns 0 if the monitor is established, < 0 if no
 * down callback is specified, > 0 if the process is no longer alive." IN: {Pid, ReportTo} */
CASE(monitor)
{
    const term *in;
    int arity;
    ErlNifPid pid, report_to;
    struct watch *watch, *plain;

    (void)argc;
    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 ||
        !enif_get_local_pid(env, in[0], &pid) || !enif_get_local_pid(env, in[1], &report_to))
        return enif_make_badarg(env);
    watch = enif_alloc_resource(down_type, sizeof *watch);
    plain = enif_alloc_resource(plain_type, sizeof *plain);
    watch->report_to = report_to;
    int made = enif_monitor_process(env, watch, &pid, &watch->monitor);
    int refused = enif_monitor_process(env, plain, &pid, NULL);
    term handle = enif_make_resource(env, watch);
    enif_release_resource(watch);
    enif_release_resource(plain);
    return enif_make_tuple3(env, enif_make_int(env, made > 0 ? 1 : made),
                            enif_make_int(env, refused < 0), handle);
}

/* How often the callback has run. */
CASE(monitor_downs)
{
    (void)argc, (void)argv;
    return enif_make_int(env, downs);
}

/* "Cancels a monitor ... Returns 0 if the monitor was successfully identified and removed; a
 * non-zero value if the monitor could not be identified." IN: handle of monitor */
CASE(demonitor)
{
    void *object;

    (void)argc;
    if (!enif_get_resource(env, IN, down_type, &object))
        return enif_make_badarg(env);
    struct watch *watch = object;
    int first = enif_demonitor_process(env, watch, &watch->monitor);
    int second = enif_demonitor_process(env, watch, &watch->monitor);
    return enif_make_tuple2(env, enif_make_int(env, first), enif_make_int(env, second != 0));
}

/* ---- threads -------------------------------------------------------------------------- */

static void *wait_main(void *arg)
{
    (void)arg;
    enif_mutex_lock(mutex);
    flag = 1;
    enif_cond_broadcast(cond);
    while (flag != 2)
        enif_cond_wait(cond, mutex);
    flag = 3;
    enif_mutex_unlock(mutex);
    enif_thread_exit(&flag);
    return NULL;
}

/* Threads, mutexes, conditions as ErlDrv*: they work with each other, and have names. */
CASE(threads)
{
    struct results r = {.len = 0};
    char name[] = "waiter";
    ErlNifThreadOpts *options = enif_thread_opts_create(name);
    ErlNifTid tid;
    void *result = NULL;

    (void)argc, (void)argv;
    flag = 0;
    add_int(env, &r, options->suggested_stack_size);
    options->suggested_stack_size = 64;
    add_int(env, &r, enif_thread_create(name, &tid, wait_main, NULL, options));
    enif_thread_opts_destroy(options);
    add(&r, text(env, enif_thread_name(tid)));
    enif_mutex_lock(mutex);
    while (flag != 1)
        enif_cond_wait(cond, mutex);
    add_int(env, &r, enif_equal_tids(tid, enif_thread_self()) != 0);
    add_int(env, &r, enif_equal_tids(enif_thread_self(), enif_thread_self()) != 0);
    flag = 2;
    enif_cond_signal(cond);
    enif_mutex_unlock(mutex);
    add_int(env, &r, enif_thread_join(tid, &result));
    add_int(env, &r, result == &flag);
    add_int(env, &r, flag);
    add(&r, text(env, enif_mutex_name(mutex)));
    add(&r, text(env, enif_cond_name(cond)));
    return all(env, &r);
}

/* Locks: "trylock returns 0 on success, otherwise EBUSY". */
CASE(locks)
{
    struct results r = {.len = 0};
    char name[] = "rw";
    ErlNifRWLock *lock = enif_rwlock_create(name);

    (void)argc, (void)argv;
    add_int(env, &r, enif_mutex_trylock(mutex));
    add_int(env, &r, enif_mutex_trylock(mutex) != 0);
    enif_mutex_unlock(mutex);
    add_int(env, &r, enif_rwlock_tryrlock(lock));
    add_int(env, &r, enif_rwlock_tryrlock(lock));
    add_int(env, &r, enif_rwlock_tryrwlock(lock) != 0);
    enif_rwlock_runlock(lock);
    enif_rwlock_runlock(lock);
    add_int(env, &r, enif_rwlock_tryrwlock(lock));
    add_int(env, &r, enif_rwlock_tryrlock(lock) != 0);
    enif_rwlock_rwunlock(lock);
    enif_rwlock_rlock(lock);
    enif_rwlock_runlock(lock);
    enif_rwlock_rwlock(lock);
    enif_rwlock_rwunlock(lock);
    add(&r, text(env, enif_rwlock_name(lock)));
    enif_rwlock_destroy(lock);
    return all(env, &r);
}

/* Thread-specific data: "NULL if no data has been mapped to key for the calling thread". */
CASE(thread_specific_data)
{
    struct results r = {.len = 0};
    ErlNifTSDKey key, other;
    char name[] = "key";

    (void)argc, (void)argv;
    add_int(env, &r, enif_tsd_key_create(name, &key));
    add_int(env, &r, enif_tsd_key_create(name, &other));
    add_int(env, &r, key != other);
    add_int(env, &r, enif_tsd_get(key) == NULL);
    enif_tsd_set(key, &flag);
    add_int(env, &r, enif_tsd_get(key) == &flag);
    add_int(env, &r, enif_tsd_get(other) == NULL);
    enif_tsd_set(key, NULL);
    add_int(env, &r, enif_tsd_get(key) == NULL);
    enif_tsd_key_destroy(key);
    enif_tsd_key_destroy(other);
    return all(env, &r);
}

static void *type_main(void *arg)
{
    *(int *)arg = enif_thread_type();
    return arg;
}

/* "Determines the type of currently executing thread": "a positive value: scheduler thread", 0: not
 * one. */
CASE(thread_types)
{
    int own = enif_thread_type(), other = -1;
    char name[] = "type";
    ErlNifTid tid;

    (void)argc, (void)argv;
    enif_thread_create(name, &tid, type_main, &other, NULL);
    enif_thread_join(tid, NULL);
    return enif_make_tuple2(env, enif_make_int(env, own), enif_make_int(env, other));
}

/* ---- time ----------------------------------------------------------------------------- */

/* "Converts the val value of time unit from to the corresponding value of time unit to. The result
 * is rounded using the floor function." */
CASE(convert_time)
{
    struct results r = {.len = 0};
    const ErlNifTime values[] = {0,    1,     -1,    999,           1000,
                                 -999, -1000, -1001, 1234567890123, -1234567890123};
    const ErlNifTimeUnit units[] = {ERL_NIF_SEC, ERL_NIF_MSEC, ERL_NIF_USEC, ERL_NIF_NSEC};

    (void)argc, (void)argv;
    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        for (int from = 0; from < 4; from++) {
            for (int to = 0; to <= from; to++)
                add_int(env, &r, enif_convert_time_unit(values[v], units[from], units[to]));
        }
    }
    add_int(env, &r, enif_convert_time_unit(5, ERL_NIF_SEC, ERL_NIF_NSEC));
    add_int(env, &r,
            enif_convert_time_unit(5, (ErlNifTimeUnit)77, ERL_NIF_NSEC) == ERL_NIF_TIME_ERROR);
    return all(env, &r);
}

/* Monotonic time, and its offset to system time, in milliseconds: for the test to hold against the
 * VM's own. */
CASE(clocks)
{
    (void)argc, (void)argv;
    return enif_make_tuple3(
        env, enif_make_long(env, enif_monotonic_time(ERL_NIF_MSEC)),
        enif_make_long(env, enif_time_offset(ERL_NIF_MSEC)),
        enif_make_int(env, enif_monotonic_time((ErlNifTimeUnit)77) == ERL_NIF_TIME_ERROR));
}

static void *time_main(void *arg)
{
    *(int *)arg = enif_monotonic_time(ERL_NIF_SEC) == ERL_NIF_TIME_ERROR;
    return arg;
}

/* "Returns ERL_NIF_TIME_ERROR if called with an invalid time unit argument, or if called from a
 * thread that is not a scheduler thread." */
CASE(clock_of_other_thread)
{
    int error = -1;
    char name[] = "time";
    ErlNifTid tid;

    (void)argc, (void)argv;
    enif_thread_create(name, &tid, time_main, &error, NULL);
    enif_thread_join(tid, NULL);
    return enif_make_int(env, error);
}

/* ---- print ---------------------------------------------------------------------------- */

/* "Similar to snprintf but this format string also accepts "%T", which formats Erlang terms." */
CASE(print_term)
{
    static char buffer[100000];

    (void)argc;
    int len = enif_snprintf(buffer, sizeof buffer, "%T", IN);
    return enif_make_tuple2(env, enif_make_int(env, len), text(env, buffer));
}

CASE(print_formats)
{
    struct results r = {.len = 0};
    char b[200];

    (void)argc;
    enif_snprintf(b, sizeof b, "%d %5d|%-5d|%05d %u %lu %ld %x %X %o %c %s %%", -1, 42, 42, 42, 7u,
                  8ul, -9l, 255, 255, 8, 'c', "string");
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%10s|%-10s|%.3s|%*d|%-*d|", "right", "left", "cut off", 6, 1, 6, 2);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%lld %llu", -1ll, 18446744073709551615ull);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%f %.2f %e", 1.5, 2.555, 1e10);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "<%T> and <%T>", IN, enif_make_int(env, 3));
    add(&r, text(env, b));
    memset(b, '#', sizeof b);
    add_int(env, &r, enif_snprintf(b, 5, "0123456789"));
    add(&r, bytes(env, b, 8));
    return all(env, &r);
}

/* ---- system --------------------------------------------------------------------------- */

/* "Same as the driver function driver_system_info." */
CASE(system_info)
{
    ErlNifSysInfo info;

    (void)argc, (void)argv;
    memset(&info, 0xff, sizeof info);
    enif_system_info(&info, sizeof info);
    return enif_make_list9(
        env, text(env, info.erts_version), text(env, info.otp_release),
        enif_make_int(env, info.thread_support), enif_make_int(env, info.smp_support),
        enif_make_int(env, info.async_threads), enif_make_int(env, info.scheduler_threads),
        enif_make_int(env, info.nif_major_version), enif_make_int(env, info.nif_minor_version),
        enif_make_int(env, info.dirty_scheduler_support));
}

/* "Returns 0 on success; < 0 if key is not found; > 0 if the buffer is too small, and *value_size
 * is then the size needed." */
CASE(getenv_)
{
    struct results r = {.len = 0};
    char value[100] = "";
    size_t size = sizeof value;

    (void)argc, (void)argv;
    add_int(env, &r, enif_getenv("TAME_CONTRACT", value, &size));
    add_int(env, &r, (long)size);
    add(&r, text(env, value));
    size = 3;
    int small = enif_getenv("TAME_CONTRACT", value, &size);
    add_int(env, &r, small > 0);
    size = sizeof value;
    add_int(env, &r, enif_getenv("TAME_NO_SUCH_NAME", value, &size) < 0);
    return all(env, &r);
}

/* Memory: "Returns NULL if the allocation fails"; sizes of 0. */
CASE(memory)
{
    char *p = enif_alloc(10);

    (void)argc, (void)argv;
    memcpy(p, "012345678", 10);
    p = enif_realloc(p, 100000);
    int same = strcmp(p, "012345678") == 0;
    enif_free(p);
    enif_free(NULL);
    p = enif_realloc(NULL, 5);
    enif_free(p);
    return boolean(env, same && enif_alloc(SIZE_MAX / 2) == NULL);
}

/* "Returns the pointer to the private data that was set by load." */
CASE(private_data)
{
    (void)argc, (void)argv;
    return enif_make_copy(env, *(term *)((char *)enif_priv_data(env) + sizeof(ErlNifEnv *)));
}

/* "dlsym": a symbol of this library's own, through the program. */
static void note_error(void *arg, const char *message)
{
    *(int *)arg = message != NULL;
}

CASE(dynamic_libraries)
{
    int reported = 0;
    void *none = enif_dlopen("/no/such/library", note_error, &reported);

    (void)argc, (void)argv;
    return enif_make_tuple2(env, enif_make_int(env, none == NULL), enif_make_int(env, reported));
}

/* "percent ... the function returns 1 if the timeslice is exhausted": a little never is at once. */
CASE(consume_timeslice)
{
    (void)argc, (void)argv;
    return enif_make_int(env, enif_consume_timeslice(env, 1));
}

/* ---- what no test compares: it goes wrong --------------------------------------------- */

/* Its name stands in a backtrace. */
__attribute__((noinline)) int contract_faults(volatile int *place)
{
    *place = 1;
    return 2 * *place; /* so that it is no tail of its caller */
}

CASE(crash_segv)
{
    UNUSED;
    return (term)contract_faults((volatile int *)8) + 1;
}

static term never(void)
{
    for (;;)
        pause();
    return 0;
}

static void *fault_main(void *arg)
{
    (void)contract_faults(arg);
    return arg;
}

/* A thread of the library's own faults, while no call runs on it. */
CASE(crash_thread)
{
    char name[] = "faults";
    ErlNifTid tid;

    UNUSED;
    enif_thread_create(name, &tid, fault_main, (void *)8, NULL);
    return never();
}

static void *overflow_main(void *arg)
{
    volatile char frame[4096];
    frame[0] = 1;
    return arg == NULL ? NULL : (char *)overflow_main(arg) + frame[0];
}

CASE(crash_thread_stack)
{
    char name[] = "overflows";
    ErlNifTid tid;

    UNUSED;
    enif_thread_create(name, &tid, overflow_main, (void *)8, NULL);
    return never();
}

/* Threads that fault at the same time. */
CASE(crash_many)
{
    char name[] = "faults";
    ErlNifTid tid;

    UNUSED;
    for (int i = 0; i < 20; i++)
        enif_thread_create(name, &tid, fault_main, (void *)8, NULL);
    return never();
}

/* The stack pointer points to nothing: a walk over the stack faults as well. */
CASE(crash_without_stack)
{
    UNUSED;
#if defined(__x86_64__)
    __asm__ volatile("mov $16, %%rsp\n mov $16, %%rbp\n push %%rax" ::: "memory");
#elif defined(__aarch64__)
    __asm__ volatile("mov x9, #16\n mov sp, x9\n mov x29, x9\n str x9, [sp]" ::: "memory");
#endif
    raise(SIGSEGV);
    return 0;
}

/* A call of what is no code. */
CASE(crash_jump)
{
    term (*volatile nowhere)(ErlNifEnv *) = NULL;
    UNUSED;
    return nowhere(env) + 1;
}

CASE(crash_kill)
{
    UNUSED;
    raise(SIGKILL);
    return 0;
}

/* A child that the library forks dies of a signal: that is no crash of the host's. */
CASE(crash_of_child)
{
    int status = 0;
    pid_t child = fork();

    (void)argc, (void)argv;
    if (child == 0)
        (void)contract_faults((volatile int *)8);
    waitpid(child, &status, 0);
    return enif_make_int(env, WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

/* The memory that host and guard share, filled with what no host would write; life/crash.h
 * has its layout: signal, address, writing_frame. */
CASE(forge_record)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512];
    unsigned long from, to;
    int found = 0;

    UNUSED;
    while (maps != NULL && fgets(line, sizeof line, maps) != NULL) {
        if (strstr(line, "rw-s") == NULL || strstr(line, "/dev/zero") == NULL ||
            sscanf(line, "%lx-%lx", &from, &to) != 2)
            continue;
        memset((void *)from, 0xff, to - from);
        *(int *)from = SIGKILL;
        *(int *)(from + 16) = 0;
        found = 1;
    }
    raise(found ? SIGKILL : SIGTERM);
    return 0;
}

/* IN: what to say on standard output and on standard error, without an end of line. */
CASE(say)
{
    ErlNifBinary bin;

    (void)argc;
    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    printf("out %.*s\n", (int)bin.size, (char *)bin.data);
    fprintf(stderr, "err %.*s\n", (int)bin.size, (char *)bin.data);
    return enif_make_atom(env, "ok");
}

/* Two processes that outlive this one if nobody ends them: an ordinary one and a daemon. */
CASE(start_children)
{
    term pids[2];

    (void)argc, (void)argv;
    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i == 1)
                setsid();
            execlp("sleep", "sleep", "1000", NULL);
            _exit(1);
        }
        pids[i] = enif_make_int(env, child);
    }
    return enif_make_list_from_array(env, pids, 2);
}

CASE(crash_fpe)
{
    volatile int zero = 0;
    UNUSED;
    return (term)(7 / zero); /* of 1, gcc makes a comparison */
}

CASE(crash_abort)
{
    UNUSED;
    abort();
}

CASE(crash_exit)
{
    UNUSED;
    exit(23);
}

CASE(crash_stack)
{
    volatile char frame[4096];
    frame[0] = 1;
    return argc < 0 ? 0 : crash_stack(env, argc, argv) + (term)frame[0];
}

CASE(hang_with_signals_blocked)
{
    sigset_t every;

    UNUSED;
    sigfillset(&every);
    pthread_sigmask(SIG_BLOCK, &every, NULL);
    for (volatile unsigned i = 0; i < 1; i &= 0) {
    }
    return 0;
}

CASE(hang_until_cancelled)
{
    (void)argc, (void)argv;
    while (enif_is_current_process_alive(env) && !enif_consume_timeslice(env, 1)) {
    }
    return enif_make_atom(env, "cancelled");
}

/* Blocks until open_gate is called, by another thread therefore. */
CASE(wait_for_gate)
{
    (void)argc, (void)argv;
    enif_mutex_lock(mutex);
    while (flag != 100)
        enif_cond_wait(cond, mutex);
    flag = 0;
    enif_mutex_unlock(mutex);
    return enif_make_atom(env, "opened");
}

CASE(open_gate)
{
    (void)argc, (void)argv;
    enif_mutex_lock(mutex);
    flag = 100;
    enif_cond_broadcast(cond);
    enif_mutex_unlock(mutex);
    return enif_make_atom(env, "ok");
}

/* ---- the table ------------------------------------------------------------------------ */

#define ROW(name)         \
    {                     \
#name, 1, name, 0 \
    }

static ErlNifFunc functions[] = {
    ROW(echo),
    ROW(copy_there_and_back),
    ROW(clear_env_and_use_again),
    ROW(term_to_binary),
    ROW(binary_to_term),
    ROW(binary_to_term_safe),
    ROW(types),
    ROW(numbers),
    ROW(make_numbers),
    ROW(make_double_infinite),
    ROW(make_double_nan),
    ROW(order),
    ROW(phash2),
    ROW(internal_hash_of_a_copy),
    ROW(atoms),
    ROW(make_atom_of_binary),
    ROW(make_existing_atom),
    ROW(atoms_are_words),
    ROW(get_string),
    ROW(make_string),
    ROW(lists),
    ROW(list_length),
    ROW(make_lists_and_tuples),
    ROW(tuple_elements),
    ROW(inspect),
    ROW(make_binary_leaves_data_readable),
    ROW(realloc_binary),
    ROW(release_binary),
    ROW(sub_binaries),
    ROW(make_new_binary),
    ROW(maps),
    ROW(map_order),
    ROW(map_walk),
    ROW(map_of_keys),
    ROW(map_from_arrays),
    ROW(maps_do_not_change),
    ROW(maps_of_another_environment),
    ROW(badarg),
    ROW(raise_reason),
    ROW(raise_and_return_another),
    ROW(schedule),
    ROW(schedule_dirty),
    ROW(schedule_garbage),
    ROW(resource_make),
    ROW(resource_get),
    ROW(resource_terms_are_references),
    ROW(resource_destructor_is_not_called_inside),
    ROW(resource_destructors),
    ROW(resource_binary),
    ROW(resource_dynamic_call),
    ROW(self),
    ROW(pids),
    ROW(whereis),
    ROW(send),
    ROW(send_from_thread),
    ROW(make_refs),
    ROW(unique_integers),
    ROW(port_command),
    ROW(monitor),
    ROW(demonitor),
    ROW(threads),
    ROW(locks),
    ROW(thread_specific_data),
    ROW(thread_types),
    ROW(convert_time),
    ROW(clocks),
    ROW(clock_of_other_thread),
    ROW(print_term),
    ROW(print_formats),
    ROW(system_info),
    ROW(getenv_),
    ROW(memory),
    ROW(private_data),
    ROW(dynamic_libraries),
    ROW(consume_timeslice),
    ROW(make_binary_moved),
    ROW(write_past_end),
    ROW(write_past_arguments),
    ROW(alignment),
    ROW(multibyte),
    ROW(scheduled_is_no_exception),
    ROW(not_scheduled_is_exception),
    ROW(was_exception_),
    ROW(resource_binary_is_resource),
    ROW(monitor_downs),
    ROW(crash_thread),
    ROW(crash_thread_stack),
    ROW(crash_many),
    ROW(crash_without_stack),
    ROW(crash_jump),
    ROW(crash_kill),
    ROW(crash_of_child),
    ROW(forge_record),
    ROW(say),
    ROW(start_children),
    ROW(crash_segv),
    ROW(crash_fpe),
    ROW(crash_abort),
    ROW(crash_exit),
    ROW(crash_stack),
    ROW(hang_with_signals_blocked),
    ROW(hang_until_cancelled),
    ROW(wait_for_gate),
    ROW(open_gate),
    ROW(resource_make_counted),
    ROW(resource_kept),
    {"thread_types_dirty_cpu", 1, thread_types, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"thread_types_dirty_io", 1, thread_types, ERL_NIF_DIRTY_JOB_IO_BOUND},
};

/* The private data: an environment and load_info in it. */
static int load(ErlNifEnv *env, void **priv_data, term load_info)
{
    struct {
        ErlNifEnv *env;
        term info;
    } *data = enif_alloc(sizeof *data);
    char mutex_name[] = "contract mutex", cond_name[] = "contract cond";
    ErlNifResourceFlags tried;
    ErlNifResourceTypeInit down_init = {.down = watched_is_down};
    ErlNifResourceTypeInit dyn_init = {.members = 4, .dyncall = dyncall};

    data->env = enif_alloc_env();
    data->info = enif_make_copy(data->env, load_info);
    *priv_data = data;
    for (int i = 0; i < 2; i++) {
        kept_maps[i] = enif_make_new_map(data->env);
        for (int key = i == 0 ? 20 : 100; key > 0; key--)
            enif_make_map_put(data->env, kept_maps[i], enif_make_int(data->env, key),
                              enif_make_int(data->env, -key), &kept_maps[i]);
    }
    mutex = enif_mutex_create(mutex_name);
    cond = enif_cond_create(cond_name);
    plain_type = enif_open_resource_type(env, NULL, "plain", NULL, ERL_NIF_RT_CREATE, &tried);
    if (tried != ERL_NIF_RT_CREATE)
        return 1;
    counted_type = enif_open_resource_type(env, NULL, "counted", count_dtor,
                                           ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, &tried);
    if (tried != ERL_NIF_RT_CREATE)
        return 2;
    down_type = enif_open_resource_type_x(env, "down", &down_init, ERL_NIF_RT_CREATE, NULL);
    dyn_type = enif_init_resource_type(env, "dyn", &dyn_init, ERL_NIF_RT_CREATE, NULL);
    if (enif_open_resource_type(env, NULL, "none", NULL, ERL_NIF_RT_TAKEOVER, &tried) != NULL)
        return 3;
    return plain_type == NULL || counted_type == NULL || down_type == NULL || dyn_type == NULL;
}

static void unload(ErlNifEnv *env, void *priv_data)
{
    (void)env;
    enif_free_env(*(ErlNifEnv **)priv_data);
    enif_free(priv_data);
    enif_mutex_destroy(mutex);
    enif_cond_destroy(cond);
}

ERL_NIF_INIT(contract_nif, functions, load, NULL, NULL, unload)
