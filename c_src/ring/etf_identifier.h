/* etf_identifier.h - identifiers in external format: pids, ports and references. Where the name of the
 * node stands in them, and what the emulator takes for one. */
#ifndef TAME_RING_ETF_IDENTIFIER_H
#define TAME_RING_ETF_IDENTIFIER_H

#include <stdint.h>

#include "etf_tags.h"

/* Bytes of: tag and count in front of the node's name, an atom; numbers between it and the node's
 * creation; and the creation. A reference's numbers, but those of the oldest form, stand behind. */
struct etf_identifier {
    uint8_t head, between, creation;
};

/* Returns 0 where it is another tag. */
static inline int etf_identifier(uint8_t tag, struct etf_identifier *form)
{
    switch (tag) {
    case ETF_NEW_PID:
    case ETF_V4_PORT:
        *form = (struct etf_identifier){1, 8, 4};
        return 1;
    case ETF_NEW_PORT:
        *form = (struct etf_identifier){1, 4, 4};
        return 1;
    case ETF_NEWER_REFERENCE:
        *form = (struct etf_identifier){3, 0, 4};
        return 1;
    case ETF_PID:
        *form = (struct etf_identifier){1, 8, 1};
        return 1;
    case ETF_PORT:
    case ETF_REFERENCE:
        *form = (struct etf_identifier){1, 4, 1};
        return 1;
    case ETF_NEW_REFERENCE:
        *form = (struct etf_identifier){3, 0, 1};
        return 1;
    default:
        return 0;
    }
}

/* 255 characters of 4 bytes. */
#define ETF_ATOM_BYTES_MAX 1020

/* What is behind the node's name, to the end of the creation: the manual says that of a creation of
 * one byte two bits count, of a reference of one number 18. The emulator refuses more. */
static inline int etf_is_identifier(uint8_t tag, const struct etf_identifier *form,
                                    const uint8_t *behind)
{
    if (tag == ETF_REFERENCE && (behind[0] != 0 || behind[1] > 3))
        return 0;
    return form->creation > 1 || behind[form->between] <= 3;
}

#endif
