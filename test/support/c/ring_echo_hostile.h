/* ring_echo_hostile.h - a host that lies. For the tests of what the VM endures; never returns.
 *
 * Its terms reach the sizes at which the emulator changes its ways: maps of 32, 33, 128, 129, 1,000
 * and 100,000 keys, nested; lists of 10^6, tuples of 2^16, 10,000 levels; and all that there is in
 * the external format.
 *
 * One thread answers every request with a reply that is wrong in a random way, or right. Another
 * writes random values into random fields, all the time; but for the slots' states, which the first
 * one first fills with nonsense and then sets right, so that a million calls come to an end. */
#ifndef TAME_RING_ECHO_HOSTILE_H
#define TAME_RING_ECHO_HOSTILE_H

#include "bell.h"
#include "etf_tags.h"

struct hostile {
    uint8_t *base;
    struct ring_geometry geometry;
    uint64_t seed;
};

/* xorshift64: the same seed, the same lies. */
static uint64_t hostile_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* A number that may be small, huge, or next to a bound. */
static uint64_t hostile_number(uint64_t *seed)
{
    const uint64_t any = hostile_random(seed);

    switch (any % 8) {
    case 0:
        return any >> 8;
    case 1:
        return (any >> 8) % 16384;
    case 2:
        return UINT64_MAX - (any >> 8) % 64;
    case 3:
        return (UINT64_C(1) << (any >> 8) % 64) - (any >> 16) % 3 + 1;
    default:
        return (any >> 8) % 300;
    }
}

static void hostile_bytes(uint8_t *place, size_t size, uint64_t *seed)
{
    for (size_t i = 0; i < size; i++)
        place[i] = (uint8_t)hostile_random(seed);
}

/* External format, right or nearly. Returns its size. */
static size_t hostile_term(uint8_t *place, uint64_t *seed)
{
    static const uint8_t terms[][40] = {
        {3, 131, 97, 7},
        {6, 131, 109, 0, 0, 0, 0},
        {9, 131, 109, 0, 0, 0, 200, 1, 2, 3},
        {6, 131, 108, 255, 255, 255, 255},
        {7, 131, 108, 127, 255, 255, 255, 106},
        {6, 131, 105, 255, 255, 255, 255},
        {6, 131, 116, 255, 255, 255, 255},
        {13, 131, 80, 255, 255, 255, 255, 120, 156, 3, 0, 0, 0, 1},
        {7, 131, 119, 4, 'h', 'o', 's', 't'},
        {6, 131, 111, 255, 255, 255, 255},
        {7, 131, 110, 255, 0, 1, 2, 3},
        {8, 131, 77, 0, 0, 0, 1, 9, 255},
        {10, 131, 70, 127, 240, 0, 0, 0, 0, 0, 0},
        {10, 131, 112, 0, 0, 0, 20, 3, 1, 2, 3},
        {16, 131, 90, 0, 5, 119, 1, 'x', 0, 0, 0, 1, 0, 0, 0, 2, 0},
        {8, 131, 88, 119, 1, 'x', 0, 0, 0},
        {4, 131, 107, 255, 255},
        {3, 131, 131, 131},
        {2, 131, 106},
        {8, 131, 104, 2, 97, 1, 104, 1, 97},
    };
    const uint8_t *term = terms[hostile_random(seed) % (sizeof terms / sizeof terms[0])];
    const size_t size = term[0];

    memcpy(place, term + 1, size);
    if (hostile_random(seed) % 4 == 0)
        place[hostile_random(seed) % size] = (uint8_t)hostile_random(seed);
    return size;
}

/* ---- terms of every size class ---- */

struct hostile_out {
    uint8_t *place;
    size_t size, room; /* what does not fit is left out: then the term is cut */
    uint64_t *seed;
};

static void out_number(struct hostile_out *out, uint64_t number, int bytes)
{
    for (int i = bytes - 1; i >= 0; i--)
        if (out->size < out->room)
            out->place[out->size++] = i < 8 ? (uint8_t)(number >> 8 * i) : 0;
}

