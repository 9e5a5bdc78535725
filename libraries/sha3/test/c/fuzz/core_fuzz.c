/* Fuzzes the states that take their input in pieces and with budgets, and that share permutations: what
 * the fastest implementation makes of a message in cuts must be what the portable one makes of it
 * whole. By clang's libFuzzer: make fuzz-c.
 *
 * The input: what to run, two numbers, how many cuts there are, the cuts, the message. */
#include "hash_many.h"
#include "kt.h"
#include "parallel_hash.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

#define MESSAGE_MAX (100 * 1024)
#define CUTS_MAX 16

struct script {
    unsigned what, first, second;
    size_t cuts[CUTS_MAX], cuts_len;
    size_t size;
};

static unsigned char message[MESSAGE_MAX], buffer[TREE_BUFFER_BYTES];

static void must(int holds, const char *what)
{
    if (!holds) {
        (void)fprintf(stderr, "does not hold: %s\n", what);
        abort();
    }
}

/* A short input is repeated: leaves are long. */
static int script_read(struct script *s, const unsigned char *bytes, size_t size)
{
    size_t at = 4;

    if (size < 5)
        return 0;
    s->what = bytes[0];
    s->first = bytes[1];
    s->second = bytes[2];
    for (s->cuts_len = 0; s->cuts_len < bytes[3] % CUTS_MAX && at + 3 < size; at += 2)
        s->cuts[s->cuts_len++] = (size_t)(bytes[at] << 8 | bytes[at + 1]);
    s->size = 0;
    for (unsigned n = 0; n <= s->first; n++)
        for (size_t i = at; i < size && s->size < MESSAGE_MAX; i++)
            message[s->size++] = (unsigned char)(bytes[i] + n);
    return 1;
}

/* The next piece of those that the script cuts the message into, over and over. */
static size_t piece(const struct script *s, size_t n, size_t left)
{
    const size_t some = s->cuts_len == 0 ? left : s->cuts[n % s->cuts_len] + 1;

    return some < left ? some : left;
}

static void sponges(const struct script *s, const struct keccak *keccak, int cut,
                    unsigned char to[300])
{
    const struct sponge_kind kind =
        s->second % 2 ? sponge_shake128
                      : sponge_turboshake(256, (unsigned char)(s->second % 127 + 1));
    struct sponge sponge;

    sponge_init(&sponge, keccak, &kind);
    for (size_t at = 0, n = 0; at < s->size; n++) {
        const size_t some = cut ? piece(s, n, s->size - at) : s->size - at;

        sponge_absorb(&sponge, message + at, some);
        at += some;
    }
    for (size_t at = 0, n = 0; at < 300; n++) {
        const size_t some = cut ? piece(s, n, 300 - at) : 300 - at;

        sponge_squeeze(&sponge, to + at, some);
        at += some;
    }
}

static void parallel_hashes(const struct script *s, const struct keccak *keccak, int cut,
                            unsigned char to[300])
{
    const size_t budget = cut ? s->second % 50 + 1 : SIZE_MAX;
    size_t blocks = budget;
    struct parallel_hash p;

    parallel_hash_init(&p, keccak, s->what & 8 ? 128 : 256, s->second * 40 + 1, NULL, 0,
                       s->what & 16 ? buffer : NULL, cut ? sizeof buffer : 0);
    for (size_t at = 0, n = 0; at < s->size; n++) {
        const size_t some = cut ? piece(s, n, s->size - at) : s->size - at;

        for (size_t done = 0; done < some; blocks = budget)
            done += parallel_hash_absorb(&p, message + at + done, some - done, &blocks);
        at += some;
    }
    while (!parallel_hash_end(&p, PARALLEL_HASH_XOF, &blocks))
        blocks = budget;
    parallel_hash_squeeze(&p, to, 300);
}

static void kangaroos(const struct script *s, const struct keccak *keccak, int cut,
                      unsigned char to[300])
{
    const size_t budget = cut ? s->second + 1 : SIZE_MAX;
    size_t blocks = budget;
    struct kt kt;

    kt_init(&kt, keccak, s->what & 8 ? 128 : 256, s->what & 16 ? buffer : NULL,
            cut ? sizeof buffer : 0);
    for (size_t at = 0, n = 0; at < s->size; n++) {
        const size_t some = cut ? piece(s, n, s->size - at) : s->size - at;

        for (size_t done = 0; done < some; blocks = budget)
            done += kt_absorb(&kt, message + at + done, some - done, &blocks);
        at += some;
    }
    while (!kt_end(&kt, 0, &blocks))
        blocks = budget;
    kt_squeeze(&kt, to, 300);
}

/* Each piece is a message; their digests are hashed. */
static void manies(const struct script *s, const struct keccak *keccak, int cut,
                   unsigned char to[300])
{
    static unsigned char digests[MESSAGE_MAX + 1][32];
    const size_t budget = cut ? s->second % 20 + 1 : SIZE_MAX;
    size_t at = 0, n = 0, blocks = budget;
    struct hash_many many;
    struct sponge sponge;

    hash_many_init(&many, keccak, &sponge_sha3_256, 32);
    for (;;) {
        while (at < s->size && n < 1000) {
            const size_t some = piece(s, n, s->size - at);

            if (!hash_many_put(&many, message + at, some, digests[n]))
                break;
            at += some;
            n++;
        }
        if (hash_many_busy(&many) == 0)
            break;
        hash_many_step(&many, &blocks);
        blocks = budget;
    }
    sponge_init(&sponge, keccak, &sponge_shake256);
    sponge_absorb(&sponge, digests, n * sizeof *digests);
    sponge_squeeze(&sponge, to, 300);
}

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    static void (*const runs[])(const struct script *, const struct keccak *, int,
                                unsigned char *) = {sponges, parallel_hashes, kangaroos, manies};
    unsigned char expected[300], got[300];
    struct script script;

    if (!script_read(&script, bytes, size))
        return 0;
    runs[script.what % 4](&script, &keccak_portable, 0, expected);
    runs[script.what % 4](&script, keccak_choose(getenv("TAME_SHA3_IMPL")), 1, got);
    must(memcmp(got, expected, sizeof got) == 0, "cuts make no difference");
    return 0;
}
