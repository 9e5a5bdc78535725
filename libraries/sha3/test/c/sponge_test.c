/* Any cuts of the input and of the digest give the same bytes. */
#include "sp800_185.h"
#include "subject.h"

static const struct sponge_kind *const kinds[] = {&sponge_sha3_224, &sponge_sha3_256,
                                                  &sponge_sha3_384, &sponge_sha3_512,
                                                  &sponge_shake128, &sponge_shake256};

#define DIGEST_MAX 700 /* four blocks and more */

static void whole(const struct sponge_kind *kind, const void *bytes, size_t size, void *to,
                  size_t digest)
{
    struct sponge sponge;

    sponge_init(&sponge, &keccak_portable, kind);
    sponge_absorb(&sponge, bytes, size);
    sponge_squeeze(&sponge, to, digest);
}

/* Sizes around the ends of the first three blocks, in two pieces cut everywhere. */
static void two_pieces_are_the_whole(void)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const size_t rate = kinds[k]->rate;

        for (size_t size = 0; size <= 3 * rate + 1; size += size % rate < rate - 2 ? 37 : 1) {
            unsigned char *bytes = random_bytes(size), expected[64], got[64];

            whole(kinds[k], bytes, size, expected, sizeof expected);
            for (size_t cut = 0; cut <= size; cut++) {
                struct sponge sponge;

                sponge_init(&sponge, subject, kinds[k]);
                sponge_absorb(&sponge, bytes, cut);
                sponge_absorb(&sponge, bytes + cut, size - cut);
                sponge_squeeze(&sponge, got, sizeof got);
                CHECK_EQ(same(got, expected, sizeof got), 1);
            }
            free(bytes);
        }
    }
}

static void pieces_of_any_one_size_are_the_whole(void)
{
    enum { SIZE = 1100 };
    unsigned char *bytes = random_bytes(SIZE), expected[DIGEST_MAX], got[DIGEST_MAX];

    whole(&sponge_shake128, bytes, SIZE, expected, sizeof expected);
    for (size_t piece = 1; piece <= 400; piece++) {
        struct sponge sponge;

        sponge_init(&sponge, subject, &sponge_shake128);
        for (size_t at = 0; at < SIZE; at += piece)
            sponge_absorb(&sponge, bytes + at, SIZE - at < piece ? SIZE - at : piece);
        for (size_t at = 0; at < DIGEST_MAX; at += piece)
            sponge_squeeze(&sponge, got + at, DIGEST_MAX - at < piece ? DIGEST_MAX - at : piece);
        CHECK_EQ(same(got, expected, sizeof got), 1);
    }
    free(bytes);
}

static void a_copy_goes_on_alone(void)
{
    struct sponge one, two;
    unsigned char expected[32], got[32];

    sponge_init(&one, subject, &sponge_sha3_256);
    sponge_absorb(&one, "abc", 3);
    two = one;
    sponge_absorb(&two, "x", 1);
    sponge_squeeze(&one, got, sizeof got);
    whole(&sponge_sha3_256, "abc", 3, expected, sizeof expected);
    CHECK_EQ(same(got, expected, sizeof got), 1);
    sponge_squeeze(&two, got, sizeof got);
    whole(&sponge_sha3_256, "abcx", 4, expected, sizeof expected);
    CHECK_EQ(same(got, expected, sizeof got), 1);
}

static void cSHAKE_without_strings_is_SHAKE(void)
{
    struct sponge sponge;
    unsigned char expected[32], got[32];

    cshake_init(&sponge, subject, 256, NULL, 0, NULL, 0);
    sponge_absorb(&sponge, "abc", 3);
    sponge_squeeze(&sponge, got, sizeof got);
    whole(&sponge_shake256, "abc", 3, expected, sizeof expected);
    CHECK_EQ(same(got, expected, sizeof got), 1);
}

static void numbers_are_encoded_as_the_standard_says(void)
{
    unsigned char to[SP800_185_NUMBER_MAX];

    CHECK_EQ(left_encode(to, 0), 2);
    CHECK_EQ(same(to, "\1\0", 2), 1);
    CHECK_EQ(right_encode(to, 0), 2);
    CHECK_EQ(same(to, "\0\1", 2), 1);
    CHECK_EQ(left_encode(to, 256), 3);
    CHECK_EQ(same(to, "\2\1\0", 3), 1);
    CHECK_EQ(right_encode(to, 256), 3);
    CHECK_EQ(same(to, "\1\0\2", 3), 1);
    CHECK_EQ(left_encode(to, UINT64_MAX), 9);
    CHECK_EQ(same(to, "\10\377\377\377\377\377\377\377\377", 9), 1);
}

static void a_name_finds_its_algorithm(void)
{
    CHECK_EQ(sponge_find("sha3_384") == &sponge_sha3_384, 1);
    CHECK_EQ(sponge_find("sha3_385") == NULL, 1);
    CHECK_EQ(sponge_find("") == NULL, 1);
}

static void wiped_memory_is_zero(void)
{
    unsigned char key[40], zeros[40] = {0};

    fill_random(key, sizeof key);
    wipe(key, sizeof key);
    CHECK_EQ(same(key, zeros, sizeof key), 1);
}

int main(void)
{
    SUBJECT_OR_SKIP();
    RUN(two_pieces_are_the_whole);
    RUN(pieces_of_any_one_size_are_the_whole);
    RUN(a_copy_goes_on_alone);
    RUN(cSHAKE_without_strings_is_SHAKE);
    RUN(numbers_are_encoded_as_the_standard_says);
    RUN(a_name_finds_its_algorithm);
    RUN(wiped_memory_is_zero);
    return check_report();
}
