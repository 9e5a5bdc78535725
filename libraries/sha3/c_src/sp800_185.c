#include "sp800_185.h"

/* Big-endian, without zeros before it, but at least one byte. */
static size_t number_bytes(unsigned char to[8], uint64_t number)
{
    size_t size = 1;

    while (size < 8 && number >> 8 * size != 0)
        size++;
    for (size_t i = 0; i < size; i++)
        to[i] = (unsigned char)(number >> 8 * (size - 1 - i));
    return size;
}

size_t left_encode(unsigned char to[SP800_185_NUMBER_MAX], uint64_t number)
{
    const size_t size = number_bytes(to + 1, number);

    to[0] = (unsigned char)size;
    return size + 1;
}

size_t right_encode(unsigned char to[SP800_185_NUMBER_MAX], uint64_t number)
{
    const size_t size = number_bytes(to, number);

    to[size] = (unsigned char)size;
    return size + 1;
}

static void absorb_left_encoded(struct sponge *sponge, uint64_t number)
{
    unsigned char bytes[SP800_185_NUMBER_MAX];

    sponge_absorb(sponge, bytes, left_encode(bytes, number));
}

void sponge_absorb_string(struct sponge *sponge, const void *bytes, size_t size)
{
    absorb_left_encoded(sponge, (uint64_t)size * 8);
    sponge_absorb(sponge, bytes, size);
}

void cshake_init(struct sponge *sponge, const struct keccak *keccak, unsigned bits,
                 const void *name, size_t name_size, const void *custom, size_t custom_size)
{
    sponge_init(sponge, keccak, bits == 128 ? &sponge_shake128 : &sponge_shake256);
    if (name_size == 0 && custom_size == 0)
        return;
    sponge->suffix = 0x04;
    absorb_left_encoded(sponge, sponge->rate); /* bytepad */
    sponge_absorb_string(sponge, name, name_size);
    sponge_absorb_string(sponge, custom, custom_size);
    sponge_fill(sponge);
}

void kmac_init(struct sponge *sponge, const struct keccak *keccak, unsigned bits, const void *key,
               size_t key_size, const void *custom, size_t custom_size)
{
    cshake_init(sponge, keccak, bits, "KMAC", 4, custom, custom_size);
    absorb_left_encoded(sponge, sponge->rate);
    sponge_absorb_string(sponge, key, key_size);
    sponge_fill(sponge);
}

void kmac_end(struct sponge *sponge, uint64_t mac_size)
{
    unsigned char bytes[SP800_185_NUMBER_MAX];

    sponge_absorb(sponge, bytes, right_encode(bytes, mac_size * 8));
}
