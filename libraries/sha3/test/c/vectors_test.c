/* The published answers. */
#include "kt.h"
#include "parallel_hash.h"
#include "sp800_185.h"
#include "vectors.h"

static const char *const names[] = {"sha3_224", "sha3_256", "sha3_384",
                                    "sha3_512", "shake128", "shake256"};

static void hash(const struct sponge_kind *kind, const void *bytes, size_t size, void *to,
                 size_t digest)
{
    struct sponge sponge;

    sponge_init(&sponge, subject, kind);
    sponge_absorb(&sponge, bytes, size);
    sponge_squeeze(&sponge, to, digest);
}

/* Returns how many records there were. */
static int check_file(const char *name, const char *part)
{
    char path[64];
    struct record record = {0};
    FILE *file;
    int count = 0;

    (void)snprintf(path, sizeof path, "%s_%s.txt", name, part);
    for (file = vectors_open(path); record_read(file, &record); count++) {
        size_t size, digest;
        unsigned char *msg = record_bytes(&record, "msg", &size);
        unsigned char *md = record_bytes(&record, "md", &digest), *got = memory(digest);

        hash(sponge_find(name), msg, size, got, digest);
        CHECK_EQ(same(got, md, digest), 1);
        free(msg);
        free(md);
        free(got);
    }
    (void)fclose(file);
    return count;
}

static void short_messages_of_CAVP(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_EQ(check_file(names[i], "short") > 70, 1);
}

static void long_messages_of_CAVP(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CHECK_EQ(check_file(names[i], "long"), 11);
}

static void digests_of_variable_size_of_CAVP(void)
{
    CHECK_EQ(check_file("shake128", "variable"), 282);
    CHECK_EQ(check_file("shake256", "variable"), 312);
}

/* A message is the digest before it; of SHAKE its first 16 bytes, and its last two are the next
 * size. */
static void thousand_rounds(const struct sponge_kind *kind, unsigned char *bytes, size_t *size,
                            size_t min, size_t max)
{
    unsigned char msg[16];

    for (int i = 0; i < 1000; i++) {
        if (kind->digest > 0) {
            hash(kind, bytes, kind->digest, bytes, kind->digest);
            continue;
        }
        memcpy(msg, bytes, sizeof msg);
        memset(bytes, 0, sizeof msg);
        hash(kind, msg, sizeof msg, bytes, *size);
        *size = min + ((size_t)bytes[*size - 2] << 8 | bytes[*size - 1]) % (max - min + 1);
    }
}

static void monte_carlo_of_CAVP(void)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct sponge_kind *kind = sponge_find(names[i]);
        struct record record = {0};
        unsigned char bytes[256] = {0}, *seed, *md;
        size_t size, digest, min, max;
        char path[64];
        FILE *file;
        int count = 0;

        (void)snprintf(path, sizeof path, "%s_monte.txt", names[i]);
        file = vectors_open(path);
        CHECK_EQ(record_read(file, &record), 1);
        seed = record_bytes(&record, "seed", &size);
        memcpy(bytes, seed, size);
        free(seed);
        min = record_number(&record, "min");
        max = record_number(&record, "max");
        for (size = max; record_read(file, &record); count++) {
            md = record_bytes(&record, "md", &digest);
            thousand_rounds(kind, bytes, &size, min, max);
            CHECK_EQ(same(bytes, md, digest), 1);
            free(md);
        }
        CHECK_EQ(count, 100);
        (void)fclose(file);
    }
}

static void samples_of_cSHAKE(void)
{
    struct record record = {0};
    FILE *file = vectors_open("cshake.txt");
    int count = 0;

    for (; record_read(file, &record); count++) {
        const unsigned bits = strcmp(record_text(&record, "alg"), "cshake128") == 0 ? 128 : 256;
        size_t name_size, custom_size, size, digest;
        unsigned char *name = record_bytes(&record, "name", &name_size),
                      *custom = record_bytes(&record, "custom", &custom_size),
                      *msg = record_bytes(&record, "msg", &size),
                      *md = record_bytes(&record, "md", &digest), *got = memory(digest);
        struct sponge sponge;

        cshake_init(&sponge, subject, bits, name, name_size, custom, custom_size);
        sponge_absorb(&sponge, msg, size);
        sponge_squeeze(&sponge, got, digest);
        CHECK_EQ(same(got, md, digest), 1);
        free(name);
        free(custom);
        free(msg);
        free(md);
        free(got);
    }
    (void)fclose(file);
    CHECK_EQ(count, 28);
}