static void out_tagged(struct hostile_out *out, int tag, uint64_t number, int bytes)
{
    out_number(out, (uint64_t)tag, 1);
    out_number(out, number, bytes);
}

static void out_fill(struct hostile_out *out, uint64_t bytes, int byte)
{
    if (bytes > out->room - out->size)
        bytes = out->room - out->size;
    memset(out->place + out->size, byte, bytes);
    out->size += bytes;
}

static void out_atom(struct hostile_out *out, const char *name, size_t size)
{
    out_tagged(out, ETF_SMALL_ATOM_UTF8, size, 1);
    for (size_t i = 0; i < size; i++)
        out_number(out, (uint8_t)name[i], 1);
}

/* The n-th key of a map, of one of five kinds; all are different. */
static void out_key(struct hostile_out *out, int kind, uint64_t n)
{
    switch (kind) {
    case 0:
        out_tagged(out, ETF_INTEGER, n, 4);
        break;
    case 1:
        out_tagged(out, ETF_BINARY, 9, 4);
        out_number(out, n, 9);
        break;
    case 2:
        out_tagged(out, ETF_SMALL_TUPLE, 2, 1);
        out_tagged(out, ETF_INTEGER, n, 4);
        out_tagged(out, ETF_STRING, 3, 2);
        out_number(out, 0x616263, 3);
        break;
    case 3:
        out_tagged(out, ETF_SMALL_BIG, 9, 1);
        out_number(out, 0, 1);
        out_number(out, n << 8 | 1, 9);
        break;
    default:
        out_tagged(out, ETF_NEW_FLOAT, UINT64_C(0x3ff0000000000000) + n, 8);
    }
}

static void out_term(struct hostile_out *out, int depth);

static void out_map(struct hostile_out *out, int depth)
{
    static const uint32_t sizes[] = {0, 1, 31, 32, 33, 127, 128, 129, 1000, 100000};
    const uint64_t any = hostile_random(out->seed);
    uint32_t size = sizes[any % (depth > 0 ? 8 : 10)];
    const int kind = (int)(any >> 8) % 5, nested = (any >> 16) % 4 == 0;

    out_tagged(out, ETF_MAP, size, 4);
    for (uint32_t i = 0; i < size && out->size < out->room; i++) {
        /* Now and then a key is there twice, which no map may have. */
        out_key(out, kind, (any >> 24) % 16 == 0 && i == size - 1 ? 0 : i);
        if (nested && depth < 3 && i % 16 == 0)
            out_term(out, depth + 1);
        else
            out_tagged(out, ETF_SMALL_INTEGER, i, 1);
    }
}

static void out_term(struct hostile_out *out, int depth)
{
    static const uint32_t lengths[] = {0, 1, 63, 64, 65, 255, 256, 8192, 65536, 1 << 20};
    const uint64_t any = hostile_random(out->seed);
    const uint32_t length = lengths[(any >> 8) % (depth > 0 ? 7 : 10)];
    char name[256];

    switch (any % 16) {
    default:
        out_map(out, depth);
        break;
    case 0: /* a binary */
        out_tagged(out, ETF_BINARY, length, 4);
        out_fill(out, length, 7);
        break;
    case 1: /* a bit string */
        out_tagged(out, ETF_BIT_BINARY, length + 1, 4);
        out_number(out, 1 + any % 8, 1);
        out_fill(out, length + 1, 0);
        break;
    case 2: /* a bignum */
        out_tagged(out, ETF_LARGE_BIG, length, 4);
        out_number(out, any >> 63, 1);
        out_fill(out, length, 0xff);
        break;
    case 3: /* a list of small ones */
        out_tagged(out, ETF_LIST, length, 4);
        out_fill(out, length, ETF_NIL);
        out_number(out, ETF_NIL, 1);
        break;
    case 4: /* a tuple */
        out_tagged(out, ETF_LARGE_TUPLE, length, 4);
        out_fill(out, length, ETF_NIL);
        break;
    case 5: /* levels */
        for (uint32_t i = 0; i < (length > 8192 ? 10000 : length); i++)
            out_tagged(out, ETF_SMALL_TUPLE, 1, 1);
        out_number(out, ETF_NIL, 1);
        break;
    case 6: /* an atom that may not be there */
        memset(name, 'q', sizeof name);
        name[0] = (char)('a' + any % 26);
        out_atom(out, name, length % 256);
        break;
    case 7: /* a pid, a port, a reference of another node */
        out_number(out, ETF_NEW_PID, 1);
        out_atom(out, "nonode@nohost", 13);
        out_number(out, any, 8);
        out_number(out, any >> 8, 4);
        break;
    case 8:
        out_tagged(out, ETF_NEWER_REFERENCE, any % 7, 2);
        out_atom(out, "nonode@nohost", 13);
        for (uint64_t i = 0; i < any % 7 + 1; i++)
            out_number(out, any, 4);
        break;
    case 9:
        out_number(out, ETF_V4_PORT, 1);
        out_atom(out, "nonode@nohost", 13);
        out_number(out, any, 8);
        out_number(out, 1, 4);
        break;
    case 10: /* an external fun */
        out_number(out, ETF_EXPORT, 1);
        out_atom(out, "lists", 5);
        out_atom(out, any >> 60 ? "map" : "qqqq", any >> 60 ? 3 : 4);
        out_tagged(out, ETF_SMALL_INTEGER, 2, 1);
        break;
    case 11: /* keys that are long */
        out_tagged(out, ETF_MAP, 33, 4);
        for (uint64_t i = 0; i < 33; i++) {
            out_tagged(out, ETF_STRING, 500 + 8, 2);
            out_fill(out, 500, 'k');
            out_number(out, i, 8);
            out_number(out, ETF_NIL, 1);
        }
        break;
    }
}

