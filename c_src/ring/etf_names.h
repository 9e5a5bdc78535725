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

/* A cluster has some hundred nodes, and each is started anew from time to time. */
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

#endif
