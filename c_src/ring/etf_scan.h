/* etf_scan.h - walks over a term in external format without making it: is it whole, how much memory
 * will it take, and how long will the emulator be at its maps.
 *
 * Plain C, over bytes that nobody changes meanwhile (a copy of the reply). Resumable: each call
 * does a bounded number of items, so a caller on a scheduler may stop between two of them.
 *
 * Maps are why it exists. binary_to_term yields while it builds, but puts all maps of a term in
 * order at the end, large and small ones, in one go that does not yield; it hashes keys above 32
 * pairs and compares them below. So what counts is the number of pairs in the whole term, and the
 * bytes of all keys. A term with many belongs on a dirty scheduler.
 *
 * And one thing that binary_to_term must never see. A map of more than 32 pairs is a tree by the
 * hash of its keys, and the emulator's hash of a reference takes its first three words only (seen
 * on OTP 25): two references that agree in these and differ behind them, or in length, send it down
 * without end, until the VM dies. No VM makes such a pair: `make_ref` makes references of three
 * words, aliases have five, and the first three never come twice. So a term with such a map and
 * such a pair is "references"; also one with a reference of more than three words among more than
 * 4096. One of fewer than three words is read beyond its end there: no VM makes it since R4, and
 * beside such a map it is "references" alone.
 *
 * What is not checked here, binary_to_term checks: that an atom exists, that a key is there once.
 */
#ifndef TAME_RING_ETF_SCAN_H
#define TAME_RING_ETF_SCAN_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "etf_identifier.h"
#include "etf_names.h"
#include "etf_tags.h"

/* Terms nested deeper are refused: each level costs 8 bytes while it is walked. */
#define ETF_SCAN_DEPTH_MAX (1u << 20)

#define ETF_REFERENCES_MAX 4096u

struct etf_reference {
    uint32_t words[3];
    uint32_t len;
    const uint8_t *rest; /* the words behind the third */
};

struct etf_scan {
    uint64_t at;    /* the next byte */
    uint64_t heap;  /* bytes that the term takes at most, binaries outside of the heap included */
    uint64_t pairs; /* of all maps */
    uint64_t key_bytes;               /* of all keys, encoded */
    struct etf_reference *references; /* the first ones; owned, etf_scan_close frees it */
    uint32_t references_len, references_max;
    int has_more;            /* references than have place there */
    int has_short, has_long; /* a reference of fewer than three words, of more */
    int has_tree;            /* a map of more than 32 pairs */
    uint64_t *open; /* one word for each term that lacks elements; owned, etf_scan_close frees it */
    uint32_t depth, open_max;
    const char *wrong; /* once set, it stays */
    /* Where the names of nodes are counted, if they are; the last one's hash. */
    struct etf_names *names;
    uint64_t names_seed, last_name;
    /* Without `names`: the first few, where they are asked for; one more is wrong. */
    uint64_t few[ETF_NAMES_FEW];
    int counts_few, few_len;
};

enum etf_scan_end { ETF_SCAN_MORE, ETF_SCAN_DONE, ETF_SCAN_WRONG };

/* A word of `open`: how many elements are to come << 2, and these. */
enum { ETF_OPEN_KEY = 1, ETF_OPEN_MAP = 2 };

static inline void etf_scan_close(struct etf_scan *scan)
{
    free(scan->open);
    free(scan->references);
    scan->open = NULL;
    scan->references = NULL;
}

static inline void etf_scan_push(struct etf_scan *scan, uint64_t elements, uint64_t bits)
{
    if (elements == 0 || scan->wrong != NULL)
        return;
    if (scan->depth == scan->open_max) {
        const uint32_t max = scan->open_max > 0 ? scan->open_max * 2 : 64;
        uint64_t *more =
            max > ETF_SCAN_DEPTH_MAX ? NULL : realloc(scan->open, max * sizeof *scan->open);

        if (more == NULL) {
            scan->wrong = "depth";
            return;
        }
        scan->open = more;
        scan->open_max = max;
    }
    scan->open[scan->depth++] = elements << 2 | bits;
}

/* The term begins behind the version byte. */
static inline void etf_scan_open(struct etf_scan *scan)
{
    *scan = (struct etf_scan){.at = 1};
    etf_scan_push(scan, 1, 0);
}