static size_t hostile_large(uint8_t *place, size_t room, uint64_t *seed)
{
    struct hostile_out out = {.place = place, .room = room, .seed = seed};

    out_number(&out, ETF_VERSION, 1);
    out_term(&out, 0);
    return out.size;
}

static void hostile_reply(struct hostile *hostile, uint32_t index)
{
    struct ring_slot *slot = ring_slot_at(hostile->base, &hostile->geometry, index);
    struct ring_header *header = (struct ring_header *)(void *)hostile->base;
    const uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);
    const uint32_t use = state & ~(uint32_t)(RING_USE - 1);
    uint64_t *seed = &hostile->seed;
    const uint32_t asked = slot->region;
    uint64_t kind = hostile_random(seed);
    size_t size;

    for (uint64_t i = hostile_random(seed) % 4; i > 0; i--)
        __atomic_store_n(&slot->state, (uint32_t)hostile_random(seed), __ATOMIC_RELEASE);
    if (kind % 3 == 0) {
        size = hostile_random(seed) % 1000;
        hostile_bytes(slot->payload, size, seed);
        slot->payload[0] = 131;
    } else if (kind % 3 == 1) {
        size = hostile_term(slot->payload, seed);
    } else {
        size = hostile_large(slot->payload, ring_payload_max(&hostile->geometry), seed);
    }
    slot->code = kind % 5 == 0 ? (uint32_t)hostile_number(seed) : 1 + (uint32_t)kind % 5;
    slot->size = kind % 7 == 0 ? hostile_number(seed) : size;
    slot->leases = kind % 11 == 0 ? (uint32_t)hostile_number(seed) : 0;
    slot->region = 0;
    if (kind % 13 == 0)
        slot->region = (uint32_t)hostile_number(seed);
    if (kind % 17 == 0) {
        const uint64_t first = ring_replies_at(&hostile->geometry) / RING_PAGE;
        const uint64_t pages = hostile->geometry.reply_bytes / RING_PAGE;

        slot->region = (uint32_t)(first - 2 + hostile_random(seed) % (pages + 4));
    }
    /* Where the arguments were, and more than there is room for, now and then. */
    if (kind % 3 == 2 && asked > 0 &&
        ((uint64_t)asked + 64) * RING_PAGE < ring_bytes(&hostile->geometry)) {
        slot->code = RING_VALUE;
        slot->region = asked + (kind % 16 == 0);
        slot->size = hostile_large(hostile->base + (uint64_t)asked * RING_PAGE + RING_REQUEST_SKEW,
                                   (kind >> 8) % (32 * RING_PAGE), seed);
    }
    if (kind % 64 == 1) { /* a large one, in a region that may be another slot's as well */
        const uint64_t at = ring_replies_at(&hostile->geometry) +
                            hostile_random(seed) % 4 * (hostile->geometry.reply_bytes / 4);

        slot->code = RING_VALUE;
        slot->region = (uint32_t)(at / RING_PAGE);
        slot->size =
            hostile_large(hostile->base + slot->region * (uint64_t)RING_PAGE + RING_REPLY_SKEW,
                          hostile->geometry.reply_bytes / 4 - RING_PAGE, seed);
    }
    __atomic_store_n(&slot->state, use | RING_REPLY | (hostile_random(seed) & RING_WAIT),
                     __ATOMIC_RELEASE);
    __atomic_fetch_or(&header->done[index / 64], UINT64_C(1) << index % 64, __ATOMIC_SEQ_CST);
    bell_ring(&header->vm_bell);
}

