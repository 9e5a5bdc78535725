/* The core against OpenSSL's sha3_256, without the VM.
 *
 *     core_bench [rounds]
 *
 * In each round everything is measured once, so that what disturbs the machine disturbs all. The
 * least time of each counts, and a ratio is of two least times: above 1 is faster than OpenSSL is
 * for as many bytes in one stream (for 64 bytes: than its EVP_Digest of 64 bytes). The Rust crates
 * sha3 and keccak are measured beside them where there is cargo. */
#include "hash_many.h"
#include "kt.h"
#include "parallel_hash.h"

#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ONE_BYTES ((size_t)1 << 20)
#define LONG_BYTES ((size_t)64 << 20)
#define SMALL_BYTES ((size_t)64)
#define SMALL_TIMES 1000

static unsigned char *data; /* LONG_BYTES */
static unsigned char buffer[TREE_BUFFER_BYTES], digest[8][64];

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* ---- what is measured ---- */

static void openssl(const struct keccak *keccak, size_t size)
{
    unsigned length;

    (void)keccak;
    if (EVP_Digest(data, size, digest[0], &length, EVP_sha3_256(), NULL) != 1)
        exit(1);
}

/* bench/crates, where there is cargo. */
void crate_sha3_256(const unsigned char *from, size_t size, unsigned char *to)
    __attribute__((weak));
void crate_f1600(uint64_t lanes[KECCAK_LANES]) __attribute__((weak));

static void crate_one(const struct keccak *keccak, size_t size)
{
    (void)keccak;
    crate_sha3_256(data, size, digest[0]);
}

static uint64_t lanes[KECCAK_LANES];

static void crate_permutation(const struct keccak *keccak, size_t size)
{
    (void)keccak;
    (void)size;
    crate_f1600(lanes);
}

static void permutation(const struct keccak *keccak, size_t size)
{
    (void)size;
    keccak_permute(keccak, lanes, 24);
}

static void one(const struct keccak *keccak, size_t size)
{
    struct sponge sponge;

    sponge_init(&sponge, keccak, &sponge_sha3_256);
    sponge_absorb(&sponge, data, size);
    sponge_squeeze(&sponge, digest[0], 32);
}

static void eight_messages(const struct keccak *keccak, size_t size)
{
    struct hash_many many;
    unsigned next = 0;

    hash_many_init(&many, keccak, &sponge_sha3_256, 32);
    for (;;) {
        size_t blocks = 400;

        while (next < 8 && hash_many_put(&many, data + next * (size / 8), size / 8, digest[next]))
            next++;
        if (hash_many_busy(&many) == 0)
            return;
        hash_many_step(&many, &blocks);
    }
}

static void parallel_hash_of(const struct keccak *keccak, unsigned bits, size_t size)
{
    struct parallel_hash p;
    size_t blocks = 400;

    parallel_hash_init(&p, keccak, bits, 8192, NULL, 0, buffer, sizeof buffer);
    for (size_t done = 0; done < size; blocks = 400)
        done += parallel_hash_absorb(&p, data + done, size - done, &blocks);
    while (!parallel_hash_end(&p, 32, &blocks))
        blocks = 400;
    parallel_hash_squeeze(&p, digest[0], 32);
}

static void parallel_hash128(const struct keccak *keccak, size_t size)
{
    parallel_hash_of(keccak, 128, size);
}

static void parallel_hash256(const struct keccak *keccak, size_t size)
{
    parallel_hash_of(keccak, 256, size);
}

static void kt128(const struct keccak *keccak, size_t size)
{
    size_t blocks = 400;
    struct kt kt;

    kt_init(&kt, keccak, 128, buffer, sizeof buffer);
    for (size_t done = 0; done < size; blocks = 400)
        done += kt_absorb(&kt, data + done, size - done, &blocks);
    while (!kt_end(&kt, 0, &blocks))
        blocks = 400;
    kt_squeeze(&kt, digest[0], 32);
}

static const struct work {
    const char *name;
    void (*run)(const struct keccak *keccak, size_t size);
    size_t size, times;
} works[] = {{"sha3_256, one stream, 1 MB", one, ONE_BYTES, 1},
             {"sha3_256, 64 B", one, SMALL_BYTES, SMALL_TIMES},
             {"sha3_256, 8 messages of 128 KB", eight_messages, ONE_BYTES, 1},
             {"ParallelHash128, 64 MB", parallel_hash128, LONG_BYTES, 1},
             {"ParallelHash256, 64 MB", parallel_hash256, LONG_BYTES, 1},
             {"kt128, 64 MB", kt128, LONG_BYTES, 1},
             {"the permutation", permutation, 8 * KECCAK_LANES, SMALL_TIMES}};

#define WORKS (sizeof works / sizeof *works)

static void measure(const struct work *work, const struct keccak *keccak, double *least_ns)
{
    const double begin = now_ns();
    double ns;

    for (size_t i = 0; i < work->times; i++)
        work->run(keccak, work->size);
    ns = (now_ns() - begin) / (double)work->times;
    if (*least_ns == 0 || ns < *least_ns)
        *least_ns = ns;
}

static void print(const char *name, const char *by, size_t size, double ns, double against_ns)
{
    printf("%-32s %-12s %9.0f MB/s %9.3f us", name, by, (double)size / ns * 1e3, ns / 1e3);
    if (against_ns > 0)
        printf(" %7.2f x", against_ns / ns);
    printf("\n");
}

int main(int argc, char **argv)
{
    static const struct work against[] = {
        {"sha3_256, one stream, 1 MB", openssl, ONE_BYTES, 1},
        {"sha3_256, 64 B", openssl, SMALL_BYTES, SMALL_TIMES},
        {"sha3_256, one stream, 1 MB", crate_one, ONE_BYTES, 1},
        {"sha3_256, 64 B", crate_one, SMALL_BYTES, SMALL_TIMES},
        {"the permutation", crate_permutation, 8 * KECCAK_LANES, SMALL_TIMES}};
    static const char *const by[] = {"OpenSSL", "OpenSSL", "crate sha3", "crate sha3",
                                     "crate keccak"};
    static const char *const names[] = {"portable", "avx2", "avx512"};
    const int rounds = argc > 1 ? atoi(argv[1]) : 30;
    const size_t others = crate_f1600 != NULL ? 5 : 2;
    double against_ns[5] = {0}, ns[3][WORKS] = {{0}};

    data = malloc(LONG_BYTES); /* to the end of the program */
    if (data == NULL)
        return 1;
    memset(data, 0x5a, LONG_BYTES);
    for (int round = 0; round < rounds; round++)
        for (size_t w = 0; w < WORKS; w++) {
            for (size_t o = 0; o < others; o++)
                measure(&against[o], NULL, &against_ns[o]);
            for (size_t k = 0; k < 3; k++)
                if (keccak_choose(names[k]) != NULL)
                    measure(&works[w], keccak_choose(names[k]), &ns[k][w]);
        }
    for (size_t o = 0; o < others; o++)
        print(against[o].name, by[o], against[o].size, against_ns[o],
              o < 4 ? against_ns[o % 2] : 0);
    for (size_t w = 0; w < WORKS; w++)
        for (size_t k = 0; k < 3; k++)
            if (ns[k][w] > 0) {
                const size_t o = works[w].size == SMALL_BYTES;
                const double as_many = (double)works[w].size / (double)against[o].size;

                print(works[w].name, names[k], works[w].size, ns[k][w],
                      works[w].run == permutation ? 0 : against_ns[o] * as_many);
            }
    return 0;
}
