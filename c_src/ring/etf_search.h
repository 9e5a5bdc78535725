/* etf_search.h - whether a term in external format may hold a map, or an identifier, without walking
 * over it: if not, it needs no scan.
 *
 * Bytes are looked at sixteen at once, by GCC's and clang's vectors, and one by one only where a tag
 * may begin something: text has the tags' bytes everywhere, but hardly ever what belongs behind
 * them. */
#ifndef TAME_RING_ETF_SEARCH_H
#define TAME_RING_ETF_SEARCH_H

#include "etf_scan.h"

/* Bytes that are looked at together, and how many behind them. */
#define ETF_SEARCH_STEP 16
#define ETF_SEARCH_BEHIND 4

/* A comparison of them gives 0 or -1 for each. */
typedef uint8_t etf_sixteen __attribute__((vector_size(ETF_SEARCH_STEP)));
typedef int8_t etf_which __attribute__((vector_size(ETF_SEARCH_STEP)));

static inline etf_sixteen etf_sixteen_at(const uint8_t *data)
{
    etf_sixteen bytes;

    memcpy(&bytes, data, sizeof bytes);
    return bytes;
}

static inline int etf_any(etf_which bytes)
{
    uint64_t halves[2];

    memcpy(halves, &bytes, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

/* ---- maps ---- */

/* Bytes of a map's count, behind its tag. */
#define ETF_MAP_COUNT 4

/* Which of 16 bytes are a map's tag, with a count behind it that is more than `pairs` (at most 255)
 * and may not be too much for `most`, the first two bytes of the greatest that there can be. */
static inline etf_which etf_map_heads(const uint8_t *data, uint8_t pairs, const uint8_t most[2])
{
    const etf_sixteen first = etf_sixteen_at(data + 1), second = etf_sixteen_at(data + 2);
    const etf_sixteen third = etf_sixteen_at(data + 3), last = etf_sixteen_at(data + 4);
    const etf_which fits = most[0] > 0 ? first <= most[0] : (first == 0) & (second <= most[1]);

    return (etf_sixteen_at(data) == ETF_MAP) & fits &
           (((first | second | third) != 0) | (last > pairs));
}

/* Whether a map of more than `pairs` pairs may begin here: the bytes behind it can hold its count. */
static inline int etf_may_be_map(const uint8_t *data, uint64_t at, uint64_t size, uint64_t pairs)
{
    const uint8_t *const count = data + at + 1;

    if (data[at] != ETF_MAP || size - at <= ETF_MAP_COUNT)
        return 0;

    const uint64_t n =
        (uint64_t)count[0] << 24 | (uint64_t)count[1] << 16 | (uint64_t)count[2] << 8 | count[3];

    return n > pairs && n <= (size - at - 1 - ETF_MAP_COUNT) / 2;
}

/* ---- identifiers ---- */

/* Which bytes are the tag of an atom. */
static inline etf_which etf_atom_tags(etf_sixteen tags)
{
    return (tags == ETF_SMALL_ATOM_UTF8) | (tags == ETF_ATOM_UTF8) | (tags == ETF_SMALL_ATOM) |
           (tags == ETF_ATOM);
}

/* Which of 16 bytes are the tag of an identifier, with that of an atom where its node has to be. */
static inline etf_which etf_identifier_heads(const uint8_t *data)
{
    const etf_sixteen tags = etf_sixteen_at(data);
    const etf_which next = (tags == ETF_NEW_PID) | (tags == ETF_NEW_PORT) | (tags == ETF_V4_PORT) |
                           (tags == ETF_PID) | (tags == ETF_PORT) | (tags == ETF_REFERENCE);
    const etf_which third = (tags == ETF_NEWER_REFERENCE) | (tags == ETF_NEW_REFERENCE);

    return (next & etf_atom_tags(etf_sixteen_at(data + 1))) |
           (third & etf_atom_tags(etf_sixteen_at(data + 3)));
}

/* Where an atom ends; 0: none is here. */
static inline uint64_t etf_atom_end(const uint8_t *data, uint64_t at, uint64_t size)
{
    if (size - at < 3)
        return 0;

    const uint8_t tag = data[at];
    const int is_short = tag == ETF_SMALL_ATOM_UTF8 || tag == ETF_SMALL_ATOM;
    const uint64_t len = is_short ? data[at + 1] : (uint64_t)data[at + 1] << 8 | data[at + 2];
    const uint64_t from = at + (is_short ? 2 : 3);

    if (!is_short && tag != ETF_ATOM_UTF8 && tag != ETF_ATOM)
        return 0;
    return len <= ETF_ATOM_BYTES_MAX && len <= size - from ? from + len : 0;
}

/* Whether an identifier may begin here. */
static inline int etf_may_be_identifier(const uint8_t *data, uint64_t at, uint64_t size)
{
    struct etf_identifier form;

    if (!etf_identifier(data[at], &form) || size - at <= form.head)
        return 0;

    const uint64_t end = etf_atom_end(data, at + form.head, size);

    return end > 0 && size - end >= (uint64_t)form.between + form.creation &&
           etf_is_identifier(data[at], &form, data + end);
}

/* ---- both ---- */

/* Whether a map of more than `pairs` pairs (at most 255), or an identifier, may begin at one of the
 * bytes from `from` up to `end`. */
static inline int etf_may_have(const uint8_t *data, uint64_t from, uint64_t end, uint64_t size,
                               uint8_t pairs)
{
    const uint64_t most_pairs = size / 2;
    const uint8_t most[2] = {most_pairs >> 24 < 255 ? (uint8_t)(most_pairs >> 24) : 255,
                             (uint8_t)(most_pairs >> 16)};
    uint8_t rest[ETF_SEARCH_STEP + ETF_SEARCH_BEHIND];

    for (uint64_t at = from; at < end; at += ETF_SEARCH_STEP) {
        const uint8_t *bytes = data + at;

        if (size - at < sizeof rest) { /* the last ones, and behind them what is no tag */
            memset(rest, 0, sizeof rest);
            memcpy(rest, bytes, size - at);
            bytes = rest;
        }
        if (!etf_any(etf_map_heads(bytes, pairs, most) | etf_identifier_heads(bytes)))
            continue;
        for (uint64_t i = at; i < at + ETF_SEARCH_STEP && i < end; i++)
            if (etf_may_be_map(data, i, size, pairs) || etf_may_be_identifier(data, i, size))
                return 1;
    }
    return 0;
}

/* Whether a term may hold what binary_to_term must not see unseen: a map of more than 32 pairs,
 * names of nodes. */
static inline int etf_may_be_wrong(const uint8_t *data, uint64_t size)
{
    return etf_may_have(data, 0, size, size, ETF_TREE_PAIRS);
}

#endif
