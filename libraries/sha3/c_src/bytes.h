/* Lanes and bytes: Keccak's lanes are little-endian words, whatever the machine's are. */
#ifndef SHA3_BYTES_H
#define SHA3_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t lane_order(uint64_t lane)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    return __builtin_bswap64(lane);
#else
    return lane;
#endif
}

static inline uint64_t lane_load(const unsigned char *from)
{
    uint64_t lane;

    memcpy(&lane, from, sizeof lane);
    return lane_order(lane);
}

/* The first bytes of a lane, no more than 8; the others are 0. */
static inline uint64_t lane_load_some(const unsigned char *from, size_t size)
{
    uint64_t lane = 0;

    memcpy(&lane, from, size);
    return lane_order(lane);
}

static inline void lane_store_some(unsigned char *to, uint64_t lane, size_t size)
{
    lane = lane_order(lane);
    memcpy(to, &lane, size);
}

static inline void lane_store(unsigned char *to, uint64_t lane)
{
    lane = lane_order(lane);
    memcpy(to, &lane, sizeof lane);
}

/* Zeros. gcc does not know the size: else it writes an instruction for some hundred bytes that takes
 * 10 ns to begin. */
static inline void clear(void *memory, size_t size)
{
    __asm__("" : "+r"(size));
    memset(memory, 0, size);
}

/* For keys and what is made of them. The compiler cannot leave it out: it does not know that the
 * assembly reads nothing. */
static inline void wipe(void *memory, size_t size)
{
    clear(memory, size);
    __asm__ __volatile__("" : : "r"(memory) : "memory");
}

#endif
