/* Copying, see copy.h. */
#include <string.h>

#include "memory/work.h"
#include "term/binary.h"
#include "term/copy.h"
#include "term/map.h"
#include "term/resource.h"

/* left terms of an array, stride words apart. */
struct copy_item {
    const term *from;
    term *to;
    size_t left, stride;
};

static void push_copy(struct work *work, const term *from, term *to, size_t left, size_t stride)
{
    if (left > 0)
        *(struct copy_item *)work_push(work) = (struct copy_item){from, to, left, stride};
}

static term copy_cells(ErlNifEnv *env, struct work *work, term list)
{
    size_t len = 0;
    term rest = list;

    for (; is_list_cell(rest); rest = cell_of(rest)[1])
        len++;
    term *cells = env_alloc(env, 2 * len * sizeof(term));
    for (size_t i = 0; i < len; i++, list = cell_of(list)[1]) {
        cells[2 * i] = cell_of(list)[0];
        cells[2 * i + 1] = make_cell(cells + 2 * i + 2);
    }
    /* The heads are the source's still: they are copied in place. */
    cells[2 * len - 1] = rest;
    push_copy(work, cells + 2 * len - 1, cells + 2 * len - 1, 1, 1);
    push_copy(work, cells, cells, len, 2);
    return make_cell(cells);
}

/* The copy of a part has bytes of its own up to this size. A library tells by that that it is in a host
 * (c_include/tame/cpp/arguments.hpp), where the next call of a job has its arguments elsewhere. */
#define PART_COPIED_BYTES 128

/* The copy of a part of a binary is no part any more, as in the VM. */
static term copy_binary(ErlNifEnv *env, const struct box_binary *from)
{
    const int is_short_part =
        from->header == box_header(BOX_BINARY, BINARY_PART) && from->size <= PART_COPIED_BYTES;

    if (from->owner != NULL && !(is_short_part && binary_keeps(from->owner)))
        return term_binary(env, from->data, from->size, from->last_bits, from->owner);
    if (from->size > BINARY_SHARE_BYTES) {
        struct binary *binary = binary_new(from->size);
        memcpy(binary->data, from->data, from->size);
        term copy = term_binary(env, binary->data, from->size, from->last_bits, &binary->shared);
        shared_drop(&binary->shared); /* the environment keeps it now */
        return copy;
    }
    return term_small_binary(env, from->data, from->size, from->last_bits);
}

static term copy_one(ErlNifEnv *env, struct work *work, term t)
{
    if (is_list_cell(t))
        return copy_cells(env, work, t);
    if (!is_boxed(t))
        return t;
    switch (box_kind(t)) {
    case BOX_TUPLE: {
        term *to, copy = term_new_tuple(env, box_size(t), &to);
        push_copy(work, ((struct box_tuple *)box_of(t))->elements, to, box_size(t), 1);
        return copy;
    }
    case BOX_MAP: {
        term *to, copy = map_new_like(env, t, &to);
        push_copy(work, map_pairs(t), to, 2 * map_len(t), 1);
        return copy;
    }
    case BOX_BIG: {
        struct box_big *big = box_of(t);
        return term_big(env, (int)big->negative, big->digits, box_size(t));
    }
    case BOX_FLOAT:
        return term_float(env, ((struct box_float *)box_of(t))->value);
    case BOX_BINARY:
        return copy_binary(env, box_of(t));
    case BOX_REF: {
        struct box_ref *ref = box_of(t);
        return term_ref(env, ref->words, ref->len);
    }
    case BOX_RESOURCE:
        return resource_term(env, ((struct box_resource *)box_of(t))->resource);
    case BOX_FOREIGN:
    case BOX_FUN: {
        struct box_opaque *box = box_of(t);
        return term_opaque(env, box_kind(t), box->type, box->bytes, box->size);
    }
    }
    return t;
}

term term_copy(ErlNifEnv *env, term source)
{
    struct work work;
    struct copy_item *top;
    term copy;

    work_init(&work, sizeof *top);
    copy = copy_one(env, &work, source);
    while ((top = work_top(&work)) != NULL) {
        const term *from = top->from;
        term *to = top->to;

        top->from += top->stride;
        top->to += top->stride;
        if (--top->left == 0)
            work_pop(&work);
        *to = copy_one(env, &work, *from); /* may push, so top is no longer valid */
    }
    work_free(&work);
    return copy;
}
