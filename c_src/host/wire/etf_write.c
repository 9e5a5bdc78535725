/* Writing the external term format, see etf.h. Sizing and writing walk terms the same way. */
#include <string.h>

#include "memory/otp.h"
#include "memory/vm.h"
#include "term/atom.h"
#include "term/lease.h"
#include "term/map.h"
#include "wire/etf.h"
#include "wire/etf_walk.h"
#include "wire/node.h"

/* Longer lists of bytes are written as lists. */
#define STRING_LEN_MAX 65535

/* The cells of a list, and whether it goes out as a string: proper, and of bytes. */
static size_t list_len(term list, int *is_string)
{
    size_t len = 0;

    *is_string = 1;
    for (; is_list_cell(list); list = cell_of(list)[1], len++) {
        term head = cell_of(list)[0];
        if (!is_small(head) || head >> 4 > 255)
            *is_string = 0;
    }
    if (list != TERM_NIL || len > STRING_LEN_MAX)
        *is_string = 0;
    return len;
}

/* Of an integer that is written in 32 bits; else 0. */
static size_t small_bytes(int64_t value)
{
    return value >= 0 && value <= 255 ? 2 : value >= INT32_MIN && value <= INT32_MAX ? 5 : 0;
}

static size_t magnitude_bytes(uint64_t value)
{
    size_t size = 0;

    for (; value != 0; value >>= 8)
        size++;
    return size;
}

static size_t big_bytes(term t)
{
    struct box_big *big = box_of(t);
    size_t len = box_size(t);

    return 8 * (len - 1) + magnitude_bytes(big->digits[len - 1]);
}

static int atom_head(const struct atom *atom, unsigned char *head)
{
    if (!otp_writes_wide() && atom->latin1) {
        head[0] = ETF_ATOM;
        head[1] = (unsigned char)(atom->chars >> 8);
        head[2] = (unsigned char)atom->chars;
        return 3;
    }
    if (atom->size < 256) {
        head[0] = ETF_SMALL_ATOM_UTF8;
        head[1] = (unsigned char)atom->size;
        return 2;
    }
    head[0] = ETF_ATOM_UTF8;
    head[1] = (unsigned char)(atom->size >> 8);
    head[2] = (unsigned char)atom->size;
    return 3;
}

static size_t atom_bytes(const struct atom *atom)
{
    unsigned char head[3];
    size_t size = (size_t)atom_head(atom, head);

    return size + (head[0] == ETF_ATOM ? atom->chars : atom->size);
}

/* ---- sizing --------------------------------------------------------------------------- */

void etf_out_init(struct etf_out *out)
{
    out->size = 0;
    out->most = SIZE_MAX;
    work_init(&out->atoms, sizeof(term));
    work_init(&out->leases, sizeof(uint64_t));
    work_init(&out->resent, sizeof(struct resource *));
}

void etf_out_free(struct etf_out *out)
{
    work_free(&out->atoms);
    work_free(&out->leases);
    work_free(&out->resent);
}

static size_t size_resource(struct resource *resource, int flags, struct etf_out *out)
{
    const enum lease_for purpose = flags & ETF_SHOWN                         ? LEASE_SHOWN
                                   : flags & (ETF_COMPARABLE | ETF_QUESTION) ? LEASE_NAMED
                                                                             : LEASE_GIVEN;
    struct lease_use use = lease_use(resource, purpose);

    if (use.first)
        *(uint64_t *)work_push(&out->leases) = use.id;
    else if (purpose == LEASE_GIVEN)
        *(struct resource **)work_push(&out->resent) = resource;
    return 3 + atom_bytes(node_atom()) + 4 + 4 * use.words_len;
}

