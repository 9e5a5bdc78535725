/* Making, copying, comparing and hashing terms, see term.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "binary.h"
#include "env.h"
#include "host.h"
#include "map.h"
#include "resource.h"
#include "term.h"

/* ---- a stack on the heap -------------------------------------------------------------- */

void work_init(struct work *work, size_t item_size)
{
    work->item_size = item_size;
    work->len = 0;
    work->max = sizeof work->small / item_size;
    work->items = work->small;
}

void *work_push(struct work *work)
{
    if (work->len == work->max) {
        size_t size = work->max * work->item_size;
        void *old = work->items == work->small ? NULL : work->items;

        work->items = host_realloc(old, 2 * size);
        if (old == NULL)
            memcpy(work->items, work->small, size);
        work->max *= 2;
    }
    return (char *)work->items + work->len++ * work->item_size;
}

void *work_top(struct work *work)
{
    return work->len == 0 ? NULL : (char *)work->items + (work->len - 1) * work->item_size;
}

void work_pop(struct work *work)
{
    work->len--;
}

void work_free(struct work *work)
{
    if (work->items != work->small)
        free(work->items);
}

/* ---- what is shared ------------------------------------------------------------------- */

void shared_keep(struct shared *shared)
{
    if (shared != NULL)
        shared->refs++;
}

void shared_drop(struct shared *shared)
{
    if (shared != NULL && --shared->refs == 0)
        shared->release(shared);
}

int shared_keep_live(struct shared *shared)
{
    long refs = shared->refs;

    while (refs > 0) {
        if (atomic_compare_exchange_weak(&shared->refs, &refs, refs + 1))
            return 1;
    }
    return 0;
}

/* ---- making --------------------------------------------------------------------------- */

term term_big(ErlNifEnv *env, int negative, const uint64_t *digits, size_t len)
{
    while (len > 0 && digits[len - 1] == 0)
        len--;
    if (len == 0)
        return make_small(0);
    if (len == 1 && digits[0] <= (uint64_t)SMALL_MAX + (negative != 0))
        return make_small(negative ? (int64_t)-digits[0] : (int64_t)digits[0]);

    struct box_big *big = env_alloc(env, sizeof *big + len * sizeof *digits);
    big->header = box_header(BOX_BIG, len);
    big->negative = negative != 0;
    memcpy(big->digits, digits, len * sizeof *digits);
    return make_boxed(big);
}

term term_integer(ErlNifEnv *env, int64_t value)
{
    uint64_t digit = value < 0 ? -(uint64_t)value : (uint64_t)value;

    if (value >= SMALL_MIN && value <= SMALL_MAX)
        return make_small(value);
    return term_big(env, value < 0, &digit, 1);
}

term term_unsigned(ErlNifEnv *env, uint64_t value)
{
    return term_big(env, 0, &value, 1);
}

term term_float(ErlNifEnv *env, double value)
{
    struct box_float *box = env_alloc(env, sizeof *box);

    box->header = box_header(BOX_FLOAT, 0);
    box->value = value;
    return make_boxed(box);
}

term term_new_tuple(ErlNifEnv *env, size_t arity, term **elements)
{
    struct box_tuple *tuple = env_alloc(env, sizeof *tuple + arity * sizeof(term));

    tuple->header = box_header(BOX_TUPLE, arity);
    *elements = tuple->elements;
    return make_boxed(tuple);
}

term term_tuple(ErlNifEnv *env, size_t arity, const term *elements)
{
    term *place, tuple = term_new_tuple(env, arity, &place);

    if (arity > 0)
        memcpy(place, elements, arity * sizeof(term));
    return tuple;
}

term term_cons(ErlNifEnv *env, term head, term tail)
{
    term *cell = env_alloc(env, 2 * sizeof *cell);

    cell[0] = head;
    cell[1] = tail;
    return make_cell(cell);
}

term term_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits,
                 struct shared *owner)
{
    struct box_binary *binary = env_alloc(env, sizeof *binary);

    *binary = (struct box_binary){box_header(BOX_BINARY, 0), data, size, size == 0 ? 0 : last_bits,
                                  owner};
    if (owner != NULL)
        env_keep(env, owner);
    return make_boxed(binary);
}

