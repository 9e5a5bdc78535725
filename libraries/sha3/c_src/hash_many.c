#include "hash_many.h"

void hash_many_init(struct hash_many *many, const struct keccak *keccak,
                    const struct sponge_kind *kind, size_t digest)
{
    many->keccak = keccak;
    many->kind = *kind;
    many->digest = digest;
    many->width = keccak->abreast;
    many->busy = 0;
    memset(many->lanes, 0, sizeof many->lanes);
    for (unsigned i = 0; i < KECCAK_ABREAST_MAX; i++)
        many->slots[i].to = NULL;
}

/* ---- the slots: the first `width` of them are in lanes ---- */

static unsigned width_for(const struct hash_many *many, unsigned busy)
{
    if (busy == 1)
        return 1;
    return busy <= 4 && many->keccak->abreast > 4 ? 4 : many->keccak->abreast;
}

/* The busy slots, in their order, become the first ones of another width. */
static void repack(struct hash_many *many, unsigned width)
{
    uint64_t lanes[KECCAK_LANES * KECCAK_ABREAST_MAX] = {0};
    unsigned to = 0;

    for (unsigned i = 0; i < many->width; i++) {
        if (many->slots[i].to == NULL)
            continue;
        for (unsigned l = 0; l < KECCAK_LANES; l++)
            lanes[width * l + to] = many->lanes[many->width * l + i];
        if (to != i) {
            many->slots[to] = many->slots[i];
            if (many->slots[to].last)
                many->slots[to].from = many->slots[to].padded;
            many->slots[i].to = NULL;
        }
        to++;
    }
    memcpy(many->lanes, lanes, sizeof lanes);
    many->width = width;
}

/* The last block of a message. */
static void pad(struct hash_many_slot *slot, const struct sponge_kind *kind,
                const unsigned char *bytes, size_t size)
{
    const size_t left = size % kind->rate;

    memset(slot->padded, 0, kind->rate);
    if (left > 0)
        memcpy(slot->padded, bytes + (size - left), left);
    slot->padded[left] = kind->suffix;
    slot->padded[kind->rate - 1] ^= 0x80;
}

int hash_many_put(struct hash_many *many, const void *bytes, size_t size, void *to)
{
    const size_t rate = many->kind.rate;
    struct hash_many_slot *slot;
    unsigned i = 0;

    if (many->busy == many->keccak->abreast)
        return 0;
    if (many->busy == many->width)
        repack(many, many->keccak->abreast);
    while (many->slots[i].to != NULL)
        i++;
    slot = &many->slots[i];
    slot->to = to;
    slot->blocks = size / rate;
    pad(slot, &many->kind, bytes, size);
    slot->last = slot->blocks == 0;
    slot->from = slot->last ? slot->padded : bytes;
    for (unsigned l = 0; l < KECCAK_LANES; l++)
        many->lanes[many->width * l + i] = 0;
    many->busy++;
    return 1;
}

/* ---- the work ---- */

/* So many blocks of every message at hand. */
static void absorb(struct hash_many *many, size_t blocks)
{
    const struct sponge_kind *kind = &many->kind;
    const unsigned char *from[KECCAK_ABREAST_MAX], *other = NULL;

    if (many->width == 1) {
        many->keccak->absorb(many->lanes, kind->rounds, kind->rate, many->slots[0].from, blocks);
        return;
    }
    for (unsigned i = 0; i < many->width; i++)
        if (many->slots[i].to != NULL)
            other = many->slots[i].from;
    /* A state without a message reads another's. */
    for (unsigned i = 0; i < many->width; i++)
        from[i] = many->slots[i].to != NULL ? many->slots[i].from : other;
    (many->width == 8 ? many->keccak->eight : many->keccak->four)(many->lanes, kind->rounds,
                                                                  kind->rate, from, blocks);
}

static void squeeze(struct hash_many *many, unsigned i)
{
    unsigned char *to = many->slots[i].to;

    for (size_t at = 0; at < many->digest; at += 8)
        lane_store_some(to + at, many->lanes[many->width * (at / 8) + i],
                        many->digest - at < 8 ? many->digest - at : 8);
    many->slots[i].to = NULL;
    many->busy--;
}

/* After that number of blocks. Returns 1 when a message is done. */
static int advance(struct hash_many *many, size_t blocks)
{
    int done = 0;

    for (unsigned i = 0; i < many->width; i++) {
        struct hash_many_slot *slot = &many->slots[i];

        if (slot->to == NULL)
            continue;
        if (slot->last) {
            squeeze(many, i);
            done = 1;
            continue;
        }
        slot->blocks -= blocks;
        slot->from += blocks * many->kind.rate;
        slot->last = slot->blocks == 0;
        if (slot->last)
            slot->from = slot->padded;
    }
    return done;
}

void hash_many_step(struct hash_many *many, size_t *blocks)
{
    const unsigned width = many->busy > 0 ? width_for(many, many->busy) : many->width;
    const size_t cost = width == 1 ? 1 : KECCAK_ABREAST_COST;
    int done = many->busy == 0;

    if (width != many->width)
        repack(many, width);
    while (!done && *blocks > 0) {
        size_t some = (*blocks - 1) / cost + 1;

        for (unsigned i = 0; i < width; i++) {
            const struct hash_many_slot *slot = &many->slots[i];

            if (slot->to != NULL && some > (slot->last ? 1 : slot->blocks))
                some = slot->last ? 1 : slot->blocks;
        }
        absorb(many, some);
        *blocks -= some * cost < *blocks ? some * cost : *blocks;
        done = advance(many, some);
    }
}