/* Takes this number of bytes; NULL when there are fewer. */
static inline const uint8_t *etf_scan_take(struct etf_scan *scan, const uint8_t *data,
                                           uint64_t size, uint64_t bytes)
{
    const uint8_t *place = data + scan->at;

    if (scan->wrong != NULL)
        return NULL;
    if (bytes > size - scan->at) {
        scan->wrong = "payload";
        return NULL;
    }
    scan->at += bytes;
    return place;
}

/* An unsigned number of this length in bytes; 0 when they are not there. */
static inline uint64_t etf_scan_number(struct etf_scan *scan, const uint8_t *data, uint64_t size,
                                       int bytes)
{
    const uint8_t *place = etf_scan_take(scan, data, size, (uint64_t)bytes);
    uint64_t number = 0;

    if (place == NULL)
        return 0;
#pragma GCC unroll 8 /* into one load, where their number is known */
    for (int i = 0; i < bytes; i++)
        number = number << 8 | place[i];
    return number;
}

/* An atom, which is part of an identifier or of a fun. */
static inline void etf_scan_atom(struct etf_scan *scan, const uint8_t *data, uint64_t size)
{
    const uint64_t tag = etf_scan_number(scan, data, size, 1);
    const int is_short = tag == ETF_SMALL_ATOM_UTF8 || tag == ETF_SMALL_ATOM;
    const uint64_t len = etf_scan_number(scan, data, size, is_short ? 1 : 2);

    (void)etf_scan_take(scan, data, size, len);
    if (scan->wrong == NULL &&
        ((!is_short && tag != ETF_ATOM_UTF8 && tag != ETF_ATOM) || len > ETF_ATOM_BYTES_MAX))
        scan->wrong = "payload";
}

static inline void etf_scan_name(struct etf_scan *scan, uint64_t hash)
{
    if (scan->names != NULL) {
        if (!etf_names_add(scan->names, hash))
            scan->wrong = "nodes";
        return;
    }
    for (int i = 0; i < scan->few_len; i++)
        if (scan->few[i] == hash)
            return;
    if (scan->few_len == ETF_NAMES_FEW)
        scan->wrong = "few";
    else
        scan->few[scan->few_len++] = hash;
}

/* An identifier's node and what is behind it, to the end of the creation. Returns what is behind the
 * node's name; NULL where it is not there. */
static inline const uint8_t *etf_scan_node(struct etf_scan *scan, const uint8_t *data,
                                           uint64_t size, uint8_t tag)
{
    const uint64_t name = scan->at + 1;
    struct etf_identifier form = {0, 0, 0};
    const uint8_t *behind;
    uint64_t end, hash;

    (void)etf_identifier(tag, &form);
    etf_scan_atom(scan, data, size);
    end = scan->at;
    behind = etf_scan_take(scan, data, size, (uint64_t)form.between + form.creation);
    if (behind != NULL && !etf_is_identifier(tag, &form, behind))
        scan->wrong = "payload";
    if ((scan->names == NULL && !scan->counts_few) || scan->wrong != NULL)
        return scan->wrong == NULL ? behind : NULL;
    hash = etf_names_hash(scan->names_seed, data + name, end - name, behind + form.between,
                          form.creation);
    if (hash != scan->last_name)
        etf_scan_name(scan, hash);
    scan->last_name = hash;
    return scan->wrong == NULL ? behind : NULL;
}

/* Elements to come, each one byte at least. */
static inline void etf_scan_elements(struct etf_scan *scan, uint64_t size, uint64_t elements,
                                     uint64_t bits)
{
    if (elements > size - scan->at)
        scan->wrong = "payload";
    etf_scan_push(scan, elements, bits);
}

#define ETF_SCAN_WORD 8

static inline uint64_t etf_scan_words(uint64_t bytes)
{
    return (bytes + ETF_SCAN_WORD - 1) / ETF_SCAN_WORD * ETF_SCAN_WORD;
}

/* Above this a map is a tree. */
#define ETF_TREE_PAIRS 32

