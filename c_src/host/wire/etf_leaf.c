/* Reading what has no terms in it, see etf_reader.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/otp.h"
#include "memory/vm.h"
#include "port/ask.h"
#include "term/atom.h"
#include "term/binary.h"
#include "term/lease.h"
#include "wire/etf_reader.h"
#include "wire/node.h"

/* Not a bound of the format, but of good sense: no bignum of the VM is larger. */
#define BIG_BYTES_MAX (1u << 23)

term etf_read_atom(struct reader *reader, unsigned tag)
{
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    size_t size;
    const unsigned char *name = etf_atom_text(&reader->cursor, tag, buffer, &size);
    term atom;

    if (name == NULL)
        return etf_bad(reader);
    if (reader->flags & ETF_SAFE) {
        atom = atom_find(name, size);
        if (atom == TERM_NONE && !ask_name("existing_atom", name, size))
            return etf_bad(reader);
    }
    atom = atom_make(name, size, (reader->flags & (ETF_TRUSTED | ETF_SAFE)) != 0);
    return atom == TERM_NONE ? etf_bad(reader) : atom;
}

term etf_read_big(struct reader *reader, size_t len)
{
    uint64_t negative = etf_u8(&reader->cursor);
    const unsigned char *bytes = etf_bytes(&reader->cursor, len);
    uint64_t few[4] = {0}, *digits = few;

    if (bytes == NULL || len > BIG_BYTES_MAX)
        return etf_bad(reader);
    if (len > sizeof few) {
        digits = host_malloc(len + 8);
        memset(digits, 0, len + 8);
    }
    for (size_t i = 0; i < len; i++)
        digits[i / 8] |= (uint64_t)bytes[i] << i % 8 * 8;
    term big = term_big(reader->env, negative != 0, digits, (len + 7) / 8);
    if (digits != few)
        free(digits);
    return big;
}

term etf_read_float(struct reader *reader, unsigned tag)
{
    double value;

    if (tag == ETF_NEW_FLOAT) {
        uint64_t bits = etf_u64(&reader->cursor);
        memcpy(&value, &bits, sizeof value);
    } else {
        char text[32] = {0};
        const unsigned char *bytes = etf_bytes(&reader->cursor, 31);
        char *end;
        if (bytes == NULL)
            return etf_bad(reader);
        memcpy(text, bytes, 31);
        value = strtod(text, &end);
        if (end == text)
            return etf_bad(reader);
    }
    return isfinite(value) ? term_float(reader->env, value) : etf_bad(reader);
}

/* Whether a binary can be handed to a library where it stands: the VM's are aligned for any type of
 * C, and a library may write a little too far. So there must be room behind it. */
static int can_stay(struct reader *reader, const unsigned char *bytes, size_t size)
{
    if ((uintptr_t)bytes % BINARY_ALIGN_BYTES != 0 ||
        (size_t)(reader->cursor.end - bytes) < size + BINARY_SLACK_BYTES)
        return 0;
    reader->stay_end = bytes + size + BINARY_SLACK_BYTES;
    return 1;
}

term etf_read_binary(struct reader *reader, unsigned tag)
{
    size_t size = etf_u32(&reader->cursor);
    unsigned bits = tag == ETF_BIT_BINARY ? (unsigned)etf_u8(&reader->cursor) : 8;
    const unsigned char *bytes = etf_bytes(&reader->cursor, size);

    if (bytes == NULL || bits > 8 || (size > 0) > bits || (size == 0 && bits != 0 && bits != 8))
        return etf_bad(reader);
    if (size <= BINARY_SHARE_BYTES)
        return term_small_binary(reader->env, bytes, size, bits & 7);
    /* Not what begins in the room behind one that stays. */
    if ((reader->flags & ETF_BORROW) && bytes >= reader->stay_end) {
        term lent = term_binary(reader->env, bytes, size, bits & 7, NULL);
        if (!can_stay(reader, bytes, size))
            ((struct box_binary *)box_of(lent))->header = box_header(BOX_BINARY, BINARY_LENT);
        return lent;
    }
    struct binary *binary = binary_new(size);
    memcpy(binary->data, bytes, size);
    term made = term_binary(reader->env, binary->data, size, bits & 7, &binary->shared);
    shared_drop(&binary->shared); /* the environment keeps it now */
    return made;
}

