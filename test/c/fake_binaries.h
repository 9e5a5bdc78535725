/* As much of erl_nif.h as tame/output.h needs: binaries whose memory is malloc's, counted, and fails when
 * a test says so; one term at a time. For one file per program. */
#ifndef TEST_FAKE_BINARIES_H
#define TEST_FAKE_BINARIES_H

#include <erl_nif.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static int allocations;           /* that live */
static size_t allocated;          /* bytes of binaries since the test began */
static int fails_at = -1;         /* how many allocations succeed before all fail; -1: none fails */
static size_t largest = SIZE_MAX; /* a binary larger than this is not given */

static int memory_left(void)
{
    if (fails_at == 0)
        return 0;
    fails_at -= fails_at > 0;
    return 1;
}

void *enif_alloc(size_t size)
{
    void *memory = memory_left() ? malloc(size) : NULL;

    allocations += memory != NULL;
    return memory;
}

void enif_free(void *memory)
{
    allocations -= memory != NULL;
    free(memory);
}

int enif_alloc_binary(size_t size, ErlNifBinary *binary)
{
    if (size > largest || !memory_left())
        return 0;
    binary->size = size;
    binary->data = malloc(size);
    if (binary->data == NULL)
        abort();
    allocations++;
    allocated += size;
    return 1;
}

int enif_realloc_binary(ErlNifBinary *binary, size_t size)
{
    unsigned char *data = realloc(binary->data, size);

    if (data == NULL && size > 0)
        return 0;
    binary->data = data;
    binary->size = size;
    return 1;
}

void enif_release_binary(ErlNifBinary *binary)
{
    allocations--;
    free(binary->data);
}

/* The only term: the binary that became one, which is freed by drop, and how much of it. */
static ErlNifBinary term;
static size_t term_size;

ERL_NIF_TERM enif_make_binary(ErlNifEnv *env, ErlNifBinary *binary)
{
    (void)env;
    term = *binary;
    term_size = binary->size;
    return 1;
}

/* On the heap of its process, which is freed as the other kind is. */
static int of_heap;

unsigned char *enif_make_new_binary(ErlNifEnv *env, size_t size, ERL_NIF_TERM *made)
{
    (void)env;
    term.size = size;
    term.data = malloc(size + 1);
    if (term.data == NULL)
        abort();
    allocations++;
    term_size = size;
    of_heap++;
    *made = 1;
    return term.data;
}

ERL_NIF_TERM enif_make_sub_binary(ErlNifEnv *env, ERL_NIF_TERM of, size_t from, size_t size)
{
    (void)env;
    (void)from;
    term_size = size;
    return of;
}

static void drop(void)
{
    enif_release_binary(&term);
    memset(&term, 0, sizeof term);
}

/* The names of all atoms that were made since the test began. */
static char atoms[200];

ERL_NIF_TERM enif_make_atom(ErlNifEnv *env, const char *name)
{
    (void)env;
    if (strlen(atoms) + strlen(name) + 2 < sizeof atoms)
        strcat(strcat(atoms, " "), name);
    return 0;
}

static int said(const char *name)
{
    return strstr(atoms, name) != NULL;
}

ERL_NIF_TERM enif_make_tuple(ErlNifEnv *env, unsigned size, ...)
{
    (void)env;
    (void)size;
    return 0;
}

#endif