static void samples_of_KMAC(void)
{
    struct record record = {0};
    FILE *file = vectors_open("kmac.txt");
    int count = 0;

    for (; record_read(file, &record); count++) {
        const unsigned bits = strcmp(record_text(&record, "alg"), "kmac128") == 0 ? 128 : 256;
        size_t key_size, custom_size, size, digest;
        unsigned char *key = record_bytes(&record, "key", &key_size),
                      *custom = record_bytes(&record, "custom", &custom_size),
                      *msg = record_bytes(&record, "msg", &size),
                      *md = record_bytes(&record, "md", &digest), *got = memory(digest);
        struct sponge sponge;

        kmac_init(&sponge, subject, bits, key, key_size, custom, custom_size);
        sponge_absorb(&sponge, msg, size);
        kmac_end(&sponge, record_number(&record, "xof") ? KMAC_XOF : digest);
        sponge_squeeze(&sponge, got, digest);
        CHECK_EQ(same(got, md, digest), 1);
        wipe(&sponge, sizeof sponge);
        free(key);
        free(custom);
        free(msg);
        free(md);
        free(got);
    }
    (void)fclose(file);
    CHECK_EQ(count, 12);
}

static void samples_of_ParallelHash(void)
{
    struct record record = {0};
    FILE *file = vectors_open("parallel_hash.txt");
    unsigned char *buffer = memory(TREE_BUFFER_BYTES);
    int count = 0;

    for (; record_read(file, &record); count++) {
        const unsigned bits = strstr(record_text(&record, "alg"), "128") != NULL ? 128 : 256;
        size_t custom_size, size, digest, blocks = SIZE_MAX;
        unsigned char *custom = record_bytes(&record, "custom", &custom_size),
                      *msg = record_bytes(&record, "msg", &size),
                      *md = record_bytes(&record, "md", &digest), *got = memory(digest);
        struct parallel_hash p;

        parallel_hash_init(&p, subject, bits, record_number(&record, "leaf"), custom, custom_size,
                           buffer, TREE_BUFFER_BYTES);
        CHECK_EQ(parallel_hash_absorb(&p, msg, size, &blocks), size);
        CHECK_EQ(parallel_hash_end(&p, record_number(&record, "xof") ? PARALLEL_HASH_XOF : digest,
                                   &blocks),
                 1);
        parallel_hash_squeeze(&p, got, digest);
        CHECK_EQ(same(got, md, digest), 1);
        free(custom);
        free(msg);
        free(md);
        free(got);
    }
    free(buffer);
    (void)fclose(file);
    CHECK_EQ(count, 12);
}

/* The RFC's ptn(n); or n bytes ff. */
static unsigned char *pattern(size_t size, int ff)
{
    unsigned char *bytes = memory(size);

    for (size_t i = 0; i < size; i++)
        bytes[i] = ff ? 0xff : (unsigned char)(i % 251);
    return bytes;
}

static void hash_kt(unsigned bits, const unsigned char *msg, size_t size,
                    const unsigned char *custom, size_t custom_size, unsigned char *to,
                    size_t digest)
{
    unsigned char *buffer = memory(TREE_BUFFER_BYTES);
    size_t blocks = SIZE_MAX;
    struct kt kt;

    kt_init(&kt, subject, bits, buffer, TREE_BUFFER_BYTES);
    CHECK_EQ(kt_absorb(&kt, msg, size, &blocks), size);
    CHECK_EQ(kt_absorb(&kt, custom, custom_size, &blocks), custom_size);
    CHECK_EQ(kt_end(&kt, custom_size, &blocks), 1);
    kt_squeeze(&kt, to, digest);
    free(buffer);
}

static void vectors_of_RFC_9861(void)
{
    struct record record = {0};
    FILE *file = vectors_open("rfc9861.txt");
    int count = 0;

    for (; record_read(file, &record); count++) {
        const char *alg = record_text(&record, "alg"), *domain = record_text(&record, "domain");
        const unsigned bits = strstr(alg, "128") != NULL ? 128 : 256;
        const int ff = record_text(&record, "ff") != NULL;
        const size_t size = record_number(&record, ff ? "ff" : "ptn"),
                     skip = record_number(&record, "skip"),
                     custom_size = record_number(&record, "custom");
        size_t digest;
        unsigned char *msg = pattern(size, ff), *custom = pattern(custom_size, 0),
                      *md = record_bytes(&record, "md", &digest), *got = memory(skip + digest);

        if (domain != NULL) {
            const struct sponge_kind kind =
                sponge_turboshake(bits, (unsigned char)strtoul(domain, NULL, 16));

            hash(&kind, msg, size, got, skip + digest);
        } else {
            hash_kt(bits, msg, size, custom, custom_size, got, skip + digest);
        }
        CHECK_EQ(same(got + skip, md, digest), 1);
        free(msg);
        free(custom);
        free(md);
        free(got);
    }
    (void)fclose(file);
    CHECK_EQ(count, 67);
}

int main(void)
{
    SUBJECT_OR_SKIP();
    RUN(short_messages_of_CAVP);
    RUN(long_messages_of_CAVP);
    RUN(digests_of_variable_size_of_CAVP);
    RUN(monte_carlo_of_CAVP);
    RUN(samples_of_cSHAKE);
    RUN(samples_of_KMAC);
    RUN(samples_of_ParallelHash);
    RUN(vectors_of_RFC_9861);
    return check_report();
}
