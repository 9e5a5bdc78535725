/* ring_vm.h - the VM's end of a ring, as ring_host.h is the host's: opening the file, submitting
 * requests, reading replies. Plain C, nothing of Erlang; the NIFs (nif_*.c) and the unit tests
 * stand on it.
 *
 * Everything here mistrusts the shared memory (see ring.h): words of the host are read once, with
 * an atomic load so that the compiler does not read them again, and checked before use. */
#ifndef TAME_RING_VM_H
#define TAME_RING_VM_H

#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../os/os.h"
#include "bell.h"
#include "extents.h"
#include "ring.h"
#include "spin.h"

struct ring_vm {
    uint8_t *base;
    uint64_t bytes;
    struct ring_header *header;
    struct ring_geometry geometry; /* our copy; the one in the header is not read again */
    uint64_t tail;                 /* requests ever submitted */
    uint64_t gone_tail;
    struct extents requests; /* its user guards it */
};

/* ---- opening ---- */

/* Takes a mapped ring over. NULL, or what is wrong with it. */
static inline const char *ring_vm_attach(struct ring_vm *vm, uint8_t *base, uint64_t bytes)
{
    struct ring_header *header = (struct ring_header *)(void *)base;
    struct extent area;

    vm->base = base;
    vm->bytes = bytes;
    vm->header = header;
    if (bytes < RING_HEADER_BYTES ||
        __atomic_load_n(&header->magic, __ATOMIC_ACQUIRE) != RING_MAGIC)
        return "not_a_ring";
    if (__atomic_load_n(&header->version, __ATOMIC_RELAXED) != RING_VERSION)
        return "other_version";
    vm->geometry.slots = __atomic_load_n(&header->geometry.slots, __ATOMIC_RELAXED);
    vm->geometry.slot_bytes = __atomic_load_n(&header->geometry.slot_bytes, __ATOMIC_RELAXED);
    vm->geometry.request_bytes = __atomic_load_n(&header->geometry.request_bytes, __ATOMIC_RELAXED);
    vm->geometry.reply_bytes = __atomic_load_n(&header->geometry.reply_bytes, __ATOMIC_RELAXED);
    if (ring_geometry_wrong(&vm->geometry) != NULL || ring_bytes(&vm->geometry) != bytes)
        return "bad_geometry";
    area = (struct extent){(uint32_t)(ring_requests_at(&vm->geometry) / RING_PAGE),
                           (uint32_t)(vm->geometry.request_bytes / RING_PAGE)};
    if (!extents_open(&vm->requests, area))
        return "enomem";
    return NULL;
}

/* May be called on a ring_vm that is all zero, or whose opening failed. */
static inline void ring_vm_close(struct ring_vm *vm)
{
    extents_close(&vm->requests);
    if (vm->base != NULL)
        munmap(vm->base, vm->bytes);
    *vm = (struct ring_vm){0};
}

/* Opens the ring that the process os_pid has open as fd. NULL, or the reason as a word; *vm is
 * closed then. The VM keeps no fd of the file. */
static inline const char *ring_vm_open(struct ring_vm *vm, int64_t os_pid, int64_t fd)
{
    const int file = os_shared_open(os_pid, fd);
    const char *wrong = NULL;
    struct stat status;
    void *base = NULL;

    *vm = (struct ring_vm){0};
    if (file < 0)
        return "no_such_ring";
    if (!os_shared_is_fixed(file))
        wrong = "not_sealed";
    else if (fstat(file, &status) != 0 || status.st_size < RING_HEADER_BYTES)
        wrong = "not_a_ring";
    else if ((uint64_t)status.st_size > 3 * RING_AREA_BYTES_MAX)
        wrong = "bad_geometry";
    else if ((base = os_shared_map(file, (uint64_t)status.st_size)) == NULL)
        wrong = "enomem";
    close(file);
    if (wrong != NULL)
        return wrong;
    /* The VM never forks; what its erl_child_setup inherited was mapped before. */
    wrong = ring_vm_attach(vm, base, (uint64_t)status.st_size);
    if (wrong != NULL)
        ring_vm_close(vm);
    return wrong;
}

/* ---- calls ---- */

static inline struct ring_slot *ring_vm_slot(struct ring_vm *vm, uint32_t slot)
{
    return ring_slot_at(vm->base, &vm->geometry, slot);
}

/* Where a request's payload is to be written. */
static inline uint8_t *ring_vm_region(struct ring_vm *vm, struct extent region)
{
    return vm->base + (uint64_t)region.at * RING_PAGE + RING_REQUEST_SKEW;
}

