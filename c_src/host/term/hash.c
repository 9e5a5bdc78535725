/* Hashing, see hash.h. */
#include <string.h>

#include "memory/otp.h"
#include "memory/vm.h"
#include "memory/work.h"
#include "term/hash.h"
#include "term/map_box.h"

/* left terms of an array that are still to be hashed. */
struct rest {
    const term *at;
    size_t left;
};

static void push_rest(struct work *work, const term *at, size_t left)
{
    if (left > 0)
        *(struct rest *)work_push(work) = (struct rest){at, left};
}

static uint64_t mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 32;
}

static uint64_t hash_bytes(uint64_t hash, const unsigned char *bytes, size_t size)
{
    uint64_t word;

    for (; size >= 8; bytes += 8, size -= 8) {
        memcpy(&word, bytes, 8);
        hash = mix(hash, word);
    }
    word = size;
    for (size_t i = 0; i < size; i++)
        word = word << 8 | bytes[i];
    return mix(hash, word);
}

static uint64_t hash_pairs(uint64_t hash, term map);

static uint64_t hash_box(uint64_t hash, term t, struct work *work)
{
    hash = mix(hash, box_kind(t));
    switch (box_kind(t)) {
    case BOX_TUPLE:
        push_rest(work, ((struct box_tuple *)box_of(t))->elements, box_size(t));
        return mix(hash, box_size(t));
    case BOX_MAP:
        return hash_pairs(mix(hash, map_len(t)), t);
    case BOX_BIG: {
        struct box_big *big = box_of(t);
        return hash_bytes(mix(hash, big->negative), (unsigned char *)big->digits, 8 * box_size(t));
    }
    case BOX_FLOAT: {
        double value = ((struct box_float *)box_of(t))->value;
        if (value == 0 && !otp_tells_zeros_apart())
            value = 0; /* -0.0 as well */
        return hash_bytes(hash, (unsigned char *)&value, sizeof value);
    }
    case BOX_BINARY: {
        struct box_binary *binary = box_of(t);
        size_t whole = binary->size - (binary->last_bits != 0);
        hash = hash_bytes(mix(hash, binary->last_bits), binary->data, whole);
        return binary->last_bits ? mix(hash, binary->data[whole] >> (8 - binary->last_bits)) : hash;
    }
    case BOX_REF: {
        struct box_ref *ref = box_of(t);
        return hash_bytes(hash, (unsigned char *)ref->words, ref->len * sizeof *ref->words);
    }
    case BOX_RESOURCE:
        return mix(hash, (uintptr_t)((struct box_resource *)box_of(t))->resource);
    case BOX_FOREIGN:
    case BOX_FUN: {
        struct box_opaque *box = box_of(t);
        return hash_bytes(hash, box->bytes, box->size);
    }
    }
    return hash;
}

/* Without what is within: of what may hold other terms, the kind and the size. */
static uint64_t hash_surface(term t)
{
    if (is_list_cell(t))
        return mix(0, 2);
    if (!is_boxed(t))
        return mix(0, t);
    if (box_kind(t) == BOX_TUPLE)
        return mix(mix(0, BOX_TUPLE), box_size(t));
    if (box_kind(t) == BOX_MAP)
        return mix(mix(0, BOX_MAP), map_len(t));
    return hash_box(0, t, NULL); /* none of these has any work */
}

/* In whatever order they are. */
static uint64_t hash_pairs(uint64_t hash, term map)
{
    const term *pairs = map_pairs(map);
    uint64_t sum = 0;

    for (size_t i = 0; i < map_len(map); i++)
        sum += mix(hash_surface(pairs[2 * i]), hash_surface(pairs[2 * i + 1]));
    return mix(hash, sum);
}

uint64_t term_hash(term t, uint64_t salt)
{
    struct work work;
    struct rest *top;
    uint64_t hash = mix(salt, 1);

    work_init(&work, sizeof *top);
    push_rest(&work, &t, 1);
    while ((top = work_top(&work)) != NULL) {
        term one = *top->at++;
        if (--top->left == 0)
            work_pop(&work);
        if (is_list_cell(one)) {
            hash = mix(hash, 2);
            push_rest(&work, cell_of(one), 2);
        } else if (is_boxed(one)) {
            hash = hash_box(hash, one, &work);
        } else {
            hash = mix(hash, one);
        }
    }
    work_free(&work);
    return hash;
}
