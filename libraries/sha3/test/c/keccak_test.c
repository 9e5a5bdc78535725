/* Each implementation against the portable one, and that one against published values. */
#include "subject.h"

#include <sys/mman.h>
#include <unistd.h>

static void a_permutation_of_zeros_is_the_published_one(void)
{
    uint64_t lanes[KECCAK_LANES] = {0};

    keccak_permute(subject, lanes, 24);
    CHECK_EQ(lanes[0], 0xf1258f7940e1dde7);
    CHECK_EQ(lanes[1], 0x84d5ccf933c0478a);
    keccak_permute(subject, lanes, 24);
    CHECK_EQ(lanes[0], 0x2d5c954df96ecb3c);
    CHECK_EQ(lanes[1], 0x6a332cd07057b56d);
}

/* So many states at once, each with an input of its own that ends where it may be read. */
static void compare(unsigned states, unsigned rounds, size_t rate, size_t blocks)
{
    uint64_t expected[KECCAK_LANES * KECCAK_ABREAST_MAX], got[KECCAK_LANES * KECCAK_ABREAST_MAX];
    unsigned char *inputs[KECCAK_ABREAST_MAX];
    const unsigned char *from[KECCAK_ABREAST_MAX];

    fill_random(expected, sizeof expected);
    memcpy(got, expected, sizeof got);
    for (unsigned i = 0; i < states; i++)
        from[i] = inputs[i] = random_bytes(rate * blocks);
    if (states == 1) {
        keccak_portable.absorb(expected, rounds, rate, from[0], blocks);
        subject->absorb(got, rounds, rate, from[0], blocks);
    } else {
        (states == 4 ? keccak_portable.four : keccak_portable.eight)(expected, rounds, rate, from,
                                                                     blocks);
        (states == 4 ? subject->four : subject->eight)(got, rounds, rate, from, blocks);
    }
    CHECK_EQ(same(got, expected, sizeof got), 1);
    for (unsigned i = 0; i < states; i++)
        free(inputs[i]);
}

static void every_implementation_is_the_portable_one(void)
{
    static const unsigned widths[] = {1, 4, 8};

    for (size_t w = 0; w < 3; w++)
        for (unsigned rounds = 12; rounds <= 24; rounds += 12)
            for (size_t rate = 0; rate < 200; rate += 8)
                for (size_t blocks = 1; blocks < 8; blocks++)
                    compare(widths[w], rounds, rate, blocks);
}

static void random_states_stay_the_same_through_many_permutations(void)
{
    for (int i = 0; i < 200; i++) {
        compare(1, 24, 0, 10);
        compare(4, 12, 0, 10);
        compare(8, 24, 0, 10);
    }
}

/* Nothing of one state gets into another. */
static void states_abreast_are_permuted_apart(void)
{
    uint64_t many[KECCAK_LANES * 8], one[KECCAK_LANES];

    fill_random(many, sizeof many);
    for (unsigned s = 0; s < 8; s++) {
        uint64_t abreast[KECCAK_LANES * 8];

        memcpy(abreast, many, sizeof many);
        for (unsigned l = 0; l < KECCAK_LANES; l++)
            one[l] = many[8 * l + s];
        keccak_permute(&keccak_portable, one, 24);
        subject->eight(abreast, 24, 0, NULL, 1);
        for (unsigned l = 0; l < KECCAK_LANES; l++)
            CHECK_EQ(abreast[8 * l + s], one[l]);
    }
}

/* Assembly is no concern of a sanitizer's: a page that nobody may read lies behind the inputs. */
static void no_byte_behind_an_input_is_read(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t lanes[KECCAK_LANES * KECCAK_ABREAST_MAX] = {0};

    if (pages == MAP_FAILED || mprotect(pages + page, page, PROT_NONE) != 0)
        abort();
    for (size_t rate = 8; rate < 200; rate += 8)
        for (size_t blocks = 1; blocks < 4; blocks++) {
            const unsigned char *from[KECCAK_ABREAST_MAX];

            for (size_t i = 0; i < KECCAK_ABREAST_MAX; i++)
                from[i] = pages + page - rate * blocks;
            subject->absorb(lanes, 24, rate, from[0], blocks);
            subject->four(lanes, 12, rate, from, blocks);
            subject->eight(lanes, 24, rate, from, blocks);
        }
    CHECK_EQ(lanes[0] != 0, 1);
    (void)munmap(pages, 2 * page);
}

static void a_name_that_nobody_has_chooses_nothing(void)
{
    CHECK_EQ(keccak_choose("sparc") == NULL, 1);
    CHECK_EQ(keccak_choose("") == NULL, 1);
    CHECK_EQ(keccak_choose("portable") == &keccak_portable, 1);
    CHECK_EQ(keccak_choose(NULL) != NULL, 1);
}

int main(void)
{
    SUBJECT_OR_SKIP();
    RUN(a_permutation_of_zeros_is_the_published_one);
    RUN(every_implementation_is_the_portable_one);
    RUN(random_states_stay_the_same_through_many_permutations);
    RUN(states_abreast_are_permuted_apart);
    RUN(no_byte_behind_an_input_is_read);
    RUN(a_name_that_nobody_has_chooses_nothing);
    return check_report();
}
