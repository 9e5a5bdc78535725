/* etf_names.h - the names of nodes that a host writes: each pid, port and reference in external
 * format has one, with the node's creation. The emulator keeps an entry for each pair that it has
 * ever decoded, for a minute after the last term of it is gone. So a host may write a bounded
 * number of them; our own node's counts as any other.
 *
 * Plain C, and safe to use by several threads at once: then the bound is off by their number. */
#ifndef TAME_RING_ETF_NAMES_H
#define TAME_RING_ETF_NAMES_H

#include <stdint.h>
#include <string.h>

#include "etf_tags.h"

/* A cluster has some hundred nodes, each of which is started anew from time to time. */
#define ETF_NAMES_MAX 1024
#define ETF_NAMES_PLACES 4096
/* As most terms have. */
#define ETF_NAMES_FEW 4
/* After which names are forgotten. */
#define ETF_NAMES_NS (60 * UINT64_C(1000000000))

/* Hashes of them: 0 is an empty place. At most a quarter is not. */
struct etf_names {
    uint64_t hashes[ETF_NAMES_PLACES];
    uint32_t len;
    uint64_t since_ns;
};

static inline uint64_t etf_names_mix(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* The seed is not for the host to know: it would make names of one hash. */
static inline uint64_t etf_names_hash(uint64_t seed, const uint8_t *name, uint64_t size,
                                      const uint8_t *creation, uint64_t creation_size)
{
    uint64_t hash = etf_names_mix(seed ^ size), word = 0;

    for (; size >= 8; size -= 8, name += 8) {
        memcpy(&word, name, 8);
        hash = etf_names_mix(hash ^ word);
    }
    word = 0;
    memcpy(&word, name, size);
    hash = etf_names_mix(hash ^ word);
    word = creation_size;
    memcpy((uint8_t *)&word + 4, creation, creation_size); /* at most 4 bytes */
    hash = etf_names_mix(hash ^ word);
    return hash != 0 ? hash : 1;
}

/* Forgets them when it is time. */
static inline void etf_names_look(struct etf_names *names, uint64_t now_ns)
{
    uint64_t since_ns = __atomic_load_n(&names->since_ns, __ATOMIC_RELAXED);

    if (now_ns - since_ns < ETF_NAMES_NS ||
        !__atomic_compare_exchange_n(&names->since_ns, &since_ns, now_ns, 0, __ATOMIC_RELAXED,
                                     __ATOMIC_RELAXED))
        return;
    for (uint32_t i = 0; i < ETF_NAMES_PLACES; i++)
        __atomic_store_n(&names->hashes[i], 0, __ATOMIC_RELAXED);
    __atomic_store_n(&names->len, 0, __ATOMIC_RELAXED);
}

/* Returns 0 when it is one too many. */
static inline int etf_names_add(struct etf_names *names, uint64_t hash)
{
    for (uint64_t i = hash;; i++) {
        uint64_t *const place = &names->hashes[i & (ETF_NAMES_PLACES - 1)];
        uint64_t there = __atomic_load_n(place, __ATOMIC_RELAXED);

        if (there == 0) {
            if (__atomic_load_n(&names->len, __ATOMIC_RELAXED) >= ETF_NAMES_MAX)
                return 0;
            if (__atomic_compare_exchange_n(place, &there, hash, 0, __ATOMIC_RELAXED,
                                            __ATOMIC_RELAXED)) {
                __atomic_fetch_add(&names->len, 1, __ATOMIC_RELAXED);
                return 1;
            }
        }
        if (there == hash)
            return 1;
    }
}

/* Sixteen bytes at once, by GCC's and clang's vectors: a comparison gives 0 or -1 for each. */
typedef int8_t etf_sixteen __attribute__((vector_size(16)));

static inline etf_sixteen etf_sixteen_at(const uint8_t *data)
{
    etf_sixteen bytes;

    memcpy(&bytes, data, sizeof bytes);
    return bytes;
}

/* Which bytes are the tag of an atom. */
static inline etf_sixteen etf_atom_tags(etf_sixteen tags)
{
    return (tags == ETF_SMALL_ATOM_UTF8) | (tags == ETF_ATOM_UTF8) | (tags == ETF_SMALL_ATOM) |
           (tags == ETF_ATOM);
}

/* Which of 16 bytes are the tag of an identifier, with that of an atom where its node has to be. 19
 * bytes are read. */
static inline etf_sixteen etf_identifiers(const uint8_t *data)
{
    const etf_sixteen tags = etf_sixteen_at(data);
    const etf_sixteen next = (tags == ETF_NEW_PID) | (tags == ETF_NEW_PORT) |
                             (tags == ETF_V4_PORT) | (tags == ETF_PID) | (tags == ETF_PORT) |
                             (tags == ETF_REFERENCE);
    const etf_sixteen third = (tags == ETF_NEWER_REFERENCE) | (tags == ETF_NEW_REFERENCE);

    return (next & etf_atom_tags(etf_sixteen_at(data + 1))) |
           (third & etf_atom_tags(etf_sixteen_at(data + 3)));
}

static inline int etf_any(etf_sixteen bytes)
{
    uint64_t halves[2];

    memcpy(halves, &bytes, sizeof halves);
    return (halves[0] | halves[1]) != 0;
}

#define ETF_NAMES_STEP 16

/* Whether an identifier might begin at one of the bytes from `from` up to `end`: its tag, and that
 * of an atom behind it. Text has them now and then. */
static inline int etf_may_have_name(const uint8_t *data, uint64_t from, uint64_t end, uint64_t size)
{
    uint8_t rest[ETF_NAMES_STEP + 3];
    uint64_t at = from;

    for (; at < end && at + sizeof rest <= size; at += ETF_NAMES_STEP)
        if (etf_any(etf_identifiers(data + at)))
            return 1;
    if (at >= end)
        return 0;
    /* The last bytes, and behind them what is no tag. */
    memset(rest, 0, sizeof rest);
    memcpy(rest, data + at, size - at);
    return etf_any(etf_identifiers(rest));
}

#endif
