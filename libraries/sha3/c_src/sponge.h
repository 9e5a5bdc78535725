/* A sponge: SHA-3, SHAKE, TurboSHAKE, and what is made of them.
 *
 *     struct sponge s;
 *     sponge_init(&s, keccak, &sponge_sha3_256);
 *     sponge_absorb(&s, bytes, size);       any number of times
 *     sponge_squeeze(&s, digest, 32);       any number of times; absorb no more
 *
 * Plain memory: copy it to clone it, wipe() it when a key went in. What a permutation leaves on the
 * stack is its caller's to wipe (hasher.c does); registers are used again by what runs next. The work of a call is
 * sponge_blocks(&s, size) permutations; the caller cuts what is too long. */
#ifndef SHA3_SPONGE_H
#define SHA3_SPONGE_H

#include "bytes.h"
#include "keccak.h"

/* What the algorithms differ in. */
struct sponge_kind {
    const char *name;
    unsigned char rate;   /* bytes of a block */
    unsigned char suffix; /* the domain's bits and the first bit of the padding */
    unsigned char rounds;
    unsigned char digest; /* bytes; 0: as many as are asked for */
};

struct sponge {
    uint64_t lanes[KECCAK_LANES];
    const struct keccak *keccak;
    unsigned char rate, suffix, rounds;
    unsigned char at; /* bytes of the block that are absorbed, or squeezed */
    unsigned char squeezing;
};

#pragma GCC visibility push(hidden)

extern const struct sponge_kind sponge_sha3_224, sponge_sha3_256, sponge_sha3_384, sponge_sha3_512,
    sponge_shake128, sponge_shake256;

/* NULL: there is none of that name among these six. */
const struct sponge_kind *sponge_find(const char *name);

void sponge_init(struct sponge *sponge, const struct keccak *keccak,
                 const struct sponge_kind *kind);

/* The same of one that is zeros already. */
void sponge_open(struct sponge *sponge, const struct keccak *keccak,
                 const struct sponge_kind *kind);

void sponge_absorb(struct sponge *sponge, const void *bytes, size_t size);

/* Absorbs zeros to the end of a block that has begun. */
void sponge_fill(struct sponge *sponge);

/* Pads at the first call. */
void sponge_squeeze(struct sponge *sponge, void *to, size_t size);

#pragma GCC visibility pop

/* The most permutations that this number of bytes takes. */
static inline size_t sponge_blocks(const struct sponge *sponge, size_t size)
{
    return size / sponge->rate + 1;
}

/* TurboSHAKE128 and 256 (RFC 9861), bits 128 or 256; the domain is 0x01 to 0x7f. */
static inline struct sponge_kind sponge_turboshake(unsigned bits, unsigned char domain)
{
    const struct sponge_kind kind = {bits == 128 ? "turboshake128" : "turboshake256",
                                     bits == 128 ? 168 : 136, domain, 12, 0};

    return kind;
}

#endif
