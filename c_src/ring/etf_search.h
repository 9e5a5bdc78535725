/* etf_search.h - whether a term in external format may hold a map, without walking over it: then it
 * needs no scan. */
#ifndef TAME_RING_ETF_SEARCH_H
#define TAME_RING_ETF_SEARCH_H

#include "etf_scan.h"

/* Bytes of a map's tag and count. */
#define ETF_MAP_HEAD 5

/* Whether a map of more than `pairs` pairs might begin at one of the bytes in front of `end`: the
 * tag, and a count that the bytes behind it can hold. Text has the tag, but hardly ever such a
 * count behind it. */
static inline int etf_scan_may_have_map(const uint8_t *data, uint64_t from, uint64_t end,
                                        uint64_t size, uint64_t pairs)
{
    const uint8_t *at = data + from, *const stop = data + end;

    while (at < stop && (at = (const uint8_t *)memchr(at, ETF_MAP, (size_t)(stop - at))) != NULL) {
        const uint64_t left = (uint64_t)(data + size - ++at);

        if (left < ETF_MAP_HEAD - 1)
            return 0;

        const uint64_t count =
            (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];

        if (count > pairs && count <= (left - (ETF_MAP_HEAD - 1)) / 2)
            return 1;
    }
    return 0;
}

/* Whether a term might hold what binary_to_term must not see: a map of more than 32 pairs, names of
 * nodes. */
static inline int etf_scan_may_be_wrong(const uint8_t *data, uint64_t size)
{
    return etf_scan_may_have_map(data, 0, size, size, ETF_TREE_PAIRS) ||
           etf_may_have_name(data, 0, size, size);
}

#endif
