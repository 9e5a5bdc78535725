#include "sponge.h"

const struct sponge_kind sponge_sha3_224 = {"sha3_224", 144, 0x06, 24, 28},
                         sponge_sha3_256 = {"sha3_256", 136, 0x06, 24, 32},
                         sponge_sha3_384 = {"sha3_384", 104, 0x06, 24, 48},
                         sponge_sha3_512 = {"sha3_512", 72, 0x06, 24, 64},
                         sponge_shake128 = {"shake128", 168, 0x1f, 24, 0},
                         sponge_shake256 = {"shake256", 136, 0x1f, 24, 0};

static const struct sponge_kind *const kinds[] = {&sponge_sha3_224, &sponge_sha3_256,
                                                  &sponge_sha3_384, &sponge_sha3_512,
                                                  &sponge_shake128, &sponge_shake256};

const struct sponge_kind *sponge_find(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

void sponge_init(struct sponge *sponge, const struct keccak *keccak, const struct sponge_kind *kind)
{
    clear(sponge, sizeof *sponge);
    sponge_open(sponge, keccak, kind);
}

void sponge_open(struct sponge *sponge, const struct keccak *keccak, const struct sponge_kind *kind)
{
    sponge->keccak = keccak;
    sponge->rate = kind->rate;
    sponge->suffix = kind->suffix;
    sponge->rounds = kind->rounds;
}

static void permute(struct sponge *sponge)
{
    keccak_permute(sponge->keccak, sponge->lanes, sponge->rounds);
    sponge->at = 0;
}

/* XORs bytes into the block at `at`; they end before the block does, or with it. */
static void mix(struct sponge *sponge, const unsigned char *from, size_t size)
{
    size_t at = sponge->at;

    sponge->at = (unsigned char)(at + size);
    while (size > 0) {
        const size_t begins = at % 8;
        size_t some = size < 8 - begins ? size : 8 - begins;

        if (some < 8)
            sponge->lanes[at / 8] ^= lane_load_some(from, some) << 8 * begins;
        else
            for (some = 0; size - some >= 8; some += 8)
                sponge->lanes[(at + some) / 8] ^= lane_load(from + some);
        at += some;
        from += some;
        size -= some;
    }
}

void sponge_absorb(struct sponge *sponge, const void *bytes, size_t size)
{
    const unsigned char *from = bytes;

    if (size == 0)
        return;
    if (sponge->at > 0) {
        const size_t room = (size_t)(sponge->rate - sponge->at), some = size < room ? size : room;

        mix(sponge, from, some);
        if (sponge->at < sponge->rate)
            return;
        permute(sponge);
        from += some;
        size -= some;
    }
    if (size >= sponge->rate) {
        const size_t whole = size / sponge->rate;

        sponge->keccak->absorb(sponge->lanes, sponge->rounds, sponge->rate, from, whole);
        from += whole * sponge->rate;
        size -= whole * sponge->rate;
    }
    mix(sponge, from, size);
}

void sponge_fill(struct sponge *sponge)
{
    if (sponge->at > 0)
        permute(sponge);
}

static void pad(struct sponge *sponge)
{
    sponge->lanes[sponge->at / 8] ^= (uint64_t)sponge->suffix << 8 * (sponge->at % 8);
    sponge->lanes[sponge->rate / 8 - 1] ^= (uint64_t)0x80 << 56;
    sponge->squeezing = 1;
    permute(sponge);
}

void sponge_squeeze(struct sponge *sponge, void *to, size_t size)
{
    unsigned char *bytes = to;

    if (!sponge->squeezing)
        pad(sponge);
    while (size > 0) {
        size_t begins, room, some;

        if (sponge->at == sponge->rate)
            permute(sponge);
        begins = sponge->at % 8;
        some = size < 8 - begins ? size : 8 - begins;
        room = (size_t)(sponge->rate - sponge->at);
        if (some < 8)
            lane_store_some(bytes, sponge->lanes[sponge->at / 8] >> 8 * begins, some);
        else
            for (some = 0; size - some >= 8 && some < room; some += 8)
                lane_store(bytes + some, sponge->lanes[(sponge->at + some) / 8]);
        sponge->at = (unsigned char)(sponge->at + some);
        bytes += some;
        size -= some;
    }
}