static size_t size_box(term t, int flags, struct work *work, struct etf_out *out)
{
    size_t size = box_size(t);

    switch (box_kind(t)) {
    case BOX_TUPLE:
        walk_array(work, ((struct box_tuple *)box_of(t))->elements, size);
        return size < 256 ? 2 : 5;
    case BOX_MAP:
        walk_pairs(work, t);
        return 5;
    case BOX_BIG:
        size = big_bytes(t);
        return size < 256 ? 3 + size : 6 + size;
    case BOX_FLOAT:
        return 9;
    case BOX_BINARY: {
        struct box_binary *binary = box_of(t);
        return (binary->last_bits ? 6 : 5) + binary->size;
    }
    case BOX_REF:
        return 3 + atom_bytes(node_atom()) + 4 + 4 * ((struct box_ref *)box_of(t))->len;
    case BOX_RESOURCE:
        return size_resource(((struct box_resource *)box_of(t))->resource, flags, out);
    case BOX_FOREIGN:
    case BOX_FUN:
        return ((struct box_opaque *)box_of(t))->size;
    }
    return 0;
}

static int is_wide_port(term t)
{
    return t >> 4 > 0xfffffff || otp_writes_wide();
}

static size_t size_one(term t, int flags, struct work *work, struct etf_out *out)
{
    if (is_list_cell(t)) {
        int is_string;
        size_t len = list_len(t, &is_string);
        if (is_string)
            return 3 + len;
        walk_list(work, t);
        return 5;
    }
    if (is_boxed(t))
        return size_box(t, flags, work, out);
    if (is_small(t)) {
        int64_t value = small_value(t);
        uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
        return small_bytes(value) ? small_bytes(value) : 3 + magnitude_bytes(magnitude);
    }
    if (is_atom(t)) {
        struct atom *atom = atom_of(t);
        if (!atom->declared && !(flags & ETF_COMPARABLE))
            *(term *)work_push(&out->atoms) = t;
        return atom_bytes(atom);
    }
    if (is_local_pid(t))
        return 1 + atom_bytes(node_atom()) + 12;
    if (is_local_port(t))
        return 1 + atom_bytes(node_atom()) + (is_wide_port(t) ? 12 : 8);
    return 1; /* nil */
}

void etf_size(term t, int flags, struct etf_out *out)
{
    struct work work;

    work_init(&work, sizeof(struct walk_item));
    do {
        out->size += size_one(t, flags, &work, out);
    } while (out->size <= out->most && walk_next(&work, &t));
    work_free(&work);
}

/* ---- writing -------------------------------------------------------------------------- */

static unsigned char *put(unsigned char *to, uint64_t value, size_t size)
{
#pragma GCC unroll 8 /* into one store, where the size is known */
    for (size_t i = size; i-- > 0; value >>= 8)
        to[i] = (unsigned char)value;
    return to + size;
}

static unsigned char *put_bytes(unsigned char *to, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(to, bytes, size);
    return to + size;
}

static unsigned char *write_atom(unsigned char *to, const struct atom *atom)
{
    int size = atom_head(atom, to);

    if (to[0] != ETF_ATOM)
        return put_bytes(to + size, atom->name, atom->size);
    to += size;
    for (unsigned i = 0; i < atom->size; i++) {
        unsigned char c = atom->name[i];
        *to++ = c < 0x80 ? c : (unsigned char)(c << 6 | (atom->name[++i] & 0x3f));
    }
    return to;
}

static unsigned char *write_ref(unsigned char *to, const uint32_t *words, size_t len)
{
    *to++ = ETF_NEWER_REFERENCE;
    to = put(to, len, 2);
    to = write_atom(to, node_atom());
    to = put(to, node_creation(), 4);
    for (size_t i = 0; i < len; i++)
        to = put(to, words[i], 4);
    return to;
}

static unsigned char *write_integer(unsigned char *to, int64_t value)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;

    switch (small_bytes(value)) {
    case 2:
        *to++ = ETF_SMALL_INTEGER;
        return put(to, magnitude, 1);
    case 5:
        *to++ = ETF_INTEGER;
        return put(to, (uint32_t)value, 4);
    default:
        *to++ = ETF_SMALL_BIG;
        *to++ = (unsigned char)magnitude_bytes(magnitude);
        *to++ = value < 0;
        for (; magnitude != 0; magnitude >>= 8)
            *to++ = (unsigned char)magnitude;
        return to;
    }
}