/* `words` are as in the external format; NULL when they are not there. */
static inline void etf_scan_reference(struct etf_scan *scan, const uint8_t *words, uint64_t len)
{
    struct etf_reference *reference;

    scan->heap += 10 * ETF_SCAN_WORD;
    if (words == NULL)
        return;
    scan->has_long |= len > 3;
    scan->has_short |= len < 3;
    if (scan->references_len == scan->references_max) {
        const uint32_t max = scan->references_max > 0 ? scan->references_max * 2 : 16;
        struct etf_reference *more =
            max > ETF_REFERENCES_MAX ? NULL
                                     : realloc(scan->references, max * sizeof *scan->references);

        if (more == NULL) {
            scan->has_more = 1;
            return;
        }
        scan->references = more;
        scan->references_max = max;
    }
    reference = &scan->references[scan->references_len++];
    *reference = (struct etf_reference){.len = (uint32_t)len, .rest = words + 12};
    for (uint64_t i = 0; i < 3 && i < len; i++)
        memcpy(&reference->words[i], words + 4 * i, 4);
}

static inline int etf_scan_order(const void *a, const void *b)
{
    const struct etf_reference *x = (const struct etf_reference *)a;
    const struct etf_reference *y = (const struct etf_reference *)b;

    return memcmp(x->words, y->words, sizeof x->words);
}

/* Whether two of them agree in three words and are not the same. At most 4096, in half a
 * millisecond; for a term that has a long one and a large map at all. */
static inline int etf_scan_has_pair(struct etf_scan *scan)
{
    if (scan->has_more)
        return 1;
    qsort(scan->references, scan->references_len, sizeof *scan->references, etf_scan_order);
    for (uint32_t i = 1; i < scan->references_len; i++) {
        const struct etf_reference *x = &scan->references[i - 1], *y = &scan->references[i];

        if (memcmp(x->words, y->words, sizeof x->words) == 0 &&
            (x->len != y->len || (x->len > 3 && memcmp(x->rest, y->rest, 4 * (x->len - 3)) != 0)))
            return 1;
    }
    return 0;
}

