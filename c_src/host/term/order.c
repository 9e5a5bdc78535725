/* Comparing terms, see order.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/otp.h"
#include "memory/vm.h"
#include "memory/work.h"
#include "term/atom.h"
#include "term/lease.h"
#include "term/map_box.h"
#include "term/order.h"

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

/* ---- numbers -------------------------------------------------------------------------- */

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
    if (exact && otp_tells_zeros_apart() && signbit(a) != signbit(b))
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

/* ---- bytes ---------------------------------------------------------------------------- */

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

    lease_ref_words(a, &x);
    lease_ref_words(b, &y);
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

/* ---- terms in terms ------------------------------------------------------------------- */

/* left pairs of two arrays that are still to be compared. */
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

/* Keys of maps are compared with many others, and mostly are binaries of another size. */
int term_identical(term a, term b)
{
    if (a == b)
        return 1;
    if (is_kind(a, BOX_BINARY) && is_kind(b, BOX_BINARY)) {
        const struct box_binary *x = box_of(a), *y = box_of(b);

        return x->size == y->size && x->last_bits == y->last_bits && compare_binaries(x, y) == 0;
    }
    return !is_immediate(a) && !is_immediate(b) && term_compare(a, b, 1) == 0;
}

/* ---- pairs of maps -------------------------------------------------------------------- */

struct pair {
    term key, value;
};

static int compare_pairs(const void *a, const void *b)
{
    return term_compare(((const struct pair *)a)->key, ((const struct pair *)b)->key, 1);
}

void order_pairs(term *pairs, size_t len)
{
    qsort(pairs, len, sizeof(struct pair), compare_pairs);
}

static void fill_pairs(term map, int in_order, term *keys, term *values)
{
    size_t len = map_len(map);
    struct pair *pairs = host_malloc(len * sizeof *pairs + 1);

    if (len > 0) /* an empty map may have no pairs at all */
        memcpy(pairs, map_pairs(map), len * sizeof *pairs);
    if (!in_order || !map_of(map)->store->sorted || len > MAP_FLAT_LEN)
        order_pairs((term *)pairs, len);
    for (size_t i = 0; i < len; i++) {
        keys[i] = pairs[i].key;
        values[i] = pairs[i].value;
    }
    free(pairs);
}

void map_sorted(term map, term *keys, term *values)
{
    fill_pairs(map, otp_sorts_small_maps(), keys, values);
}

void map_ordered(term map, term *keys, term *values)
{
    fill_pairs(map, 1, keys, values);
}
