/* ring.h - the memory that a VM and one host share: what lies where, who writes what.
 *
 * The only place where a shared field is defined. Used by the host (ring_host.h) and by the VM
 * (ring_vm.h); plain C, nothing of Erlang.
 *
 *     header | slots | request area | reply area
 *
 * A call is written into a slot: the arguments in external term format, and behind the same few
 * words comes the reply. Arguments larger than a slot lie in a region of the request area, which the
 * VM gives out. The reply takes the place of the arguments where it fits in there, because lines
 * that go back and forth pass from core to core twice a call, and those of two places four times.
 * Where it does not, or where the arguments are too large to be moved out of its way
 * (RING_MOVED_BYTES), it lies in a region of the reply area, which the host gives out. Neither side
 * tells the other what is free: both regions are when the VM has read the reply, which the slot's
 * state says.
 *
 * One call, and the slot's state (phase bits below; the upper 24 bits are the VM's count of uses of
 * this slot, which the host repeats):
 *
 *     VM    claims a slot, writes code, id, size, region, payload     state = REQUEST
 *           puts the slot's number into the queue, rings the host if nobody attends to it
 *     host  takes the number                                          state |= TAKEN
 *           calls, writes code, size, region, leases, payload         state = REPLY, by exchange
 *           rings the VM if the old state had WAIT
 *     VM    spins on the state; when it gives up                      state |= WAIT
 *           (had it REPLY by then, there is nothing to wait for)
 *           reads each word once, checks, copies                      state = 0
 *
 * CANCEL may be set by the VM at any time before the reply: a request not taken by then is answered
 * with RING_DROPPED and not run; a running one may ask (ring_call_cancelled).
 *
 * Trust. The host may trust the VM. The VM trusts nothing in here: which slots and regions are in
 * use, and where it is in the queue, it knows from memory of its own; of what the host writes it
 * reads every word once into a local and checks that (ring_vm_reply). The file is in
 * memory and its size is sealed, so no access to the mapping can fail for a file that was cut.
 *
 * Doorbells. A thread that is about to sleep says so (host_sleepers, vm_sleeps), checks once more
 * for work, and sleeps on its bell; a thread that has work for it publishes the work, then reads
 * whether it sleeps. Both with sequential consistency, so one of them sees the other (bell.h). */
#ifndef TAME_RING_H
#define TAME_RING_H

#include "../os/bits.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RING_MAGIC UINT64_C(0x31676e6972656d74) /* "tmering1" */
#define RING_VERSION 7
#define RING_PAGE 4096 /* the unit of regions, not the system's page */

/* Bounds of a geometry. The VM refuses a file that claims more. */
#define RING_SLOTS_MAX 1024
#define RING_SLOT_BYTES_MIN 4096
#define RING_SLOT_BYTES_MAX 65536
#define RING_AREA_BYTES_MAX (UINT64_C(1) << 36)

/* Where in its first page a region's payload begins. Copies between places that agree in their
 * lower twelve bits are slow; blocks of the VM's allocators begin near 0, so requests and replies
 * keep away from that and from each other. */
#define RING_REQUEST_SKEW 1024
#define RING_REPLY_SKEW 2048
#define RING_MOVED_SKEW 3072 /* of what is moved away (below) */

/* Arguments up to this size are moved out of the place where the reply is to be: 256 KiB and what is
 * around them. More than that is in no core's own cache, so nothing is won. */
#define RING_MOVED_BYTES (260 * 1024)

/* An area's first bytes stay in memory when their regions are free; what lies behind goes back. */
#define RING_HOT_BYTES (UINT64_C(8) << 20)

#define RING_GONE_LEN 1024 /* ids of collected leases on their way to the host */

/* In one reply: 8 MiB of ids. A host with more new resources for one reply answers RING_TOO_LARGE,
 * and lists their ids behind that and later replies, so that none is lost. */
#define RING_LEASES_MAX (1 << 20)

