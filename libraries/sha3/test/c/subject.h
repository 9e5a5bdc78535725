/* The implementation under test: the one that TAME_SHA3_IMPL names, or this machine's. A test of
 * one that the machine does not have is skipped, and says so. And what the tests share. */
#ifndef SHA3_SUBJECT_H
#define SHA3_SUBJECT_H

#include "check.h"
#include "keccak.h"

#include <stdlib.h>
#include <string.h>

static const struct keccak *subject;

#define SUBJECT_OR_SKIP()                                                                      \
    do {                                                                                       \
        const char *forced = getenv("TAME_SHA3_IMPL");                                         \
                                                                                               \
        subject = keccak_choose(forced);                                                       \
        if (subject == NULL) {                                                                 \
            printf("  skip  this machine has no %s\n0 passed, 0 failed, 1 skipped\n", forced); \
            return 0;                                                                          \
        }                                                                                      \
        printf("  with %s\n", subject->name);                                                  \
    } while (0)

/* The same numbers in each run. */
static inline uint64_t random_word(void)
{
    static uint64_t state = 0x9e3779b97f4a7c15;

    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state * 0x2545f4914f6cdd1d;
}

static inline void fill_random(void *to, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = (unsigned char)(random_word() >> 56);
}

/* Owned by the caller. Of the size asked for exactly, so that a sanitizer sees a byte too many. */
static inline unsigned char *memory(size_t size)
{
    unsigned char *bytes = malloc(size > 0 ? size : 1);

    if (bytes == NULL)
        abort();
    return bytes;
}

static inline unsigned char *random_bytes(size_t size)
{
    unsigned char *bytes = memory(size);

    fill_random(bytes, size);
    return bytes;
}

static inline int same(const void *one, const void *two, size_t size)
{
    return size == 0 || memcmp(one, two, size) == 0;
}

#endif