/* A request whose payload is written. */
struct ring_request {
    uint32_t function; /* below RING_FUNCTIONS_MAX */
    uint64_t id;
    uint64_t size;
    struct extent region;
    uint64_t now_ns;
    uint64_t pause_ns; /* since a reply was taken (waiting.h) */
};

/* Hands a request to the host. `use` is this use of the slot, a multiple of RING_USE; `wait` is
 * RING_WAIT, of a caller who does not look at the slot again, or 0. Returns whether a worker had to
 * be woken. */
static inline int ring_vm_submit(struct ring_vm *vm, uint32_t index, uint32_t use, uint32_t wait,
                                 const struct ring_request *request)
{
    struct ring_slot *slot = ring_vm_slot(vm, index);
    struct ring_header *header = vm->header;
    uint64_t place;

    slot->code = ring_request_code(request->function, request->pause_ns);
    slot->id = request->id;
    slot->size = ring_request_word(request->size, os_cpu());
    slot->region = request->region.pages > 0 ? request->region.at : 0;
    slot->leases = (uint32_t)request->now_ns;
    __atomic_store_n(&slot->state, use | RING_REQUEST | wait, __ATOMIC_RELEASE);

    place = __atomic_fetch_add(&vm->tail, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&header->queue[place % RING_SLOTS_MAX], (place + 1) << 16 | index,
                     __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&header->host_sleepers, __ATOMIC_SEQ_CST) == 0 ||
        (wait == 0 && __atomic_load_n(&header->host_attending, __ATOMIC_SEQ_CST) > 0))
        return 0;
    bell_ring(&header->host_bell);
    return 1;
}

/* Whether the reply to this use of the slot is there. */
static inline int ring_vm_replied(struct ring_vm *vm, uint32_t index, uint32_t use)
{
    const uint32_t state = __atomic_load_n(&ring_vm_slot(vm, index)->state, __ATOMIC_ACQUIRE);

    return (state & ~(uint32_t)(RING_WAIT | RING_CANCEL)) == (use | RING_REPLY);
}

/* Whether a worker of the host has the call. Its word, so a hint. */
static inline int ring_vm_taken(struct ring_vm *vm, uint32_t index)
{
    return (__atomic_load_n(&ring_vm_slot(vm, index)->state, __ATOMIC_ACQUIRE) & RING_TAKEN) != 0;
}

/* The caller stops looking: if nobody has the call or has had it, a worker that sleeps is woken,
 * because the one that attends to the queue may be at a call that takes longer than expected. */
static inline void ring_vm_nudge(struct ring_vm *vm, uint32_t index)
{
    const uint32_t state = __atomic_load_n(&ring_vm_slot(vm, index)->state, __ATOMIC_ACQUIRE);

    if ((state & (RING_TAKEN | RING_REPLY)) == 0 &&
        __atomic_load_n(&vm->header->host_sleepers, __ATOMIC_SEQ_CST) > 0)
        bell_ring(&vm->header->host_bell);
}

/* Asks to be rung for the reply. Returns 1 when it is there already. */
static inline int ring_vm_wait(struct ring_vm *vm, uint32_t index, uint32_t use)
{
    (void)__atomic_fetch_or(&ring_vm_slot(vm, index)->state, RING_WAIT, __ATOMIC_SEQ_CST);
    return ring_vm_replied(vm, index, use);
}

static inline void ring_vm_cancel(struct ring_vm *vm, uint32_t index)
{
    (void)__atomic_fetch_or(&ring_vm_slot(vm, index)->state, RING_CANCEL, __ATOMIC_SEQ_CST);
}

/* A reply whose bounds have been checked. The bytes may still change under our eyes: copy, then
 * read. */
struct ring_reply {
    enum ring_code code;
    const uint8_t *data;
    uint64_t size;
    uint32_t leases;  /* ids at data + size */
    int in_region;    /* of the host's */
    uint64_t work_ns; /* what the host says that it took: a hint */
};

/* Reads the words of a reply to a request in this region. Returns NULL, or what is wrong with it. */
static inline const char *ring_vm_reply(struct ring_vm *vm, uint32_t index, struct extent request,
                                        struct ring_reply *reply)
{
    struct ring_slot *slot = ring_vm_slot(vm, index);
    const uint32_t word = __atomic_load_n(&slot->code, __ATOMIC_RELAXED);
    const uint32_t code = word & 0xff;
    const uint64_t size = __atomic_load_n(&slot->size, __ATOMIC_RELAXED);
    const uint32_t region = __atomic_load_n(&slot->region, __ATOMIC_RELAXED);
    const uint32_t leases = __atomic_load_n(&slot->leases, __ATOMIC_RELAXED);
    const uint64_t replies_at = ring_replies_at(&vm->geometry);
    uint64_t at, room;

