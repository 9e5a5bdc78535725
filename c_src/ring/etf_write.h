/* etf_write.h - writes a term in external format into a buffer, with bounds.
 *
 * For arguments of a call, on a scheduler: common terms of few elements go straight into the slot,
 * without a binary in between. What is not common (funs, integers beyond 64 bits, bit strings, deep
 * or long terms) is left to term_to_binary/1, which yields by itself.
 *
 * The bytes decode to the same term as those of term_to_binary, keys of maps in the same order. */
#ifndef TAME_RING_ETF_WRITE_H
#define TAME_RING_ETF_WRITE_H

#include <erl_nif.h>
#include <stdint.h>
#include <string.h>

#include "etf_tags.h"
#include "ring.h"

/* An element takes 8 to 35 ns here, and 18 in term_to_binary/1: this is where that one, which takes
 * some us to begin with, is faster. */
#define ETF_ELEMENTS_MAX 512
#define ETF_DEPTH_MAX 64

struct etf {
    ErlNifEnv *env;
    uint8_t *data; /* of `capacity` bytes; written only, never read */
    size_t capacity;
    size_t size; /* goes on counting when the buffer is full */
    int elements_left;
    int depth_left;
};

/* The next bytes of the buffer, or NULL when it is full. */
static inline uint8_t *etf_take(struct etf *etf, size_t size)
{
    uint8_t *place = NULL;

    if (etf->size <= etf->capacity && size <= etf->capacity - etf->size)
        place = etf->data + etf->size;
    etf->size += size;
    return place;
}

static inline void etf_big_endian(uint8_t *place, uint64_t value, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--, value >>= 8)
        place[i] = (uint8_t)value;
}

/* A tag and an unsigned number of `bytes` bytes behind it. */
static inline void etf_tagged(struct etf *etf, int tag, uint64_t value, int bytes)
{
    uint8_t *place = etf_take(etf, 1 + (size_t)bytes);

    if (place == NULL)
        return;
    place[0] = (uint8_t)tag;
    etf_big_endian(place + 1, value, bytes);
}

static inline void etf_bytes(struct etf *etf, const void *bytes, size_t size)
{
    uint8_t *place = etf_take(etf, size);

    if (place != NULL)
        ring_copy(place, bytes, size);
}

/* An identifier, or an atom that is not Latin-1: the VM's own encoding, without the first byte. */
static inline int etf_other(struct etf *etf, ERL_NIF_TERM term)
{
    ErlNifBinary binary;

    etf->elements_left -= 16;
    if (!enif_term_to_binary(etf->env, term, &binary))
        return 0;
    etf_bytes(etf, binary.data + 1, binary.size - 1);
    enif_release_binary(&binary);
    return 1;
}

static inline int etf_atom(struct etf *etf, ERL_NIF_TERM term)
{
    char name[256];
    int size = enif_get_atom(etf->env, term, name, sizeof name, ERL_NIF_LATIN1);
    int ascii = 1;

    if (size == 0)
        return etf_other(etf, term);
    size--; /* the zero at the end */
    for (int i = 0; i < size; i++)
        ascii &= (unsigned char)name[i] < 128;
    if (ascii)
        etf_tagged(etf, ETF_SMALL_ATOM_UTF8, (unsigned)size, 1);
    else
        etf_tagged(etf, ETF_ATOM, (unsigned)size, 2);
    etf_bytes(etf, name, (size_t)size);
    return 1;
}

static inline int etf_integer(struct etf *etf, ERL_NIF_TERM term)
{
    ErlNifSInt64 value;
    ErlNifUInt64 magnitude;
    int negative = 0;

    if (enif_get_int64(etf->env, term, &value)) {
        if (value >= 0 && value <= 255) {
            etf_tagged(etf, ETF_SMALL_INTEGER, (uint64_t)value, 1);
            return 1;
        }
        if (value >= INT32_MIN && value <= INT32_MAX) {
            etf_tagged(etf, ETF_INTEGER, (uint32_t)(int32_t)value, 4);
            return 1;
        }
        negative = value < 0;
        magnitude = negative ? 0 - (ErlNifUInt64)value : (ErlNifUInt64)value;
    } else if (!enif_get_uint64(etf->env, term, &magnitude)) {
        return 0;
    }
    uint8_t big[3 + 8] = {ETF_SMALL_BIG, 0, (uint8_t)negative};
    int len = 0;

    for (; magnitude > 0; magnitude >>= 8)
        big[3 + len++] = (uint8_t)magnitude;
    big[1] = (uint8_t)len;
    etf_bytes(etf, big, 3 + (size_t)len);
    return 1;
}

static inline int etf_float(struct etf *etf, ERL_NIF_TERM term)
{
    double value;
    uint64_t bits;

    if (!enif_get_double(etf->env, term, &value))
        return 0;
    memcpy(&bits, &value, sizeof bits);
    etf_tagged(etf, ETF_NEW_FLOAT, bits, 8);
    return 1;
}

static inline int etf_binary(struct etf *etf, ERL_NIF_TERM term)
{
    ErlNifBinary binary;

    if (!enif_inspect_binary(etf->env, term, &binary) || binary.size > UINT32_MAX)
        return 0;
    etf_tagged(etf, ETF_BINARY, binary.size, 4);
    etf_bytes(etf, binary.data, binary.size);
    return 1;
}

static inline int etf_term(struct etf *etf, ERL_NIF_TERM term);

/* A list of bytes only, of at most 65535, as term_to_binary writes it. Returns 0 when it is no such
 * list; what was written then is taken back by the caller. */