term etf_read_string(struct reader *reader)
{
    size_t len = etf_u16(&reader->cursor);
    const unsigned char *bytes = etf_bytes(&reader->cursor, len);

    if (bytes == NULL || len == 0)
        return bytes == NULL ? etf_bad(reader) : TERM_NIL;
    term *cells = env_alloc(reader->env, 2 * len * sizeof(term));
    for (size_t i = 0; i < len; i++) {
        cells[2 * i] = make_small(bytes[i]);
        cells[2 * i + 1] = make_cell(cells + 2 * i + 2);
    }
    cells[2 * len - 1] = TERM_NIL;
    return make_cell(cells);
}

/* Whether the VM reads this as an identifier of its own: what it never gave out it refuses, and a
 * reply with it would be none. Up to OTP 25 it looks at more bits. */
static int is_of_vm(unsigned tag, uint64_t id, uint64_t serial, const uint32_t *words, size_t len)
{
    int old = !otp_writes_wide();

    if (len > 0)
        return len != 4 && words[0] < 1u << 18;
    if (tag == ETF_NEW_PID || tag == ETF_PID)
        return id < 1u << (old ? 15 : 28) && serial < UINT64_C(1) << (old ? 13 : 32);
    return id < UINT64_C(1) << (old ? 28 : 60);
}

term etf_read_identifier(struct reader *reader, unsigned tag, const unsigned char *start)
{
    struct etf_cursor *cursor = &reader->cursor;
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    size_t size, len = 0;
    uint64_t id = 0, serial = 0, creation;
    uint32_t words[REF_WORDS_MAX] = {0};

    if (tag == ETF_NEW_REFERENCE || tag == ETF_NEWER_REFERENCE)
        len = etf_u16(cursor);
    const unsigned char *node = etf_atom(cursor, buffer, &size);
    if (len > REF_WORDS_MAX ||
        (len == 0 && (tag == ETF_NEW_REFERENCE || tag == ETF_NEWER_REFERENCE)))
        return etf_bad(reader);

    int wide = tag == ETF_NEW_PID || tag == ETF_NEW_PORT || tag == ETF_V4_PORT ||
               tag == ETF_NEWER_REFERENCE;
    if (tag == ETF_V4_PORT)
        id = etf_u64(cursor);
    else if (len == 0)
        id = etf_u32(cursor);
    if (tag == ETF_NEW_PID || tag == ETF_PID)
        serial = etf_u32(cursor);
    creation = wide ? etf_u32(cursor) : etf_u8(cursor);
    if (tag == ETF_REFERENCE) {
        words[0] = (uint32_t)id;
        len = 1;
    } else {
        for (size_t i = 0; i < len; i++)
            words[i] = (uint32_t)etf_u32(cursor);
    }
    if (cursor->bad)
        return TERM_NONE;

    int is_pid = tag == ETF_NEW_PID || tag == ETF_PID, is_ref = len > 0;
    if (node_is_ours(node, size, (uint32_t)creation, (reader->flags & ETF_ASK) != 0)) {
        if ((reader->flags & ETF_TRUSTED) == 0 && !is_of_vm(tag, id, serial, words, len))
            return etf_bad(reader);
        if (is_ref)
            return lease_term_or_ref(reader->env, words, len);
        if (is_pid && id < 1u << 28)
            return (serial << 28 | id) << 4 | 3;
        if (!is_pid && id < UINT64_C(1) << 60)
            return id << 4 | 7;
    }
    if (atom_make(node, size, (reader->flags & ETF_TRUSTED) != 0) == TERM_NONE)
        return etf_bad(reader); /* the node's name is no atom */
    return term_opaque(reader->env, BOX_FOREIGN,
                       is_ref   ? ERL_NIF_TERM_TYPE_REFERENCE
                       : is_pid ? ERL_NIF_TERM_TYPE_PID
                                : ERL_NIF_TERM_TYPE_PORT,
                       start, (size_t)(cursor->at - start));
}
