/* One digest in the making, whichever of the algorithms: what one call and a state that outlives
 * calls have in common.
 *
 *     struct hasher h = {0};
 *     hasher_open(&h, keccak, &spec);                                      0: no memory
 *     done += hasher_absorb(&h, bytes + done, size - done, &blocks);       until all are done
 *     ... hasher_end(&h, digest_size, &blocks)                             until it returns 1
 *     hasher_squeeze(&h, to, size);                                        any number of times
 *     hasher_close(&h);                                                    wipes; also one of zeros
 *
 * Blocks are those of tree.h: permutations, of which a call makes about as many as it is given. */
#ifndef SHA3_HASHER_H
#define SHA3_HASHER_H

#include "kt.h"
#include "parallel_hash.h"
#include "sp800_185.h"

enum hasher_form { HASHER_SPONGE, HASHER_CSHAKE, HASHER_KMAC, HASHER_KT, HASHER_PARALLEL };

/* A string that goes in before or behind the message. */
struct hasher_string {
    const unsigned char *bytes;
    size_t size;
};

/* The longest: what is absorbed at once when a hasher is opened. About 60 blocks each. */
#define HASHER_STRING_MAX ((size_t)8192)

/* That of KangarooTwelve is but copied then. */
#define HASHER_KT_CUSTOM_MAX ((size_t)1048576)

struct hasher_spec {
    enum hasher_form form;
    struct sponge_kind kind; /* of a bare sponge */
    unsigned bits;           /* of the others: 128 or 256 */
    int extendable;          /* KMAC and ParallelHash: the size of the digest does not go in */
    size_t leaf_size;        /* of ParallelHash */
    struct hasher_string key, name, custom;
};

/* Kept by pointer: the other algorithms need a tenth of it. */
struct hasher_tree {
    union {
        struct kt kt;
        struct parallel_hash parallel;
    } of;
    unsigned char buffer[TREE_BUFFER_BYTES];
    size_t custom_size, custom_done; /* of KangarooTwelve, whose string comes behind the message */
    unsigned char custom[];
};

struct hasher {
    struct sponge sponge;
    struct hasher_tree *tree; /* owned; NULL for those that are a sponge */
    enum hasher_form form;
    int extendable;
    size_t digest;  /* bytes; 0: as many as are asked for */
    int in_between; /* a tree wants the rest of what it was given last */
};

#pragma GCC visibility push(hidden)

int hasher_open(struct hasher *hasher, const struct keccak *keccak, const struct hasher_spec *spec);

/* As tree_absorb: returns the bytes that it is done with, and the others are to be passed again. */
size_t hasher_absorb(struct hasher *hasher, const unsigned char *bytes, size_t size,
                     size_t *blocks);

/* After the last byte. Returns 1 when it is done, 0 to be called again with more blocks. */
int hasher_end(struct hasher *hasher, size_t digest_size, size_t *blocks);

void hasher_squeeze(struct hasher *hasher, unsigned char *to, size_t size);

/* Not while in_between. Returns 0 without memory; then the copy is to be closed all the same. */
int hasher_clone(struct hasher *to, const struct hasher *from);

void hasher_close(struct hasher *hasher);

#pragma GCC visibility pop

#endif