/* Bits of a slot's state. */
enum {
    RING_REQUEST = 1,
    RING_TAKEN = 2,
    RING_REPLY = 4,
    RING_WAIT = 8,    /* ring when the reply is there */
    RING_CANCEL = 16, /* nobody wants the reply */
    RING_USE = 256    /* one use of the slot: the lowest bit of the count */
};

/* What a reply is; a host answers with nothing else. */
enum ring_code {
    RING_VALUE = 1, /* payload: the value */
    RING_RAISE = 2, /* payload: the reason */
    RING_BADARG = 3,
    RING_DROPPED = 4,  /* cancelled before it was taken */
    RING_TOO_LARGE = 5 /* the reply does not fit into the reply area */
};

struct ring_geometry {
    uint32_t slots;
    uint32_t slot_bytes;    /* a power of two, header included */
    uint64_t request_bytes; /* of each area: a multiple of RING_PAGE */
    uint64_t reply_bytes;
};

#define RING_GEOMETRY_DEFAULT \
    ((struct ring_geometry){64, 16384, UINT64_C(1) << 30, UINT64_C(1) << 30})

/* memcpy for payloads; one without bytes may have no address. A loop of our own with prefetches was
 * faster on one machine once; it takes 1.5 times as long where this was measured last
 * (bench/limit.exs). */
static inline void ring_copy(void *to, const void *from, size_t size)
{
    if (size > 0)
        memcpy(to, from, size);
}

/* 32 bytes, so that a call with a small payload is one cache line in each direction. The payload
 * follows, in a reply with its lease ids behind it, 8 bytes each, not aligned. */
struct ring_slot {
    uint32_t state;
    uint32_t code; /* request: function and pause; reply: enum ring_code and work (below) */
    uint64_t id;   /* of the call; written by the VM only */
    uint64_t size; /* of the payload, without lease ids; in a request with a CPU (below) */
    /* 0: the payload follows; else its place in the file in RING_PAGE units. A reply in the request's
     * region has the request's. */
    uint32_t region;
    uint32_t
        leases; /* reply: how many ids are behind the payload; request: when, in ns, mod 2^32 */
    uint8_t payload[];
};

/* What each side tells the other of its time, in the upper bits of a slot's code: hints
 * (waiting.h). A request has the function in the lower 20 bits, and above them the pause before it
 * in us, up to 4 ms; a reply has enum ring_code in the lower 8, and above them its work in units of
 * 64 ns. */
#define RING_FUNCTIONS_MAX (UINT32_C(1) << 20)
#define RING_PAUSES (UINT32_MAX / RING_FUNCTIONS_MAX)
#define RING_WORK_UNIT_NS 64

static inline uint32_t ring_request_code(uint32_t function, uint64_t pause_ns)
{
    const uint64_t us = pause_ns / 1000;

    return function | (uint32_t)(us > RING_PAUSES ? RING_PAUSES : us) * RING_FUNCTIONS_MAX;
}

static inline uint32_t ring_request_function(uint32_t code)
{
    return code % RING_FUNCTIONS_MAX;
}

static inline uint64_t ring_request_pause_ns(uint32_t code)
{
    return (uint64_t)(code / RING_FUNCTIONS_MAX) * 1000;
}

static inline uint32_t ring_reply_code(enum ring_code code, uint64_t work_ns)
{
    const uint64_t units = work_ns / RING_WORK_UNIT_NS;

    return (uint32_t)code | (uint32_t)(units > 0xffffff ? 0xffffff : units) << 8;
}

/* In the upper bits of a request's size is the CPU that its caller was on (waiting.h). */
#define RING_CPU_SHIFT 48

_Static_assert(RING_AREA_BYTES_MAX < UINT64_C(1) << RING_CPU_SHIFT, "they are not the size's");

static inline uint64_t ring_request_word(uint64_t size, unsigned cpu)
{
    return size | (uint64_t)cpu << RING_CPU_SHIFT;
}

static inline uint64_t ring_request_size(uint64_t word)
{
    return word & ((UINT64_C(1) << RING_CPU_SHIFT) - 1);
}

static inline unsigned ring_request_cpu(uint64_t word)
{
    return (unsigned)(word >> RING_CPU_SHIFT);
}

