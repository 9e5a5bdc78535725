/* The atom table, see atom.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"
#include "term/atom.h"

#define ATOM_HEADS_LEN 65536
#define ATOM_BLOCK_LEN 4096
#define ATOM_BLOCKS_LEN 4096

static struct {
    pthread_mutex_t lock; /* for adding */
    _Atomic(struct atom *) heads[ATOM_HEADS_LEN];
    struct atom **blocks[ATOM_BLOCKS_LEN];
    size_t len;
} table = {.lock = PTHREAD_MUTEX_INITIALIZER};

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
        atomic_load_explicit(&table.heads[hash % ATOM_HEADS_LEN], memory_order_acquire);

    while (atom != NULL &&
           (atom->hash != hash || atom->size != size || memcmp(atom->name, name, size) != 0))
        atom = atom->next;
    return atom;
}

struct atom *atom_of(term t)
{
    size_t index = t >> 6;

    return table.blocks[index / ATOM_BLOCK_LEN][index % ATOM_BLOCK_LEN];
}

static struct atom *add(const unsigned char *name, size_t size, uint64_t hash, int declared)
{
    size_t index = table.len;
    int latin1, chars = count_chars(name, size, &latin1);

    if (chars < 0 || chars > ATOM_CHARS_MAX)
        return NULL;
    if (index / ATOM_BLOCK_LEN >= ATOM_BLOCKS_LEN)
        host_die("more than %d atoms", ATOM_BLOCKS_LEN * ATOM_BLOCK_LEN);
    if (table.blocks[index / ATOM_BLOCK_LEN] == NULL)
        table.blocks[index / ATOM_BLOCK_LEN] = host_malloc(ATOM_BLOCK_LEN * sizeof(void *));

    struct atom *atom = host_malloc(sizeof *atom + size + 1);
    *atom = (struct atom){.next = table.heads[hash % ATOM_HEADS_LEN],
                          .hash = hash,
                          .word = (term)index << 6 | 0xb,
                          .declared = declared,
                          .size = (unsigned short)size,
                          .chars = (unsigned short)chars,
                          .latin1 = latin1 != 0};
    memcpy(atom->name, name, size);
    atom->name[size] = '\0';
    table.blocks[index / ATOM_BLOCK_LEN][index % ATOM_BLOCK_LEN] = atom;
    table.len++;
    atomic_store_explicit(&table.heads[hash % ATOM_HEADS_LEN], atom, memory_order_release);
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
        pthread_mutex_lock(&table.lock);
        atom = find(utf8, size, hash);
        if (atom == NULL)
            atom = add(utf8, size, hash, declared);
        pthread_mutex_unlock(&table.lock);
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

term atom_named(const char *utf8)
{
    return atom_make((const unsigned char *)utf8, strlen(utf8), 1);
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
