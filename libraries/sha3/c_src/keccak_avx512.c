/* One state with a lane in each 128-bit register, four states in 256 bits, eight in 512: the same
 * rounds of 90 instructions and some copies. Compiled with -mavx512f -mavx512vl. */
#if defined(__x86_64__) && defined(__AVX512F__) && defined(__AVX512VL__)
#include "bytes.h"
#include "keccak.h"
#include "keccak_avx512_rounds.h"

/* A line of assembly is an instruction, or a macro of many. */
/* clang-format off */

static void one(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *from,
                size_t blocks)
{
    const uint64_t *const first = keccak_constants + (24 - rounds);
    const uint64_t *constant = first;

    __asm__ volatile(EACH_LANE(LOAD_ONE, "xmm", 8, "")
                     "1:\n\t"
                     "mov %[first], %[constant]\n\t"
                     EACH_LANE(XOR_LANE, "xmm", 8, "%{1to2%}")
                     "2:\n\t"
                     "add %[rate], %[from]\n\t"
                     "3:\n\t"
                     FOUR_ROUNDS("xmm", "%{1to2%}")
                     "add $32, %[constant]\n\t"
                     "cmp %[end], %[constant]\n\t"
                     "jne 3b\n\t"
                     "dec %[blocks]\n\t"
                     "jnz 1b\n\t"
                     EACH_LANE(STORE_ONE, "xmm", 8, "")
                     "vzeroupper\n\t"
                     : [from] "+&r"(from), [blocks] "+&r"(blocks), [constant] "+&r"(constant)
                     : [lanes] "r"(lanes), [first] "r"(first), [rate] "r"(rate),
                       [end] "r"(keccak_constants + 24)
                     : VECTOR_REGISTERS, "memory", "cc");
}

/* The next lane of input s becomes word s of the lane at `to`. */
#define COPY(s)                            \
    "mov 8*" #s "(%[inputs]), %[word]\n\t" \
    "mov (%[word],%[next]), %[word]\n\t"   \
    "mov %[word], 8*" #s "(%[to])\n\t"

#define COPY_FOUR COPY(0) COPY(1) COPY(2) COPY(3)
#define COPY_EIGHT COPY_FOUR COPY(4) COPY(5) COPY(6) COPY(7)

/* Abreast, a block of each input is interleaved in memory before it is XORed into the states. That
 * of the next block is done between the rounds of this one, a share in each pass of the loop at 3,
 * by general registers, which have nothing else to do: it costs next to no time. SIZE is that of a
 * lane of all the states. */
#define DEFINE_ABSORB(name, R, SIZE, ALL, COPY_ALL)                                  \
    static void name(uint64_t *lanes, unsigned rounds, size_t rate,                  \
                     const unsigned char *const *inputs, size_t blocks)              \
    {                                                                                \
        const uint64_t *const first = keccak_constants + (24 - rounds);              \
        const size_t all = blocks * rate, passes = rounds / 4;                       \
        const size_t share = (rate / 8 + passes - 1) / passes;                       \
        const uint64_t *constant = first;                                            \
        uint64_t block[SIZE / 8 * KECCAK_LANES];                                     \
        unsigned char *to = (unsigned char *)block;                                  \
        size_t next = 0, stop, left; /* bytes of an input; lanes of the share */     \
        uint64_t word;                                                               \
                                                                                     \
        for (; next < rate; next += 8, to += SIZE)                                   \
            for (size_t s = 0; s < SIZE / 8; s++)                                    \
                memcpy(to + 8 * s, inputs[s] + next, 8);                             \
        __asm__ volatile(EACH_LANE(LOAD_MANY, R, SIZE, "")                           \
                         "1:\n\t"                                                    \
                         "mov %[first], %[constant]\n\t"                             \
                         "lea (%[next],%[rate]), %[stop]\n\t"                        \
                         "cmp %[all], %[stop]\n\t"                                   \
                         "cmova %[all], %[stop]\n\t"                                 \
                         "mov %[from], %[to]\n\t"                                    \
                         EACH_LANE(XOR_LANE, R, SIZE, "")                            \
                         "2:\n\t"                                                    \
                         "3:\n\t"                                                    \
                         "mov %[share], %[left]\n\t"                                 \
                         "jmp 5f\n\t"                                                \
                         "4:\n\t"                                                    \
                         COPY_ALL                                                    \
                         "add $8, %[next]\n\t"                                       \
                         "add $" #SIZE ", %[to]\n\t"                                 \
                         "dec %[left]\n\t"                                           \
                         "jz 6f\n\t"                                                 \
                         "5:\n\t"                                                    \
                         "cmp %[stop], %[next]\n\t"                                  \
                         "jb 4b\n\t"                                                 \
                         "6:\n\t"                                                    \
                         FOUR_ROUNDS(R, ALL)                                         \
                         "add $32, %[constant]\n\t"                                  \
                         "cmp %[end], %[constant]\n\t"                               \
                         "jne 3b\n\t"                                                \
                         "decq %[blocks]\n\t"                                        \
                         "jnz 1b\n\t"                                                \
                         EACH_LANE(STORE_MANY, R, SIZE, "")                          \
                         "vzeroupper\n\t"                                            \
                         : [blocks] "+m"(blocks), [constant] "+&r"(constant),        \
                           [next] "+&r"(next), [to] "+&r"(to), [left] "=&r"(left),   \
                           [word] "=&r"(word), [stop] "=&r"(stop)                    \
                         : [lanes] "r"(lanes), [from] "r"(block), [rate] "r"(rate),  \
                           [inputs] "r"(inputs), [all] "m"(all), [first] "m"(first), \
                           [share] "m"(share), [end] "r"(keccak_constants + 24)      \
                         : VECTOR_REGISTERS, "memory", "cc");                        \
    }

/* clang-format on */

DEFINE_ABSORB(four, "ymm", 32, "%{1to4%}", COPY_FOUR)
DEFINE_ABSORB(eight, "zmm", 64, "%{1to8%}", COPY_EIGHT)

const struct keccak keccak_avx512 = {
    .name = "avx512", .abreast = 8, .absorb = one, .four = four, .eight = eight};
#endif
