/* Whether the time of a hash tells of its bytes: a test of the kind of dudect (Reparaz, Balasch,
 * Verbauwhede, "Dude, is my code constant time?", 2017).
 *
 *     constant_time [measurements]
 *
 * Two classes of input of one size, all zeros or random, are measured in random order, and Welch's t
 * compares the means, of all times and of the lowest 90, 50 and 10 percent. |t| under 4.5 is no
 * evidence of a difference; it is no proof that there is none, and says nothing of other machines, of
 * power or of caches that others share. "leaks" is a hash that looks at its bytes, so that the test
 * is seen to find one. */
#include "sp800_185.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES ((size_t)272) /* two blocks of sha3_256 */
#define LIMIT 4.5

static const struct keccak *keccak;
static unsigned char digest[64];
static volatile unsigned sink;

static void plain(const unsigned char *bytes)
{
    struct sponge sponge;

    sponge_init(&sponge, keccak, &sponge_sha3_256);
    sponge_absorb(&sponge, bytes, BYTES);
    sponge_squeeze(&sponge, digest, 32);
}

/* The bytes are the key. */
static void keyed(const unsigned char *bytes)
{
    struct sponge sponge;

    kmac_init(&sponge, keccak, 256, bytes, BYTES, NULL, 0);
    kmac_end(&sponge, 32);
    sponge_squeeze(&sponge, digest, 32);
}

static void leaks(const unsigned char *bytes)
{
    plain(bytes);
    for (size_t i = 0; i < BYTES && bytes[i] == 0; i++)
        sink++;
}

static const struct {
    const char *name;
    void (*hash)(const unsigned char *bytes);
} subjects[] = {{"sha3_256, its message", plain}, {"kmac256, its key", keyed}, {"leaks", leaks}};

struct sample {
    double ns;
    int class;
};

static int by_time(const void *a, const void *b)
{
    const double d = ((const struct sample *)a)->ns - ((const struct sample *)b)->ns;

    return d < 0 ? -1 : d > 0;
}

/* Of the first `count` samples. */
static double welch(const struct sample *samples, size_t count)
{
    double n[2] = {0}, mean[2] = {0}, squares[2] = {0};

    for (size_t i = 0; i < count; i++) {
        const int c = samples[i].class;
        const double d = samples[i].ns - mean[c];

        n[c]++;
        mean[c] += d / n[c];
        squares[c] += d * (samples[i].ns - mean[c]);
    }
    if (n[0] < 2 || n[1] < 2)
        return 0;
    return (mean[0] - mean[1]) /
           sqrt(squares[0] / (n[0] - 1) / n[0] + squares[1] / (n[1] - 1) / n[1] + 1e-12);
}

static double now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* The greatest |t|. What is cut off is cut off by time, not by class: the times of both go into one
 * order. */
static double measure(void (*hash)(const unsigned char *), struct sample *samples, size_t count)
{
    static const double shares[] = {1.0, 0.9, 0.5, 0.1};
    static unsigned char inputs[2][BYTES];
    double worst = 0;

    for (size_t i = 0; i < count; i++) {
        unsigned char *input = inputs[samples[i].class = rand() & 1];
        double from;

        for (size_t b = 0; b < BYTES; b++) { /* as much is written for both */
            const int random = rand();
            input[b] = samples[i].class ? (unsigned char)random : 0;
        }
        from = now_ns();
        hash(input);
        samples[i].ns = now_ns() - from;
    }
    qsort(samples, count, sizeof *samples, by_time);
    for (size_t s = 0; s < sizeof shares / sizeof *shares; s++) {
        const double t = fabs(welch(samples, (size_t)(shares[s] * (double)count)));

        worst = t > worst ? t : worst;
    }
    return worst;
}

int main(int argc, char **argv)
{
    const size_t count = argc > 1 ? strtoul(argv[1], NULL, 10) : 500000;
    static const char *const names[] = {"portable", "avx2", "avx512"};
    struct sample *samples = malloc(count * sizeof *samples);
    int found_all = 1;

    if (samples == NULL || count < 1000) {
        fprintf(stderr, "expected a number of measurements, 1000 or more: %s\n",
                argc > 1 ? argv[1] : "");
        return 2;
    }
    printf("greatest |t| of %zu measurements; under %.1f there is no evidence of a leak\n", count,
           LIMIT);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        keccak = keccak_choose(names[i]);
        for (size_t s = 0; keccak != NULL && s < sizeof subjects / sizeof *subjects; s++) {
            const double t = measure(subjects[s].hash, samples, count);

            printf("%-10s %-24s %8.2f%s\n", names[i], subjects[s].name, t,
                   t >= LIMIT ? "  a difference" : "");
            found_all &= subjects[s].hash != leaks || t >= LIMIT;
        }
    }
    free(samples);
    if (!found_all)
        fprintf(stderr, "a hash that leaks was not found: too few measurements, or too noisy\n");
    return !found_all;
}
