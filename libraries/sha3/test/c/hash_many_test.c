/* Many messages abreast are what they are one by one. */
#include "hash_many.h"
#include "subject.h"

#define MESSAGES 60

struct messages {
    unsigned char *bytes[MESSAGES]; /* owned */
    size_t sizes[MESSAGES];
    unsigned char digests[MESSAGES][64];
};

static void messages_free(struct messages *m)
{
    for (int i = 0; i < MESSAGES; i++)
        free(m->bytes[i]);
}

static void check(const struct messages *m, const struct sponge_kind *kind, size_t digest)
{
    for (int i = 0; i < MESSAGES; i++) {
        struct sponge sponge;
        unsigned char expected[64];

        sponge_init(&sponge, &keccak_portable, kind);
        sponge_absorb(&sponge, m->bytes[i], m->sizes[i]);
        sponge_squeeze(&sponge, expected, digest);
        CHECK_EQ(same(m->digests[i], expected, digest), 1);
    }
}

/* No more than `at_once` are put before a step, so that the width changes. */
static void hash_all(struct messages *m, const struct sponge_kind *kind, size_t digest,
                     unsigned at_once, size_t budget)
{
    struct hash_many many;
    int next = 0;

    memset(m->digests, 0, sizeof m->digests);
    hash_many_init(&many, subject, kind, digest);
    for (;;) {
        size_t blocks = budget;

        while (next < MESSAGES && hash_many_busy(&many) < at_once &&
               hash_many_put(&many, m->bytes[next], m->sizes[next], m->digests[next]))
            next++;
        if (hash_many_busy(&many) == 0)
            break;
        hash_many_step(&many, &blocks);
    }
    check(m, kind, digest);
}

static void hash_in_all_ways(struct messages *m)
{
    static const size_t budgets[] = {1, 2, 5, 100, SIZE_MAX};

    for (unsigned at_once = 1; at_once <= 8; at_once++)
        for (size_t b = 0; b < sizeof budgets / sizeof *budgets; b++) {
            hash_all(m, &sponge_sha3_256, 32, at_once, budgets[b]);
            hash_all(m, &sponge_sha3_512, 64, at_once, budgets[b]);
            hash_all(m, &sponge_shake128, 33, at_once, budgets[b]);
        }
}

static void messages_of_different_lengths(void)
{
    struct messages m;

    for (int i = 0; i < MESSAGES; i++) {
        m.sizes[i] = random_word() % (i % 7 == 0 ? 5000 : i % 5 == 0 ? 3 : 400);
        m.bytes[i] = random_bytes(m.sizes[i]);
    }
    hash_in_all_ways(&m);
    messages_free(&m);
}

static void messages_around_the_ends_of_blocks(void)
{
    struct messages m;

    for (int i = 0; i < MESSAGES; i++) {
        m.sizes[i] =
            (size_t)(i % 4) * 136 + (size_t)(i / 4 % 4) + (i % 4 > 0 ? 0 : 134) - (i % 4 > 0);
        m.bytes[i] = random_bytes(m.sizes[i]);
    }
    hash_in_all_ways(&m);
    messages_free(&m);
}

static void messages_of_one_length(void)
{
    struct messages m;

    for (int i = 0; i < MESSAGES; i++) {
        m.sizes[i] = 1000;
        m.bytes[i] = random_bytes(m.sizes[i]);
    }
    hash_in_all_ways(&m);
    messages_free(&m);
}

static void nothing_to_hash_is_no_work(void)
{
    struct hash_many many;
    size_t blocks = 10;

    hash_many_init(&many, subject, &sponge_sha3_256, 32);
    hash_many_step(&many, &blocks);
    CHECK_EQ(blocks, 10);
    CHECK_EQ(hash_many_busy(&many), 0);
}

static void a_step_is_bounded(void)
{
    static unsigned char bytes[100000], to[32];
    struct hash_many many;
    int steps = 0;

    hash_many_init(&many, subject, &sponge_sha3_256, 32);
    CHECK_EQ(hash_many_put(&many, bytes, sizeof bytes, to), 1);
    for (; hash_many_busy(&many) > 0; steps++) {
        size_t blocks = 10;

        hash_many_step(&many, &blocks);
    }
    CHECK_EQ(steps >= 60 && steps <= 80, 1);
}

int main(void)
{
    SUBJECT_OR_SKIP();
    RUN(messages_of_different_lengths);
    RUN(messages_around_the_ends_of_blocks);
    RUN(messages_of_one_length);
    RUN(nothing_to_hash_is_no_work);
    RUN(a_step_is_bounded);
    return check_report();
}