/* One item, without its elements. `key` is ETF_OPEN_KEY within a key. */
static inline void etf_scan_item(struct etf_scan *scan, const uint8_t *data, uint64_t size,
                                 uint64_t key)
{
    const uint8_t tag = (uint8_t)etf_scan_number(scan, data, size, 1);
    uint64_t n;

    switch (tag) {
    case ETF_SMALL_INTEGER:
        (void)etf_scan_take(scan, data, size, 1);
        break;
    case ETF_INTEGER:
        (void)etf_scan_take(scan, data, size, 4);
        break;
    case ETF_NEW_FLOAT:
        (void)etf_scan_take(scan, data, size, 8);
        scan->heap += 2 * ETF_SCAN_WORD;
        break;
    case ETF_FLOAT:
        (void)etf_scan_take(scan, data, size, 31);
        scan->heap += 2 * ETF_SCAN_WORD;
        break;
    case ETF_SMALL_BIG:
        n = etf_scan_number(scan, data, size, 1);
        (void)etf_scan_take(scan, data, size, n + 1);
        scan->heap += ETF_SCAN_WORD + etf_scan_words(n);
        break;
    case ETF_LARGE_BIG:
        n = etf_scan_number(scan, data, size, 4);
        (void)etf_scan_take(scan, data, size, n + 1);
        scan->heap += ETF_SCAN_WORD + etf_scan_words(n);
        break;
    case ETF_SMALL_ATOM_UTF8:
    case ETF_SMALL_ATOM:
        (void)etf_scan_take(scan, data, size, etf_scan_number(scan, data, size, 1));
        break;
    case ETF_ATOM_UTF8:
    case ETF_ATOM:
        (void)etf_scan_take(scan, data, size, etf_scan_number(scan, data, size, 2));
        break;
    case ETF_SMALL_TUPLE:
        n = etf_scan_number(scan, data, size, 1);
        scan->heap += (1 + n) * ETF_SCAN_WORD;
        etf_scan_elements(scan, size, n, key);
        break;
    case ETF_LARGE_TUPLE:
        n = etf_scan_number(scan, data, size, 4);
        scan->heap += (1 + n) * ETF_SCAN_WORD;
        etf_scan_elements(scan, size, n, key);
        break;
    case ETF_NIL:
        break;
    case ETF_STRING:
        n = etf_scan_number(scan, data, size, 2);
        (void)etf_scan_take(scan, data, size, n);
        scan->heap += 2 * n * ETF_SCAN_WORD;
        break;
    case ETF_LIST:
        n = etf_scan_number(scan, data, size, 4);
        scan->heap += 2 * n * ETF_SCAN_WORD;
        etf_scan_elements(scan, size, n + 1, key);
        break;
    case ETF_BINARY:
        n = etf_scan_number(scan, data, size, 4);
        (void)etf_scan_take(scan, data, size, n);
        scan->heap += etf_scan_words(n) + (n > 64 ? 14 : 2) * ETF_SCAN_WORD;
        break;
    case ETF_BIT_BINARY:
        n = etf_scan_number(scan, data, size, 4);
        (void)etf_scan_take(scan, data, size, n + 1);
        scan->heap += etf_scan_words(n) + (n > 64 ? 20 : 8) * ETF_SCAN_WORD;
        break;
    case ETF_MAP:
        n = etf_scan_number(scan, data, size, 4);
        scan->heap += (n > 32 ? 8 + 6 * n : 5 + 2 * n) * ETF_SCAN_WORD;
        scan->pairs += n;
        scan->has_tree |= n > ETF_TREE_PAIRS;
        etf_scan_elements(scan, size, 2 * n, ETF_OPEN_MAP | key);
        break;
    case ETF_NEW_PID:
    case ETF_PID:
    case ETF_NEW_PORT:
    case ETF_V4_PORT:
    case ETF_PORT:
        (void)etf_scan_node(scan, data, size, tag);
        scan->heap += 8 * ETF_SCAN_WORD;
        break;
    case ETF_REFERENCE: /* of one word, which stands before the creation */
        etf_scan_reference(scan, etf_scan_node(scan, data, size, tag), 1);
        break;
    case ETF_NEW_REFERENCE:
    case ETF_NEWER_REFERENCE:
        n = etf_scan_number(scan, data, size, 2);
        (void)etf_scan_node(scan, data, size, tag);
        etf_scan_reference(scan, etf_scan_take(scan, data, size, 4 * n), n);
        break;
    case ETF_EXPORT: /* module, function, arity as a term */
        etf_scan_atom(scan, data, size);
        etf_scan_atom(scan, data, size);
        (void)etf_scan_take(scan, data, size, 2);
        scan->heap += 8 * ETF_SCAN_WORD;
        break;
    case ETF_NEW_FUN: /* size, arity, uniq, index; module, old index, old uniq, pid, variables */
        (void)etf_scan_take(scan, data, size, 4 + 1 + 16 + 4);
        n = etf_scan_number(scan, data, size, 4);
        scan->heap += (8 + n) * ETF_SCAN_WORD;
        etf_scan_elements(scan, size, 4 + n, key);
        break;
    default: /* compressed, parts of the distribution's protocol, or nothing that there is */
        if (scan->wrong == NULL)
            scan->wrong = "payload";
    }
}

/* Walks over at most this number of items. */
static inline enum etf_scan_end etf_scan_some(struct etf_scan *scan, const uint8_t *data,
                                              uint64_t size, int items)
{
    for (; items > 0 && scan->depth > 0 && scan->wrong == NULL; items--) {
        uint64_t *const open = &scan->open[scan->depth - 1];
        const uint64_t left = *open >> 2, at = scan->at;
        const int is_key = (*open & ETF_OPEN_KEY) || ((*open & ETF_OPEN_MAP) && left % 2 == 0);

        /* The last element's own elements take its place: a long chain of tails stays flat. */
        if (left == 1)
            scan->depth--;
        else
            *open -= 4;
        etf_scan_item(scan, data, size, is_key ? ETF_OPEN_KEY : 0);
        if (is_key)
            scan->key_bytes += scan->at - at;
    }
    if (scan->wrong == NULL && scan->depth == 0 && scan->at != size)
        scan->wrong = "payload";
    if (scan->wrong == NULL && scan->depth == 0 && scan->has_tree &&
        (scan->has_short || (scan->has_long && etf_scan_has_pair(scan))))
        scan->wrong = "references";
    return scan->wrong != NULL ? ETF_SCAN_WRONG : scan->depth == 0 ? ETF_SCAN_DONE : ETF_SCAN_MORE;
}

#endif