static inline int etf_string(struct etf *etf, ERL_NIF_TERM list)
{
    uint8_t *start = etf_take(etf, 3), *place;
    ERL_NIF_TERM head;
    int len = 0, byte;

    while (enif_get_list_cell(etf->env, list, &head, &list)) {
        if (!enif_get_int(etf->env, head, &byte) || byte < 0 || byte > 255 ||
            --etf->elements_left < 0 || len == 65535)
            return 0;
        place = etf_take(etf, 1);
        if (place != NULL)
            *place = (uint8_t)byte;
        len++;
    }
    if (!enif_is_empty_list(etf->env, list))
        return 0;
    if (start != NULL) {
        start[0] = ETF_STRING;
        etf_big_endian(start + 1, (uint64_t)len, 2);
    }
    return 1;
}

static inline int etf_list(struct etf *etf, ERL_NIF_TERM list)
{
    ERL_NIF_TERM head, tail = list;
    const size_t size = etf->size;
    uint8_t *start;
    uint32_t len = 0;
    int byte;

    if (enif_get_list_cell(etf->env, list, &head, &tail) && enif_get_int(etf->env, head, &byte) &&
        byte >= 0 && byte <= 255) {
        if (etf_string(etf, list))
            return 1;
        etf->size = size;
    }
    start = etf_take(etf, 5);
    for (tail = list; enif_get_list_cell(etf->env, tail, &head, &tail); len++)
        if (!etf_term(etf, head))
            return 0;
    if (start != NULL) {
        start[0] = ETF_LIST;
        etf_big_endian(start + 1, len, 4);
    }
    return etf_term(etf, tail);
}

static inline int etf_tuple(struct etf *etf, ERL_NIF_TERM term)
{
    const ERL_NIF_TERM *elements;
    int arity;

    if (!enif_get_tuple(etf->env, term, &arity, &elements))
        return 0;
    if (arity <= 255)
        etf_tagged(etf, ETF_SMALL_TUPLE, (unsigned)arity, 1);
    else
        etf_tagged(etf, ETF_LARGE_TUPLE, (unsigned)arity, 4);
    for (int i = 0; i < arity; i++)
        if (!etf_term(etf, elements[i]))
            return 0;
    return 1;
}

/* Up to 32 keys term_to_binary writes in the order of the iterator, beyond in the opposite one. */
static inline int etf_map(struct etf *etf, ERL_NIF_TERM term)
{
    ErlNifMapIterator iterator;
    ERL_NIF_TERM key, value;
    size_t len;
    int ok = 1, forward;

    if (!enif_get_map_size(etf->env, term, &len) || len > ETF_ELEMENTS_MAX)
        return 0;
    forward = len <= 32;
    if (!enif_map_iterator_create(etf->env, term, &iterator,
                                  forward ? ERL_NIF_MAP_ITERATOR_FIRST : ERL_NIF_MAP_ITERATOR_LAST))
        return 0;
    etf_tagged(etf, ETF_MAP, len, 4);
    while (ok && enif_map_iterator_get_pair(etf->env, &iterator, &key, &value)) {
        ok = etf_term(etf, key) && etf_term(etf, value);
        if (!(forward ? enif_map_iterator_next(etf->env, &iterator)
                      : enif_map_iterator_prev(etf->env, &iterator)))
            break;
    }
    enif_map_iterator_destroy(etf->env, &iterator);
    return ok;
}

static inline int etf_nested(struct etf *etf, ERL_NIF_TERM term,
                             int (*write)(struct etf *, ERL_NIF_TERM))
{
    int ok;

    if (--etf->depth_left < 0)
        return 0;
    ok = write(etf, term);
    etf->depth_left++;
    return ok;
}

static inline int etf_term(struct etf *etf, ERL_NIF_TERM term)
{
    if (--etf->elements_left < 0)
        return 0;
    switch (enif_term_type(etf->env, term)) {
    case ERL_NIF_TERM_TYPE_ATOM:
        return etf_atom(etf, term);
    case ERL_NIF_TERM_TYPE_BITSTRING:
        return etf_binary(etf, term);
    case ERL_NIF_TERM_TYPE_FLOAT:
        return etf_float(etf, term);
    case ERL_NIF_TERM_TYPE_INTEGER:
        return etf_integer(etf, term);
    case ERL_NIF_TERM_TYPE_LIST:
        if (enif_is_empty_list(etf->env, term)) {
            etf_tagged(etf, ETF_NIL, 0, 0);
            return 1;
        }
        return etf_nested(etf, term, etf_list);
    case ERL_NIF_TERM_TYPE_MAP:
        return etf_nested(etf, term, etf_map);
    case ERL_NIF_TERM_TYPE_TUPLE:
        return etf_nested(etf, term, etf_tuple);
    case ERL_NIF_TERM_TYPE_PID:
    case ERL_NIF_TERM_TYPE_PORT:
    case ERL_NIF_TERM_TYPE_REFERENCE:
        return etf_other(etf, term);
    default:
        return 0;
    }
}

/* Writes the version byte and the term. Returns the size, which may be larger than the capacity
 * (what was written is of no use then), or 0 when this term is not for us. */
static inline size_t etf_write(ErlNifEnv *env, ERL_NIF_TERM term, uint8_t *data, size_t capacity)
{
    struct etf etf = {env, data, capacity, 0, ETF_ELEMENTS_MAX, ETF_DEPTH_MAX};

    etf_tagged(&etf, ETF_VERSION, 0, 0);
    return etf_term(&etf, term) ? etf.size : 0;
}

/* What the first elements of a term take: it takes no less. */
static inline size_t etf_least(ErlNifEnv *env, ERL_NIF_TERM term, int elements)
{
    struct etf etf = {env, NULL, 0, 0, elements, ETF_DEPTH_MAX};

    (void)etf_term(&etf, term);
    return etf.size;
}

#endif
