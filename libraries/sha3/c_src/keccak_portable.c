/* Every machine with 64-bit words. Several states are permuted one after the other. */
#include "keccak_one.h"

const uint64_t keccak_constants[24] = {
    0x0000000000000001, 0x0000000000008082, 0x800000000000808a, 0x8000000080008000,
    0x000000000000808b, 0x0000000080000001, 0x8000000080008081, 0x8000000000008009,
    0x000000000000008a, 0x0000000000000088, 0x0000000080008009, 0x000000008000000a,
    0x000000008000808b, 0x800000000000008b, 0x8000000000008089, 0x8000000000008003,
    0x8000000000008002, 0x8000000000000080, 0x000000000000800a, 0x800000008000000a,
    0x8000000080008081, 0x8000000000008080, 0x0000000080000001, 0x8000000080008008};

static void absorb_each(unsigned states, uint64_t *lanes, unsigned rounds, size_t rate,
                        const unsigned char *const *from, size_t blocks)
{
    uint64_t one[KECCAK_LANES];

    for (unsigned s = 0; s < states; s++) {
        for (unsigned l = 0; l < KECCAK_LANES; l++)
            one[l] = lanes[states * l + s];
        absorb_one(one, rounds, rate, rate > 0 ? from[s] : NULL, blocks);
        for (unsigned l = 0; l < KECCAK_LANES; l++)
            lanes[states * l + s] = one[l];
    }
    wipe(one, sizeof one);
}

static void four(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *const *from,
                 size_t blocks)
{
    absorb_each(4, lanes, rounds, rate, from, blocks);
}

static void eight(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *const *from,
                  size_t blocks)
{
    absorb_each(8, lanes, rounds, rate, from, blocks);
}

const struct keccak keccak_portable = {
    .name = "portable", .abreast = 1, .absorb = absorb_one, .four = four, .eight = eight};
