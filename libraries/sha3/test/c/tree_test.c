/* KangarooTwelve and ParallelHash in any cuts, with any budget, with and without a buffer, against
 * the definition: one leaf after the other, by sponges. */
#include "kt.h"
#include "parallel_hash.h"
#include "sp800_185.h"
#include "subject.h"

/* ---- the definition ---- */

static void naive_parallel_hash(unsigned bits, size_t leaf_size, const unsigned char *bytes,
                                size_t size, unsigned char to[64])
{
    unsigned char number[SP800_185_NUMBER_MAX], value[64];
    struct sponge top, leaf;
    uint64_t leaves = 0;

    cshake_init(&top, &keccak_portable, bits, "ParallelHash", 12, "custom", 6);
    sponge_absorb(&top, number, left_encode(number, leaf_size));
    for (size_t at = 0; at < size; at += leaf_size, leaves++) {
        cshake_init(&leaf, &keccak_portable, bits, NULL, 0, NULL, 0);
        sponge_absorb(&leaf, bytes + at, size - at < leaf_size ? size - at : leaf_size);
        sponge_squeeze(&leaf, value, bits / 4);
        sponge_absorb(&top, value, bits / 4);
    }
    sponge_absorb(&top, number, right_encode(number, leaves));
    sponge_absorb(&top, number, right_encode(number, 64 * 8));
    sponge_squeeze(&top, to, 64);
}

static void kt_number(struct sponge *sponge, uint64_t number)
{
    unsigned char bytes[9];
    unsigned size = 0;

    for (int i = 7; i >= 0; i--)
        if (number >> 8 * i != 0)
            bytes[size++] = (unsigned char)(number >> 8 * i);
    bytes[size] = (unsigned char)size;
    sponge_absorb(sponge, bytes, size + 1);
}

/* Of a message without a customization string, whose size is the byte 0 that ends it. */
static void naive_kt(unsigned bits, const unsigned char *message, size_t message_size,
                     unsigned char to[64])
{
    const size_t size = message_size + 1;
    unsigned char *bytes = memory(size), value[64];
    struct sponge_kind kind = sponge_turboshake(bits, size <= KT_LEAF_BYTES ? 0x07 : 0x06);
    struct sponge top, leaf;
    uint64_t leaves = 0;

    if (message_size > 0)
        memcpy(bytes, message, message_size);
    bytes[message_size] = 0;
    sponge_init(&top, &keccak_portable, &kind);
    sponge_absorb(&top, bytes, size < KT_LEAF_BYTES ? size : KT_LEAF_BYTES);
    if (size > KT_LEAF_BYTES) {
        kind = sponge_turboshake(bits, 0x0b);
        sponge_absorb(&top, "\3\0\0\0\0\0\0\0", 8);
        for (size_t at = KT_LEAF_BYTES; at < size; at += KT_LEAF_BYTES, leaves++) {
            sponge_init(&leaf, &keccak_portable, &kind);
            sponge_absorb(&leaf, bytes + at, size - at < KT_LEAF_BYTES ? size - at : KT_LEAF_BYTES);
            sponge_squeeze(&leaf, value, bits / 4);
            sponge_absorb(&top, value, bits / 4);
        }
        kt_number(&top, leaves);
        sponge_absorb(&top, "\377\377", 2);
    }
    sponge_squeeze(&top, to, 64);
    free(bytes);
}

/* ---- the subject ---- */

/* The input comes in pieces; each call has a number of blocks to spend. A piece lies in memory of its
 * own, so that a sanitizer sees what is read behind it. */
struct way {
    size_t piece, budget, buffer;
};