static void *hostile_answer(void *arg)
{
    struct hostile *hostile = arg;

    for (;;)
        for (uint32_t i = 0; i < hostile->geometry.slots; i++) {
            struct ring_slot *slot = ring_slot_at(hostile->base, &hostile->geometry, i);
            const uint32_t state = __atomic_load_n(&slot->state, __ATOMIC_ACQUIRE);

            if ((state & (RING_REQUEST | RING_REPLY)) == RING_REQUEST)
                hostile_reply(hostile, i);
        }
    return NULL;
}

static void hostile_scribble(struct hostile *hostile)
{
    uint64_t *seed = &hostile->seed;
    struct ring_header *header = (struct ring_header *)(void *)hostile->base;

    for (uint64_t round = 0;; round++) {
        const uint64_t value = hostile_number(seed);
        struct ring_slot *slot =
            ring_slot_at(hostile->base, &hostile->geometry,
                         (uint32_t)(hostile_random(seed) % hostile->geometry.slots));

        switch (hostile_random(seed) % 12) {
        case 0:
            slot->code = (uint32_t)value;
            break;
        case 1:
            slot->size = value;
            break;
        case 2:
            slot->region = (uint32_t)value;
            break;
        case 3:
            slot->leases = (uint32_t)value;
            break;
        case 4:
            slot->id = value;
            break;
        case 5:
            hostile_bytes(slot->payload, 64, seed);
            break;
        case 6:
            header->done[value % 16] = hostile_random(seed);
            break;
        case 7:
            header->queue[value % RING_SLOTS_MAX] = hostile_random(seed);
            break;
        case 8:
            header->vm_bell = (uint32_t)value;
            header->host_bell = (uint32_t)value;
            break;
        case 9:
            header->vm_sleeps = (uint32_t)value;
            header->host_sleepers = (uint32_t)value;
            header->host_attending = (uint32_t)value;
            break;
        case 10:
            header->gone_head = value;
            header->gone_tail = hostile_number(seed);
            header->gone[value % RING_GONE_LEN] = value;
            break;
        case 11:
            header->geometry =
                (struct ring_geometry){(uint32_t)value, (uint32_t)value, value, value};
            header->magic = value;
            break;
        }
        if (round % 64 == 0)
            wait_ms(0);
        if (round % 100000 == 0) /* pages go and come back as zeros */
            (void)madvise(hostile->base, ring_bytes(&hostile->geometry), MADV_DONTNEED);
    }
}

static void be_hostile(int fd, const struct ring_geometry *geometry, uint64_t seed)
{
    static struct hostile answering, scribbling;
    pthread_t thread;

    scribbling.base = mmap(NULL, ring_bytes(geometry), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (scribbling.base == MAP_FAILED)
        _exit(1);
    scribbling.geometry = *geometry;
    scribbling.seed = seed;
    answering = scribbling;
    answering.seed = seed * 7 + 1;
    if (pthread_create(&thread, NULL, hostile_answer, &answering) != 0)
        _exit(1);
    wait_ms(100); /* the VM opens the ring before its header is spoilt */
    hostile_scribble(&scribbling);
}

#endif