#define RING_LINE _Alignas(64)

struct ring_header {
    uint64_t magic;
    uint32_t version;
    struct ring_geometry geometry;

    /* The host writes sleepers and attending, the VM reads them. */
    RING_LINE uint32_t host_bell;
    uint32_t host_sleepers; /* workers that sleep */
    /* The number of the worker who attends to the queue (waiting.h), or 0. */
    RING_LINE uint32_t host_attending;

    RING_LINE uint32_t vm_bell;
    uint32_t vm_sleeps; /* the VM's reader thread does */

    RING_LINE uint64_t gone_tail; /* written by the VM, as the next */
    uint32_t gone_waits;          /* more ids wait for room: the VM is to be rung when there is */
    RING_LINE uint64_t gone_head; /* written by the host */

    /* A hint: replies with WAIT that the reader has not seen. */
    RING_LINE uint64_t done[RING_SLOTS_MAX / 64];

    /* Requests in order. The n-th stands at n % RING_SLOTS_MAX as (n + 1) << 16 | slot; as there
     * are no more slots than places, none is overwritten before it was taken. */
    RING_LINE uint64_t queue[RING_SLOTS_MAX];
    RING_LINE uint64_t gone[RING_GONE_LEN];
};

#define RING_HEADER_BYTES (6 * RING_PAGE)

_Static_assert(sizeof(struct ring_slot) == 32, "a slot's header is half a cache line");
_Static_assert(sizeof(struct ring_header) <= RING_HEADER_BYTES, "the header has its pages");

/* NULL when the geometry is fine, else what is wrong with it. */
static inline const char *ring_geometry_wrong(const struct ring_geometry *geometry)
{
    if (geometry->slots < 1 || geometry->slots > RING_SLOTS_MAX)
        return "slots must be 1 to 1024";
    if (geometry->slot_bytes < RING_SLOT_BYTES_MIN || geometry->slot_bytes > RING_SLOT_BYTES_MAX ||
        (geometry->slot_bytes & (geometry->slot_bytes - 1)) != 0)
        return "slot_bytes must be a power of two from 4096 to 65536";
    if (geometry->request_bytes < RING_PAGE || geometry->request_bytes > RING_AREA_BYTES_MAX ||
        geometry->request_bytes % RING_PAGE != 0)
        return "request_bytes must be a multiple of 4096, at most 64 GiB";
    if (geometry->reply_bytes < RING_PAGE || geometry->reply_bytes > RING_AREA_BYTES_MAX ||
        geometry->reply_bytes % RING_PAGE != 0)
        return "reply_bytes must be a multiple of 4096, at most 64 GiB";
    return NULL;
}

/* Places in the file, of a geometry that is not wrong: no sum below overflows. */

static inline uint64_t ring_requests_at(const struct ring_geometry *geometry)
{
    return RING_HEADER_BYTES + (uint64_t)geometry->slots * geometry->slot_bytes;
}

static inline uint64_t ring_replies_at(const struct ring_geometry *geometry)
{
    return ring_requests_at(geometry) + geometry->request_bytes;
}

static inline uint64_t ring_bytes(const struct ring_geometry *geometry)
{
    return ring_replies_at(geometry) + geometry->reply_bytes;
}

static inline struct ring_slot *ring_slot_at(uint8_t *base, const struct ring_geometry *geometry,
                                             uint32_t slot)
{
    return (struct ring_slot *)(void *)(base + RING_HEADER_BYTES +
                                        (uint64_t)slot * geometry->slot_bytes);
}

/* How many pages the region of a request has. */
static inline uint64_t ring_request_pages(uint64_t size)
{
    return (size + RING_REQUEST_SKEW + RING_PAGE - 1) / RING_PAGE;
}

/* The room for a payload in a request's region of that many pages. */
static inline uint64_t ring_request_room(uint64_t pages)
{
    return pages * RING_PAGE - RING_REQUEST_SKEW;
}

static inline uint32_t ring_payload_max(const struct ring_geometry *geometry)
{
    return geometry->slot_bytes - (uint32_t)sizeof(struct ring_slot);
}

#endif