static unsigned char *copy_of(const unsigned char *bytes, size_t size)
{
    unsigned char *copy = memory(size);

    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

static void parallel_hash_in(const struct way *way, unsigned bits, size_t leaf_size,
                             const unsigned char *bytes, size_t size, unsigned char to[64])
{
    unsigned char *buffer = way->buffer > 0 ? memory(way->buffer) : NULL;
    struct parallel_hash p;
    size_t blocks = way->budget;

    parallel_hash_init(&p, subject, bits, leaf_size, "custom", 6, buffer, way->buffer);
    for (size_t at = 0; at < size; at += way->piece) {
        const size_t some = size - at < way->piece ? size - at : way->piece;
        unsigned char *piece = copy_of(bytes + at, some);

        for (size_t done = 0; done < some; blocks = way->budget)
            done += parallel_hash_absorb(&p, piece + done, some - done, &blocks);
        free(piece);
    }
    while (!parallel_hash_end(&p, 64, &blocks))
        blocks = way->budget;
    parallel_hash_squeeze(&p, to, 20);
    parallel_hash_squeeze(&p, to + 20, 44);
    free(buffer);
}

static void kt_in(const struct way *way, unsigned bits, const unsigned char *bytes, size_t size,
                  unsigned char to[64])
{
    unsigned char *buffer = way->buffer > 0 ? memory(way->buffer) : NULL;
    size_t blocks = way->budget;
    struct kt kt;

    kt_init(&kt, subject, bits, buffer, way->buffer);
    for (size_t at = 0; at < size; at += way->piece) {
        const size_t some = size - at < way->piece ? size - at : way->piece;
        unsigned char *piece = copy_of(bytes + at, some);

        for (size_t done = 0; done < some; blocks = way->budget)
            done += kt_absorb(&kt, piece + done, some - done, &blocks);
        free(piece);
    }
    while (!kt_end(&kt, 0, &blocks))
        blocks = way->budget;
    kt_squeeze(&kt, to, 1);
    kt_squeeze(&kt, to + 1, 63);
    free(buffer);
}

static void ParallelHash_of_any_leaf_size_in_any_way(void)
{
    static const size_t leaf_sizes[] = {1, 7, 8, 64, 135, 136, 137, 168, 336, 500};
    static const size_t pieces[] = {1, 13, 500, 1361, 5000};
    static const size_t budgets[] = {1, 2, 7, 50, SIZE_MAX};
    static const size_t buffers[] = {0, 600, 2 * 336, 8 * 500 + 3};
    const size_t size = 5000;
    unsigned char *bytes = random_bytes(size), expected[64], got[64];

    for (unsigned bits = 128; bits <= 256; bits += 128)
        for (size_t l = 0; l < sizeof leaf_sizes / sizeof *leaf_sizes; l++) {
            naive_parallel_hash(bits, leaf_sizes[l], bytes, size, expected);
            for (int i = 0; i < 5 * 5 * 4; i++) {
                const struct way way = {pieces[i % 5], budgets[i / 5 % 5], buffers[i / 25]};

                parallel_hash_in(&way, bits, leaf_sizes[l], bytes, size, got);
                CHECK_EQ(same(got, expected, sizeof got), 1);
            }
        }
    free(bytes);
}

static void ParallelHash_of_any_size(void)
{
    unsigned char *bytes = random_bytes(700), expected[64], got[64];

    for (size_t size = 0; size <= 700; size++) {
        const struct way way = {1 + size % 97 * 8, 1 + size % 5, size % 3 * 400};

        naive_parallel_hash(128, 40, bytes, size, expected);
        parallel_hash_in(&way, 128, 40, bytes, size, got);
        CHECK_EQ(same(got, expected, sizeof got), 1);
    }
    free(bytes);
}

/* Around the ends of leaves, and of groups of 4 and 8 of them. */
static void KangarooTwelve_around_the_ends_of_leaves(void)
{
    static const struct way ways[] = {{SIZE_MAX / 2, SIZE_MAX, TREE_BUFFER_BYTES},
                                      {SIZE_MAX / 2, 30, 0},
                                      {8192, 40, TREE_BUFFER_BYTES},
                                      {10000, 3, TREE_BUFFER_BYTES},
                                      {4001, 100, 3 * 8192},
                                      {70001, 17, TREE_BUFFER_BYTES}};
    static const size_t leaves[] = {1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 17, 26};
    unsigned char *bytes = random_bytes(27 * KT_LEAF_BYTES), expected[64], got[64];

    for (unsigned bits = 128; bits <= 256; bits += 128)
        for (size_t l = 0; l < sizeof leaves / sizeof *leaves; l++)
            for (int around = -2; around <= 1; around++) {
                const size_t size = leaves[l] * KT_LEAF_BYTES + (size_t)around;

                naive_kt(bits, bytes, size, expected);
                for (size_t w = 0; w < sizeof ways / sizeof *ways; w++) {
                    kt_in(&ways[w], bits, bytes, size, got);
                    CHECK_EQ(same(got, expected, sizeof got), 1);
                }
            }
    free(bytes);
}

static void KangarooTwelve_of_short_messages(void)
{
    const struct way way = {100, 1, 0};
    unsigned char *bytes = random_bytes(400), expected[64], got[64];

    for (size_t size = 0; size <= 400; size++) {
        naive_kt(128, bytes, size, expected);
        kt_in(&way, 128, bytes, size, got);
        CHECK_EQ(same(got, expected, sizeof got), 1);
    }
    free(bytes);
}

static void a_copy_with_a_buffer_of_its_own_goes_on_alone(void)
{
    enum { SIZE = 12 * KT_LEAF_BYTES };
    unsigned char *bytes = random_bytes(SIZE), *buffer = memory(TREE_BUFFER_BYTES),
                  *other = memory(TREE_BUFFER_BYTES), expected[64], got[64];

    for (size_t cut = 0; cut < SIZE; cut += 5000) {
        size_t blocks = SIZE_MAX;
        struct kt kt, copy;

        kt_init(&kt, subject, 128, buffer, TREE_BUFFER_BYTES);
        CHECK_EQ(kt_absorb(&kt, bytes, cut, &blocks), cut);
        copy = kt;
        tree_unshare(&copy.tree, other);
        CHECK_EQ(kt_absorb(&kt, bytes, 777, &blocks), 777); /* goes elsewhere */
        CHECK_EQ(kt_absorb(&copy, bytes + cut, SIZE - cut, &blocks), SIZE - cut);
        CHECK_EQ(kt_end(&copy, 0, &blocks), 1);
        kt_squeeze(&copy, got, sizeof got);
        naive_kt(128, bytes, SIZE, expected);
        CHECK_EQ(same(got, expected, sizeof got), 1);
    }
    free(bytes);
    free(buffer);
    free(other);
}

/* No call does more than its blocks, but for the permutation abreast that it has begun with the
 * last one, and what follows from it. Counted by the permutations themselves. */
static size_t permutations;

static void count_one(uint64_t *lanes, unsigned rounds, size_t rate, const unsigned char *from,
                      size_t blocks)
{
    permutations += blocks;
    keccak_portable.absorb(lanes, rounds, rate, from, blocks);
}

static void count_four(uint64_t *lanes, unsigned rounds, size_t rate,
                       const unsigned char *const *from, size_t blocks)
{
    permutations += blocks * KECCAK_ABREAST_COST;
    keccak_portable.four(lanes, rounds, rate, from, blocks);
}

static void count_eight(uint64_t *lanes, unsigned rounds, size_t rate,
                        const unsigned char *const *from, size_t blocks)
{
    permutations += blocks * KECCAK_ABREAST_COST;
    keccak_portable.eight(lanes, rounds, rate, from, blocks);
}

static void no_call_works_for_longer_than_it_may(void)
{
    static const size_t leaf_sizes[] = {1, 8, 200, 8192, 50000};
    const size_t size = 300000, budget = 100;
    unsigned char *bytes = random_bytes(size), *buffer = memory(TREE_BUFFER_BYTES);

    for (unsigned abreast = 1; abreast <= 8; abreast += abreast == 1 ? 3 : 4) {
        const struct keccak counting = {"counting", abreast, count_one, count_four, count_eight};

        for (size_t l = 0; l < sizeof leaf_sizes / sizeof *leaf_sizes; l++) {
            const size_t some = leaf_sizes[l] < 200 ? 3000 : size;
            struct parallel_hash p;
            size_t most = 0, blocks, done = 0;
            int ended = 0;

            parallel_hash_init(&p, &counting, 256, leaf_sizes[l], NULL, 0, buffer,
                               TREE_BUFFER_BYTES);
            while (!ended) {
                permutations = 0;
                blocks = budget;
                if (done < some)
                    done += parallel_hash_absorb(&p, bytes + done, some - done, &blocks);
                else
                    ended = parallel_hash_end(&p, 32, &blocks);
                most = permutations > most ? permutations : most;
            }
            CHECK_EQ(most > 0, 1);
            CHECK_EQ(most <= budget + 8, 1);
        }
    }
    free(bytes);
    free(buffer);
}

int main(void)
{
    SUBJECT_OR_SKIP();
    RUN(ParallelHash_of_any_leaf_size_in_any_way);
    RUN(ParallelHash_of_any_size);
    RUN(KangarooTwelve_around_the_ends_of_leaves);
    RUN(KangarooTwelve_of_short_messages);
    RUN(a_copy_with_a_buffer_of_its_own_goes_on_alone);
    RUN(no_call_works_for_longer_than_it_may);
    return check_report();
}