term term_small_binary(ErlNifEnv *env, const unsigned char *data, size_t size, unsigned last_bits)
{
    unsigned char *copy = env_alloc(env, size + BINARY_SLACK_BYTES);

    if (size > 0)
        memcpy(copy, data, size);
    return term_binary(env, copy, size, last_bits, NULL);
}

term term_ref(ErlNifEnv *env, const uint32_t *words, size_t len)
{
    struct box_ref *ref = env_alloc(env, sizeof *ref);

    ref->header = box_header(BOX_REF, 0);
    ref->len = (uint32_t)len;
    memcpy(ref->words, words, len * sizeof *words);
    return make_boxed(ref);
}

term term_opaque(ErlNifEnv *env, enum box_kind kind, ErlNifTermType type,
                 const unsigned char *bytes, size_t size)
{
    struct box_opaque *box = env_alloc(env, sizeof *box + size);

    *box = (struct box_opaque){box_header(kind, 0), type, size, (unsigned char *)(box + 1)};
    memcpy(box + 1, bytes, size);
    return make_boxed(box);
}

/* ---- copying -------------------------------------------------------------------------- */

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

/* The copy of a part of a binary is no part any more, as in the VM. */
static term copy_binary(ErlNifEnv *env, const struct box_binary *from)
{
    if (from->owner != NULL)
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

/* ---- comparing ------------------------------------------------------------------------ */

/* number < atom < reference < fun < port < pid < tuple < map < nil < list < bitstring */
static int rank(term t)
{
    if (is_list_cell(t))
        return 9;
    if (t == TERM_NIL)
        return 8;
    if (is_small(t))
        return 0;
    if (is_atom(t))
        return 1;
    if (is_local_port(t))
        return 4;
    if (is_local_pid(t))
        return 5;
    switch (box_kind(t)) {
    case BOX_BIG:
    case BOX_FLOAT:
        return 0;
    case BOX_REF:
    case BOX_RESOURCE:
        return 2;
    case BOX_FOREIGN: {
        ErlNifTermType type = ((struct box_opaque *)box_of(t))->type;
        return type == ERL_NIF_TERM_TYPE_REFERENCE ? 2 : type == ERL_NIF_TERM_TYPE_PORT ? 4 : 5;
    }
    case BOX_FUN:
        return 3;
    case BOX_TUPLE:
        return 6;
    case BOX_MAP:
        return 7;
    case BOX_BINARY:
        break;
    }
    return 10;
}

struct magnitude {
    int negative;
    size_t len;
    const uint64_t *digits;
    uint64_t small;
};

static void get_magnitude(term t, struct magnitude *m)
{
    if (is_small(t)) {
        int64_t value = small_value(t);
        m->negative = value < 0;
        m->small = value < 0 ? -(uint64_t)value : (uint64_t)value;
        m->digits = &m->small;
        m->len = value != 0;
    } else {
        struct box_big *big = box_of(t);
        m->negative = (int)big->negative;
        m->digits = big->digits;
        m->len = box_size(t);
    }
}

static int compare_magnitudes(const struct magnitude *a, const struct magnitude *b)
{
    int sign = a->negative ? -1 : 1;

    if (a->negative != b->negative)
        return sign;
    if (a->len != b->len)
        return a->len < b->len ? -sign : sign;
    for (size_t i = a->len; i-- > 0;) {
        if (a->digits[i] != b->digits[i])
            return a->digits[i] < b->digits[i] ? -sign : sign;
    }
    return 0;
}

/* Exact: the float's whole part becomes an integer of as many digits as it needs. */
static int compare_integer_float(term integer, double f)
{
    uint64_t digits[17] = {0}; /* 1024 bits, and room to shift into */
    double whole, fraction = modf(f, &whole);
    int exponent;
    struct magnitude a, b = {.negative = f < 0, .digits = digits};

    get_magnitude(integer, &a);
    double mantissa = frexp(fabs(whole), &exponent);
    if (whole != 0) {
        uint64_t bits = (uint64_t)ldexp(mantissa, 53); /* whole = bits * 2^(exponent - 53) */
        int shift = exponent - 53;
        if (shift <= 0) {
            digits[0] = bits >> -shift;
        } else {
            digits[shift / 64] = bits << shift % 64;
            if (shift % 64 != 0)
                digits[shift / 64 + 1] = bits >> (64 - shift % 64);
        }
    }
    for (b.len = 17; b.len > 0 && digits[b.len - 1] == 0;)
        b.len--;
    if (b.len == 0)
        b.negative = 0;
    int order = compare_magnitudes(&a, &b);
    return order != 0 ? order : fraction > 0 ? -1 : fraction < 0;
}

static int compare_floats(double a, double b, int exact)
{
    if (a != b)
        return a < b ? -1 : 1;
    /* From OTP 27 on 0.0 and -0.0 are two values to =:= . */
    if (exact && host.otp_release >= 27 && signbit(a) != signbit(b))
        return signbit(a) ? -1 : 1;
    return 0;
}

static int compare_numbers(term a, term b, int exact)
{
    int a_float = is_kind(a, BOX_FLOAT), b_float = is_kind(b, BOX_FLOAT);
    struct magnitude x, y;

    if (a_float && b_float)
        return compare_floats(((struct box_float *)box_of(a))->value,
                              ((struct box_float *)box_of(b))->value, exact);
    if (a_float != b_float && exact)
        return a_float ? 1 : -1;
    if (b_float)
        return compare_integer_float(a, ((struct box_float *)box_of(b))->value);
    if (a_float)
        return -compare_integer_float(b, ((struct box_float *)box_of(a))->value);
    get_magnitude(a, &x);
    get_magnitude(b, &y);
    return compare_magnitudes(&x, &y);
}

static int compare_bytes(const unsigned char *a, size_t a_size, const unsigned char *b,
                         size_t b_size)
{
    size_t least = a_size < b_size ? a_size : b_size;
    int order = least == 0 ? 0 : memcmp(a, b, least);

    return order != 0 ? order : a_size < b_size ? -1 : a_size > b_size;
}

static int compare_binaries(const struct box_binary *a, const struct box_binary *b)
{
    size_t a_bits = a->last_bits ? a->size * 8 - 8 + a->last_bits : a->size * 8;
    size_t b_bits = b->last_bits ? b->size * 8 - 8 + b->last_bits : b->size * 8;
    size_t least = a_bits < b_bits ? a_bits : b_bits;
    int order = least < 8 ? 0 : memcmp(a->data, b->data, least / 8);

    if (order == 0 && least % 8 != 0) {
        int shift = 8 - (int)(least % 8);
        order = (a->data[least / 8] >> shift) - (b->data[least / 8] >> shift);
    }
    return order != 0 ? order : a_bits < b_bits ? -1 : a_bits > b_bits;
}

/* As the VM: the last word counts most. */
static int compare_refs(term a, term b)
{
    struct box_ref x, y;

    resource_ref_words(a, &x);
    resource_ref_words(b, &y);
    for (size_t i = REF_WORDS_MAX; i-- > 0;) {
        uint32_t p = i < x.len ? x.words[i] : 0, q = i < y.len ? y.words[i] : 0;
        if (p != q)
            return p < q ? -1 : 1;
    }
    return 0;
}

static int compare_opaque(term a, term b)
{
    /* A local one comes before a foreign one. The VM orders by node name first, which we do not
     * look at; enif_api.def says so. */
    if (!is_kind(a, BOX_FOREIGN) && !is_kind(a, BOX_FUN))
        return -1;
    if (!is_kind(b, BOX_FOREIGN) && !is_kind(b, BOX_FUN))
        return 1;
    struct box_opaque *x = box_of(a), *y = box_of(b);
    return compare_bytes(x->bytes, x->size, y->bytes, y->size);
}

/* left pairs of two arrays, stride words apart. tail: a list's, compared when its head was equal.
 */
struct compare_item {
    const term *a, *b;
    size_t left;
    int exact;
    void *free; /* sorted copies of a map's pairs, to be freed when this item is done */
};

static void push_compare(struct work *work, const term *a, const term *b, size_t left, int exact)
{
    if (left > 0)
        *(struct compare_item *)work_push(work) = (struct compare_item){a, b, left, exact, NULL};
}

static int compare_maps(struct work *work, term a, term b, int exact)
{
    size_t len = map_len(a);

    if (len != map_len(b))
        return len < map_len(b) ? -1 : 1;
    if (len == 0)
        return 0;
    /* Keys of a, of b, then values of a, of b, each in the order of the keys. */
    term *sorted = host_malloc(4 * len * sizeof(term));
    map_sorted(a, sorted, sorted + 2 * len);
    map_sorted(b, sorted + len, sorted + 3 * len);
    struct compare_item *values = work_push(work);
    *values = (struct compare_item){sorted + 2 * len, sorted + 3 * len, len, exact, sorted};
    push_compare(work, sorted, sorted + len, len, 1);
    return 0;
}

static int compare_one(struct work *work, term a, term b, int exact)
{
    if (a == b)
        return 0;
    int a_rank = rank(a), b_rank = rank(b);
    if (a_rank != b_rank)
        return a_rank < b_rank ? -1 : 1;

    switch (a_rank) {
    case 0:
        return compare_numbers(a, b, exact);
    case 1:
        return atom_compare(a, b);
    case 2:
        return is_kind(a, BOX_FOREIGN) || is_kind(b, BOX_FOREIGN) ? compare_opaque(a, b)
                                                                  : compare_refs(a, b);
    case 4:
    case 5:
        if (is_boxed(a) || is_boxed(b))
            return compare_opaque(a, b);
        return a < b ? -1 : 1;
    case 6:
        if (box_size(a) != box_size(b))
            return box_size(a) < box_size(b) ? -1 : 1;
        push_compare(work, ((struct box_tuple *)box_of(a))->elements,
                     ((struct box_tuple *)box_of(b))->elements, box_size(a), exact);
        return 0;
    case 7:
        return compare_maps(work, a, b, exact);
    case 9:
        push_compare(work, cell_of(a), cell_of(b), 2, exact);
        return 0;
    case 10:
        return compare_binaries(box_of(a), box_of(b));
    default:
        return compare_opaque(a, b);
    }
}

int term_compare(term a, term b, int exact)
{
    struct work work;
    struct compare_item *top;
    int order;

    work_init(&work, sizeof *top);
    order = compare_one(&work, a, b, exact);
    while ((top = work_top(&work)) != NULL) {
        if (order != 0 || top->left == 0) {
            free(top->free);
            work_pop(&work);
            continue;
        }
        const term *x = top->a++, *y = top->b++;
        int item_exact = top->exact;
        /* A long list must not grow the stack by one item a cell. */
        if (--top->left == 0 && top->free == NULL)
            work_pop(&work);
        order = compare_one(&work, *x, *y, item_exact);
    }
    work_free(&work);
    return order;
}

int term_identical(term a, term b)
{
    return a == b || term_compare(a, b, 1) == 0;
}

/* ---- hashing -------------------------------------------------------------------------- */

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

static uint64_t hash_box(uint64_t hash, term t, struct work *work)
{
    hash = mix(hash, box_kind(t));
    switch (box_kind(t)) {
    case BOX_TUPLE:
        push_compare(work, ((struct box_tuple *)box_of(t))->elements, NULL, box_size(t), 0);
        return mix(hash, box_size(t));
    case BOX_MAP: /* by size alone: its order is not fixed */
        return mix(hash, map_len(t));
    case BOX_BIG: {
        struct box_big *big = box_of(t);
        return hash_bytes(mix(hash, big->negative), (unsigned char *)big->digits, 8 * box_size(t));
    }
    case BOX_FLOAT: {
        double value = ((struct box_float *)box_of(t))->value;
        if (value == 0 && host.otp_release < 27)
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

uint64_t term_hash(term t, uint64_t salt)
{
    struct work work;
    struct compare_item *top;
    uint64_t hash = mix(salt, 1);

    work_init(&work, sizeof *top);
    push_compare(&work, &t, NULL, 1, 0);
    while ((top = work_top(&work)) != NULL) {
        term one = *top->a++;
        if (--top->left == 0)
            work_pop(&work);
        if (is_list_cell(one)) {
            hash = mix(hash, 2);
            push_compare(&work, cell_of(one), NULL, 2, 0);
        } else if (is_boxed(one)) {
            hash = hash_box(hash, one, &work);
        } else {
            hash = mix(hash, one);
        }
    }
    work_free(&work);
    return hash;
}
