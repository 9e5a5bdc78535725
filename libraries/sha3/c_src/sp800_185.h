/* NIST SP 800-185 on a sponge: the encodings, cSHAKE and KMAC. ParallelHash is in parallel_hash.h.
 *
 *     struct sponge s;
 *     kmac_init(&s, keccak, 256, key, key_size, custom, custom_size);
 *     sponge_absorb(&s, bytes, size);       any number of times
 *     kmac_end(&s, 64);                     or KMAC_XOF
 *     sponge_squeeze(&s, mac, 64);
 *     wipe(&s, sizeof s);
 *
 * Bits are 128 or 256: the strength. Strings are whole bytes. An init works for as long as its
 * strings: about (name + custom + key) / 136 + 2 permutations; refuse what is too long for a
 * call. */
#ifndef SHA3_SP800_185_H
#define SHA3_SP800_185_H

#include "sponge.h"

/* An encoded number: no more than 8 bytes, and how many. */
#define SP800_185_NUMBER_MAX 9

#define KMAC_XOF 0

#pragma GCC visibility push(hidden)

/* Both return the size of what they write. */
size_t left_encode(unsigned char to[SP800_185_NUMBER_MAX], uint64_t number);
size_t right_encode(unsigned char to[SP800_185_NUMBER_MAX], uint64_t number);

/* Absorbs encode_string(bytes). */
void sponge_absorb_string(struct sponge *sponge, const void *bytes, size_t size);

/* Without name and custom it is SHAKE. */
void cshake_init(struct sponge *sponge, const struct keccak *keccak, unsigned bits,
                 const void *name, size_t name_size, const void *custom, size_t custom_size);

void kmac_init(struct sponge *sponge, const struct keccak *keccak, unsigned bits, const void *key,
               size_t key_size, const void *custom, size_t custom_size);

/* After the last byte, before the first squeeze: the size of the MAC in bytes, or KMAC_XOF: any. */
void kmac_end(struct sponge *sponge, uint64_t mac_size);

#pragma GCC visibility pop

#endif