    if (code < RING_VALUE || code > RING_TOO_LARGE)
        return "code";
    if (leases > RING_LEASES_MAX)
        return "leases";
    if (region == 0) {
        at = (uint64_t)((const uint8_t *)slot->payload - vm->base);
        room = ring_payload_max(&vm->geometry);
    } else if (request.pages > 0 && region == request.at) {
        at = (uint64_t)region * RING_PAGE + RING_REQUEST_SKEW;
        room = ring_request_room(request.pages);
    } else {
        at = (uint64_t)region * RING_PAGE + RING_REPLY_SKEW;
        if (at < replies_at || at >= vm->bytes)
            return "region";
        room = vm->bytes - at;
    }
    if (size > room || leases * sizeof(uint64_t) > room - size)
        return "size";
    *reply = (struct ring_reply){(enum ring_code)code,
                                 vm->base + at,
                                 size,
                                 leases,
                                 at >= replies_at,
                                 (uint64_t)(word >> 8) * RING_WORK_UNIT_NS};
    return NULL;
}

/* The reply has been read: its place is the host's again. A host that sleeps is told when that is
 * worth it. */
static inline void ring_vm_release(struct ring_vm *vm, uint32_t index, uint32_t use,
                                   const struct ring_reply *reply)
{
    __atomic_store_n(&ring_vm_slot(vm, index)->state, use, __ATOMIC_SEQ_CST);
    if (reply != NULL && reply->in_region && reply->size > RING_HOT_BYTES / 8 &&
        __atomic_load_n(&vm->header->host_sleepers, __ATOMIC_SEQ_CST) > 0)
        bell_ring(&vm->header->host_bell);
}

/* Tells the host of collected proxies. Returns how many found room. One thread at a time. */
static inline size_t ring_vm_gone(struct ring_vm *vm, const uint64_t *ids, size_t len)
{
    struct ring_header *header = vm->header;
    /* What the host claims to have taken; a lie costs it ids. */
    const uint64_t head = __atomic_load_n(&header->gone_head, __ATOMIC_SEQ_CST);
    const uint64_t waiting = vm->gone_tail - head;
    size_t room = waiting > RING_GONE_LEN ? 0 : RING_GONE_LEN - (size_t)waiting;

    if (len > room)
        len = room;
    if (len == 0)
        return 0;
    for (size_t i = 0; i < len; i++)
        header->gone[vm->gone_tail++ % RING_GONE_LEN] = ids[i];
    __atomic_store_n(&header->gone_tail, vm->gone_tail, __ATOMIC_SEQ_CST);
    /* Where ids were waiting already, somebody has rung for them, or no worker slept then; and a
     * worker that is awake checks before it sleeps. */
    if ((waiting == 0 || __atomic_load_n(&header->gone_head, __ATOMIC_SEQ_CST) != head) &&
        __atomic_load_n(&header->host_sleepers, __ATOMIC_SEQ_CST) > 0)
        bell_ring(&vm->header->host_bell);
    return len;
}

/* Whether the host is to ring when it has taken ids. After this is set, the VM must try
 * once more: the host may have taken them just before. */
static inline void ring_vm_gone_waits(struct ring_vm *vm, int waits)
{
    __atomic_store_n(&vm->header->gone_waits, (uint32_t)waits, __ATOMIC_SEQ_CST);
}

/* What lies behind the hot start of a region of ours goes back to the system. Not on a scheduler:
 * takes a millisecond for some 10 MB. */
static inline void ring_vm_purge(struct ring_vm *vm, struct extent region)
{
    const uint64_t hot_end = ring_requests_at(&vm->geometry) + RING_HOT_BYTES;
    const uint64_t end = ((uint64_t)region.at + region.pages) * RING_PAGE;
    uint64_t start = (uint64_t)region.at * RING_PAGE;

    if (start < hot_end)
        start = hot_end;
    if (end > start)
        os_shared_give_back(vm->base + start, end - start);
}

/* Whether freeing the region needs ring_vm_purge first. */
static inline int ring_vm_cold(struct ring_vm *vm, struct extent region)
{
    return ((uint64_t)region.at + region.pages) * RING_PAGE >
           ring_requests_at(&vm->geometry) + RING_HOT_BYTES;
}

#endif