static unsigned char *write_big(unsigned char *to, term t)
{
    struct box_big *big = box_of(t);
    size_t size = big_bytes(t);

    *to++ = size < 256 ? ETF_SMALL_BIG : ETF_LARGE_BIG;
    to = put(to, size, size < 256 ? 1 : 4);
    *to++ = (unsigned char)big->negative;
    for (size_t i = 0; i < size; i++)
        *to++ = (unsigned char)(big->digits[i / 8] >> i % 8 * 8);
    return to;
}

static unsigned char *write_binary(unsigned char *to, const struct box_binary *binary)
{
    *to++ = binary->last_bits ? ETF_BIT_BINARY : ETF_BINARY;
    to = put(to, binary->size, 4);
    if (binary->last_bits)
        *to++ = (unsigned char)binary->last_bits;
    to = put_bytes(to, binary->data, binary->size);
    if (binary->last_bits) /* what is not of the term is 0 */
        to[-1] &= (unsigned char)(0xff << (8 - binary->last_bits));
    return to;
}

static unsigned char *write_box(unsigned char *to, term t, struct work *work)
{
    size_t size = box_size(t);

    switch (box_kind(t)) {
    case BOX_TUPLE:
        *to++ = size < 256 ? ETF_SMALL_TUPLE : ETF_LARGE_TUPLE;
        walk_array(work, ((struct box_tuple *)box_of(t))->elements, size);
        return put(to, size, size < 256 ? 1 : 4);
    case BOX_MAP:
        *to++ = ETF_MAP;
        walk_pairs(work, t);
        return put(to, map_len(t), 4);
    case BOX_BIG:
        return write_big(to, t);
    case BOX_FLOAT: {
        uint64_t bits;
        memcpy(&bits, &((struct box_float *)box_of(t))->value, sizeof bits);
        *to++ = ETF_NEW_FLOAT;
        return put(to, bits, 8);
    }
    case BOX_BINARY:
        return write_binary(to, box_of(t));
    case BOX_REF: {
        struct box_ref *ref = box_of(t);
        return write_ref(to, ref->words, ref->len);
    }
    case BOX_RESOURCE: {
        struct lease_use use = lease_use(((struct box_resource *)box_of(t))->resource, LEASE_NAMED);
        return write_ref(to, use.words, use.words_len);
    }
    case BOX_FOREIGN:
    case BOX_FUN: {
        struct box_opaque *box = box_of(t);
        return put_bytes(to, box->bytes, box->size);
    }
    }
    return to;
}

static unsigned char *write_list(unsigned char *to, term list, struct work *work)
{
    int is_string;
    size_t len = list_len(list, &is_string);

    if (!is_string) {
        *to++ = ETF_LIST;
        walk_list(work, list);
        return put(to, len, 4);
    }
    *to++ = ETF_STRING;
    to = put(to, len, 2);
    for (; is_list_cell(list); list = cell_of(list)[1])
        *to++ = (unsigned char)(cell_of(list)[0] >> 4);
    return to;
}

static unsigned char *write_one(unsigned char *to, term t, struct work *work)
{
    if (is_list_cell(t))
        return write_list(to, t, work);
    if (is_boxed(t))
        return write_box(to, t, work);
    if (is_small(t))
        return write_integer(to, small_value(t));
    if (is_atom(t))
        return write_atom(to, atom_of(t));
    if (is_local_pid(t)) {
        *to++ = ETF_NEW_PID;
        to = write_atom(to, node_atom());
        to = put(to, t >> 4 & 0xfffffff, 4);
        to = put(to, t >> 32, 4);
        return put(to, node_creation(), 4);
    }
    if (is_local_port(t)) {
        int wide = is_wide_port(t);
        *to++ = wide ? ETF_V4_PORT : ETF_NEW_PORT;
        to = write_atom(to, node_atom());
        to = put(to, t >> 4, wide ? 8 : 4);
        return put(to, node_creation(), 4);
    }
    *to++ = ETF_NIL;
    return to;
}

unsigned char *etf_write(term t, unsigned char *to)
{
    struct work work;

    work_init(&work, sizeof(struct walk_item));
    do {
        to = write_one(to, t, &work);
    } while (walk_next(&work, &t));
    work_free(&work);
    return to;
}
