/* Four states abreast in 256-bit registers, and one with BMI's instructions, which every processor
 * with AVX2 has. Compiled with -mavx2 -mbmi -mbmi2. */
#if defined(__x86_64__) && defined(__AVX2__) && defined(__BMI__) && defined(__BMI2__)
#include "keccak_one.h"

typedef uint64_t four_words __attribute__((vector_size(32)));

KECCAK_ROUND(round_of_four, four_words)

static inline four_words load(const uint64_t *from)
{
    four_words lanes;

    memcpy(&lanes, from, sizeof lanes);
    return lanes;
}

/* Four states of those that are interleaved by `stride`. */
static inline __attribute__((always_inline)) void absorb_four(uint64_t *lanes, size_t stride,
                                                              unsigned rounds, size_t rate,
                                                              const unsigned char *const *from,
                                                              size_t blocks)
{
    four_words a[KECCAK_LANES], e[KECCAK_LANES];

    for (size_t l = 0; l < KECCAK_LANES; l++)
        a[l] = load(lanes + stride * l);
    for (size_t at = 0; blocks > 0; blocks--, at += rate) {
        for (size_t l = 0; l < rate / 8; l++)
            a[l] ^= (four_words){lane_load(from[0] + at + 8 * l), lane_load(from[1] + at + 8 * l),
                                 lane_load(from[2] + at + 8 * l), lane_load(from[3] + at + 8 * l)};
        for (unsigned r = 24 - rounds; r < 24; r += 2) {
            round_of_four(e, a, keccak_constants[r]);
            round_of_four(a, e, keccak_constants[r + 1]);
        }
    }
    for (size_t l = 0; l < KECCAK_LANES; l++)
        memcpy(lanes + stride * l, &a[l], sizeof a[l]);
}

static void four(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *const *from,
                 size_t blocks)
{
    absorb_four(lanes, 4, rounds, rate, from, blocks);
}

static void eight(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *const *from,
                  size_t blocks)
{
    absorb_four(lanes, 8, rounds, rate, from, blocks);
    absorb_four(lanes + 4, 8, rounds, rate, rate > 0 ? from + 4 : NULL, blocks);
}

const struct keccak keccak_avx2 = {
    .name = "avx2", .abreast = 4, .absorb = absorb_one, .four = four, .eight = eight};
#endif
