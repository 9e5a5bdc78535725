/* The atom table (see atom.h), and the functions of the API on atoms. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "env.h"
#include "host.h"
#include "query.h"

size_t latin1_to_utf8(const unsigned char *latin1, size_t size, unsigned char *utf8)
{
    size_t out = 0;

    for (size_t i = 0; i < size; i++) {
        if (latin1[i] < 0x80) {
            utf8[out++] = latin1[i];
        } else {
            utf8[out++] = (unsigned char)(0xc0 | latin1[i] >> 6);
            utf8[out++] = (unsigned char)(0x80 | (latin1[i] & 0x3f));
        }
    }
    return out;
}

/* The number of characters, or -1: not UTF-8. *latin1: all are below 256. */
static int count_chars(const unsigned char *utf8, size_t size, int *latin1)
{
    int chars = 0;

    *latin1 = 1;
    for (size_t i = 0; i < size; chars++) {
        unsigned char c = utf8[i];
        size_t more = c < 0x80 ? 0 : c < 0xc2 ? 9 : c < 0xe0 ? 1 : c < 0xf0 ? 2 : c < 0xf5 ? 3 : 9;

        if (more > 3 || more >= size - i)
            return -1;
        for (size_t j = 1; j <= more; j++) {
            if ((utf8[i + j] & 0xc0) != 0x80)
                return -1;
        }
        if ((c == 0xe0 && utf8[i + 1] < 0xa0) || (c == 0xf0 && utf8[i + 1] < 0x90) ||
            (c == 0xf4 && utf8[i + 1] >= 0x90) || (c == 0xed && utf8[i + 1] >= 0xa0))
            return -1;
        if (c > 0xc3)
            *latin1 = 0;
        i += 1 + more;
    }
    return chars;
}

static uint64_t hash_name(const unsigned char *name, size_t size)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        hash = (hash ^ name[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 29;
}

static struct atom *find(const unsigned char *name, size_t size, uint64_t hash)
{
    struct atom *atom =
        atomic_load_explicit(&host.atoms.heads[hash % ATOM_HEADS_LEN], memory_order_acquire);

    while (atom != NULL &&
           (atom->hash != hash || atom->size != size || memcmp(atom->name, name, size) != 0))
        atom = atom->next;
    return atom;
}

struct atom *atom_of(term t)
{
    size_t index = t >> 6;

    return host.atoms.blocks[index / ATOM_BLOCK_LEN][index % ATOM_BLOCK_LEN];
}

static struct atom *add(const unsigned char *name, size_t size, uint64_t hash, int declared)
{
    struct atom_table *table = &host.atoms;
    size_t index = table->len;
    int latin1, chars = count_chars(name, size, &latin1);

    if (chars < 0 || chars > ATOM_CHARS_MAX)
        return NULL;
    if (index / ATOM_BLOCK_LEN >= ATOM_BLOCKS_LEN)
        host_die("more than %d atoms", ATOM_BLOCKS_LEN * ATOM_BLOCK_LEN);
    if (table->blocks[index / ATOM_BLOCK_LEN] == NULL)
        table->blocks[index / ATOM_BLOCK_LEN] = host_malloc(ATOM_BLOCK_LEN * sizeof(void *));

    struct atom *atom = host_malloc(sizeof *atom + size + 1);
    *atom = (struct atom){.next = table->heads[hash % ATOM_HEADS_LEN],
                          .hash = hash,
                          .word = (term)index << 6 | 0xb,
                          .declared = declared,
                          .size = (unsigned short)size,
                          .chars = (unsigned short)chars,
                          .latin1 = latin1 != 0};
    memcpy(atom->name, name, size);
    atom->name[size] = '\0';
    table->blocks[index / ATOM_BLOCK_LEN][index % ATOM_BLOCK_LEN] = atom;
    table->len++;
    atomic_store_explicit(&table->heads[hash % ATOM_HEADS_LEN], atom, memory_order_release);
    return atom;
}

term atom_make(const unsigned char *utf8, size_t size, int declared)
{
    uint64_t hash;
    struct atom *atom;

    if (size > ATOM_BYTES_MAX)
        return TERM_NONE;
    hash = hash_name(utf8, size);
    atom = find(utf8, size, hash);
    if (atom == NULL) {
        pthread_mutex_lock(&host.atoms.lock);
        atom = find(utf8, size, hash);
        if (atom == NULL)
            atom = add(utf8, size, hash, declared);
        pthread_mutex_unlock(&host.atoms.lock);
        if (atom == NULL)
            return TERM_NONE;
    }
    if (declared && !atom->declared)
        atom->declared = 1;
    return atom->word;
}

term atom_make_latin1(const unsigned char *latin1, size_t size, int declared)
{
    unsigned char utf8[2 * ATOM_CHARS_MAX];

    if (size > ATOM_CHARS_MAX)
        return TERM_NONE;
    return atom_make(utf8, latin1_to_utf8(latin1, size, utf8), declared);
}

term atom_find(const unsigned char *utf8, size_t size)
{
    struct atom *atom = size > ATOM_BYTES_MAX ? NULL : find(utf8, size, hash_name(utf8, size));

    return atom == NULL ? TERM_NONE : atom->word;
}

void atom_init(void)
{
#define X(id, name) atom_make((const unsigned char *)name, sizeof name - 1, 1);
    ATOMS(X)
#undef X
}

/* The order of the characters, which is the order of the bytes of UTF-8. */
int atom_compare(term a, term b)
{
    struct atom *x = atom_of(a), *y = atom_of(b);
    int order = memcmp(x->name, y->name, x->size < y->size ? x->size : y->size);

    return order != 0 ? order : (int)x->size - (int)y->size;
}

/* ---- the API -------------------------------------------------------------------------- */

ERL_NIF_TERM enif_make_atom_len(ErlNifEnv *env, const char *name, size_t len)
{
    term atom = atom_make_latin1((const unsigned char *)name, len, 0);

    return atom == TERM_NONE ? enif_make_badarg(env) : atom;
}

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom_len(env, name, strlen(name));
}

/* Whether the encoding is one that this header knows. From 2.17 on, UTF-8 is. */
static int known_encoding(ErlNifCharEncoding encoding)
{
#if ERL_NIF_MINOR_VERSION >= 17
    if (encoding == ERL_NIF_UTF8)
        return 1;
#endif
    return encoding == ERL_NIF_LATIN1;
}

int enif_make_existing_atom_len(ErlNifEnv *env, const char *name, size_t len, ERL_NIF_TERM *atom,
                                ErlNifCharEncoding encoding)
{
    unsigned char utf8[2 * ATOM_CHARS_MAX];
    size_t size = len;

    (void)env;
    if (!known_encoding(encoding) ||
        len > (encoding == ERL_NIF_LATIN1 ? ATOM_CHARS_MAX : sizeof utf8))
        return 0;
    if (encoding == ERL_NIF_LATIN1)
        size = latin1_to_utf8((const unsigned char *)name, len, utf8);
    else
        memcpy(utf8, name, len);
    term here = atom_find(utf8, size);
    if (here == TERM_NONE) {
        if (!query_existing_atom(utf8, size))
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

#if ERL_NIF_MINOR_VERSION >= 17
int enif_make_new_atom_len(ErlNifEnv *env, const char *name, size_t len, ERL_NIF_TERM *atom,
                           ErlNifCharEncoding encoding)
{
    (void)env;
    if (!known_encoding(encoding))
        return 0;
    term made = encoding == ERL_NIF_LATIN1 ? atom_make_latin1((const unsigned char *)name, len, 0)
                                           : atom_make((const unsigned char *)name, len, 0);
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
