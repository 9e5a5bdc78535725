/* tame_ring_nif.c - calls over a ring, from the VM. What the parts do: ring.h (the memory),
 * vm_ring.h (slots, line), vm_leases.h, vm_reader.h (the reader thread), nif_reply.h (replies to
 * terms), nif_wait.h (how a caller waits), nif_leases.h, nif_info.h, nif_life.h (opening, closing,
 * upgrade).
 *
 * A call encodes its arguments straight into a slot, spins while that has paid lately, and returns
 * the value itself or {wait, Token}: then wait/3 with a reference, and after {Ref, ready} take/2.
 * No work of a NIF here takes longer than some 100 us on a scheduler, but what DIRTY_NS lets pass.
 */
#define _GNU_SOURCE /* memfd's seals, O_PATH */
#include "etf_write.h"
#include "vm_reader.h"

/* Encoded or copied in one go at most; longer arguments take hops. 10 to 80 us. */
#define INLINE_REQUEST_BYTES (256 * 1024)

/* Copied between two looks at the clock, and at most in one slice. */
#define COPY_STEP_BYTES (32 * 1024)
#define COPY_SLICE_NS 100000

/* A large request on its way into its region, by hops. */
struct copy {
    struct ring *ring;
    struct extent region;
    size_t done;
};

static struct library *library_of(ErlNifEnv *env)
{
    return enif_priv_data(env);
}

static int get_ring(ErlNifEnv *env, ERL_NIF_TERM term, struct ring **ring)
{
    void *object;

    if (!enif_get_resource(env, term, library_of(env)->ring_type, &object))
        return 0;
    *ring = ((struct ring_handle *)object)->ring;
    return 1;
}

static ERL_NIF_TERM raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* A reference that is none of our rings: one whose library was replaced by another layout (see
 * nif_life.h), which has closed it. */
static int is_lost(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    return enif_is_ref(env, ring_term);
}

static ERL_NIF_TERM make_closed(ErlNifEnv *env, struct ring *ring);

/* What became of a call whose ring is lost: the host may have had it. */
static ERL_NIF_TERM lost(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    struct library *library = library_of(env);

    if (!is_lost(env, ring_term))
        return enif_make_badarg(env);
    return enif_make_tuple2(env, library->am_error,
                            enif_make_tuple2(env, library->am_host_down, library->am_upgraded));
}

/* A call on a lost ring, before it began. */
static ERL_NIF_TERM lost_call(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    struct library *library = library_of(env);

    if (!is_lost(env, ring_term))
        return enif_make_badarg(env);
    return enif_make_tuple2(env, library->am_error, library->am_closed);
}

/* Time used beyond what a function call is worth is paid for. */
static void charge(ErlNifEnv *env, uint64_t ns)
{
    if (ns > 5000)
        (void)enif_consume_timeslice(env, ns < 1000000 ? (int)(ns / 10000) + 1 : 100);
}

/* Closes once. The reason may be 0. Never waits: the reader does what is to do, and ends. */
static void ring_shut(struct ring *ring, ERL_NIF_TERM reason)
{
    enif_mutex_lock(ring->lock);
    if (!is_closed(ring)) {
        if (reason != 0 && (ring->reason_env = enif_alloc_env()) != NULL)
            ring->reason = enif_make_copy(ring->reason_env, reason);
        __atomic_store_n(&ring->closed, 1, __ATOMIC_SEQ_CST);
    }
    enif_mutex_unlock(ring->lock);
    wake_reader(ring);
}

#include "nif_leases.h"

#include "nif_reply.h"

/* The host was dead before it could have heard of the call: it may be made again, elsewhere. */
static ERL_NIF_TERM make_closed(ErlNifEnv *env, struct ring *ring)
{
    return make_error(env, ring->library, ring->library->am_closed);
}

/* ---- a call, after its arguments are in place
 * ---------------------------------------------------------- */

#include "nif_wait.h"

static ERL_NIF_TERM submit(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM ring_term,
                           uint32_t index, uint64_t id, uint32_t function, size_t size,
                           struct extent region)
{
    ring->slots[index].region = region;
    ring_vm_submit(&ring->vm, index, use_of(id), 0, function, id, size, region);

    /* Behind the submission: to wake the host may take as long as the caller would spin. */
    const uint64_t now_ns = ring_now_ns();

    __atomic_store_n(&ring->slots[index].submitted_ns, now_ns, __ATOMIC_RELAXED);
    return await(env, ring, ring_term, index, id, function, size, now_ns);
}

static ERL_NIF_TERM busy(ErlNifEnv *env, struct ring *ring)
{
    counted(&ring->busy);
    return make_error(env, ring->library, ring->library->am_busy);
}

/* No slot is free: the call waits in line. The data is copied; the region becomes the line's. */
static ERL_NIF_TERM stand_in_line(ErlNifEnv *env, struct ring *ring, uint64_t id, uint32_t function,
                                  const uint8_t *data, size_t size, struct extent region)
{
    struct line_entry *entry = malloc(sizeof *entry + (region.pages > 0 ? 0 : size));
    const char *refused = NULL;

    if (entry == NULL) {
        give_request_region(ring, region);
        return raise_enomem(env);
    }
    memset(entry, 0, sizeof *entry);
    entry->id = id;
    entry->function = function;
    entry->region = region;
    entry->size = size;
    if (region.pages == 0)
        memcpy(entry->data, data, size);
    waiter_park(env, ring, &entry->waiter);

    enif_mutex_lock(ring->lock);
    if (is_closed(ring)) {
        refused = "closed";
    } else if (ring->line_len >= ring->line_max) {
        refused = "busy";
    } else {
        line_add(&ring->line, entry); /* the line owns the entry now */
        __atomic_fetch_add(&ring->line_len, 1, __ATOMIC_SEQ_CST);
    }
    enif_mutex_unlock(ring->lock);
    if (refused != NULL) {
        free_line_entry(env, ring, entry);
        return refused[0] == 'b' ? busy(env, ring) : make_closed(env, ring);
    }
    counted(&ring->lined);
    counted(&ring->calls);
    pump(ring); /* a slot may have become free before the line was seen */
    return make_wait(env, ring, id, TOKEN_LINE);
}

static ERL_NIF_TERM no_region(ErlNifEnv *env, struct ring *ring, size_t size)
{
    if (size > ring->vm.geometry.request_bytes - RING_REQUEST_SKEW)
        return make_error(env, ring->library, ring->library->am_too_large);
    return busy(env, ring);
}

/* Arguments that are in a region already. */
static ERL_NIF_TERM submit_region(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM ring_term,
                                  uint32_t function, size_t size, struct extent region)
{
    const uint64_t id = new_id(ring);
    const int index = claim_slot(ring, id);

    if (index < 0)
        return stand_in_line(env, ring, id, function, NULL, size, region);
    return submit(env, ring, ring_term, (uint32_t)index, id, function, size, region);
}

/* ---- calls
 * -------------------------------------------------------------------------------------------------
 */

/* The arguments did not fit into the slot; the size is what they need. */
static ERL_NIF_TERM call_by_region(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM ring_term,
                                   uint32_t function, ERL_NIF_TERM args, size_t size)
{
    struct extent region;

    if (size == 0 || size > INLINE_REQUEST_BYTES)
        return ring->library->am_encode;
    region = take_request_region(ring, size);
    if (region.pages == 0)
        return no_region(env, ring, size);
    if (etf_write(env, args, ring_vm_region(&ring->vm, region), size) != size) {
        give_request_region(ring, region); /* cannot be: terms do not change */
        return ring->library->am_encode;
    }
    return submit_region(env, ring, ring_term, function, size, region);
}

static ERL_NIF_TERM call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Function, Args) -> Reply | {decode, ...} | {wait, Token} | encode */
    const struct extent none = {0, 0};
    struct ring *ring;
    uint32_t function;
    uint64_t id;
    int index;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost_call(env, argv[0]);
    if (!enif_get_uint(env, argv[1], &function))
        return enif_make_badarg(env);
    if (is_closed(ring))
        return make_closed(env, ring);

    const size_t room = ring_payload_max(&ring->vm.geometry);

    id = new_id(ring);
    index = claim_slot(ring, id);
    if (index >= 0) {
        uint8_t *payload = ring_vm_slot(&ring->vm, (uint32_t)index)->payload;
        const size_t size = etf_write(env, argv[2], payload, room);

        if (size > 0 && size <= room)
            return submit(env, ring, argv[0], (uint32_t)index, id, function, size, none);
        free_slot(ring, (uint32_t)index);
        return call_by_region(env, ring, argv[0], function, argv[2], size);
    }

    uint8_t *data = enif_alloc(room);
    ERL_NIF_TERM result;

    if (data == NULL)
        return raise_enomem(env);
    const size_t size = etf_write(env, argv[2], data, room);

    result = size > 0 && size <= room ? stand_in_line(env, ring, id, function, data, size, none)
                                      : call_by_region(env, ring, argv[0], function, argv[2], size);
    enif_free(data);
    return result;
}

static ERL_NIF_TERM copy_slice(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Function, Bytes, Copy) -> as call_encoded */
    struct ring *ring;
    uint32_t function;
    ErlNifBinary bytes;
    void *object;
    struct copy *copy;
    struct extent region;
    const uint64_t start_ns = ring_now_ns();

    if (!get_ring(env, argv[0], &ring))
        return lost_call(env, argv[0]);
    if (!enif_get_uint(env, argv[1], &function) || !enif_inspect_binary(env, argv[2], &bytes) ||
        !enif_get_resource(env, argv[3], library_of(env)->copy_type, &object))
        return enif_make_badarg(env);
    copy = object;
    while (copy->done < bytes.size && !is_closed(ring)) {
        size_t step = bytes.size - copy->done;

        if (step > COPY_STEP_BYTES)
            step = COPY_STEP_BYTES;
        ring_copy(ring_vm_region(&ring->vm, copy->region) + copy->done, bytes.data + copy->done,
                  step);
        copy->done += step;
        if (ring_now_ns() - start_ns > COPY_SLICE_NS) {
            (void)enif_consume_timeslice(env, 100);
            return enif_schedule_nif(env, "copy_slice", 0, copy_slice, argc, argv);
        }
    }
    charge(env, ring_now_ns() - start_ns);
    if (is_closed(ring))
        return make_closed(env, ring);
    region = copy->region;
    copy->region = (struct extent){0, 0}; /* the call's now */
    return submit_region(env, ring, argv[0], function, bytes.size, region);
}

static ERL_NIF_TERM call_encoded(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Function, Bytes) -> as call; Bytes is term_to_binary(Args) */
    struct ring *ring;
    uint32_t function;
    ErlNifBinary bytes;
    struct copy *copy;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost_call(env, argv[0]);
    if (!enif_get_uint(env, argv[1], &function) || !enif_inspect_binary(env, argv[2], &bytes))
        return enif_make_badarg(env);
    if (is_closed(ring))
        return make_closed(env, ring);

    copy = enif_alloc_resource(library_of(env)->copy_type, sizeof *copy);
    if (copy == NULL)
        return raise_enomem(env);
    *copy = (struct copy){ring, take_request_region(ring, bytes.size), 0};
    ring_keep(ring);
    if (copy->region.pages == 0) {
        enif_release_resource(copy);
        return no_region(env, ring, bytes.size);
    }

    const ERL_NIF_TERM next[] = {argv[0], argv[1], argv[2], enif_make_resource(env, copy)};

    enif_release_resource(copy); /* the term keeps it */
    return copy_slice(env, 4, next);
}

static void copy_destroy(ErlNifEnv *env, void *object)
{
    struct copy *copy = object;

    (void)env;
    give_request_region(copy->ring, copy->region);
    ring_drop(copy->ring);
}

#include "nif_info.h"

#include "nif_life.h"

static ERL_NIF_TERM encode(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Term) -> binary() | encode; for tests: what call/3 writes into a slot of 64 KiB */
    ErlNifBinary binary;
    size_t size;

    (void)argc;
    if (!enif_alloc_binary(65536, &binary))
        return raise_enomem(env);
    size = etf_write(env, argv[0], binary.data, binary.size);
    if (size == 0 || size > binary.size || !enif_realloc_binary(&binary, size)) {
        enif_release_binary(&binary);
        return library_of(env)->am_encode;
    }
    return enif_make_binary(env, &binary);
}

static ERL_NIF_TERM scan_bytes(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Bytes) -> {Memory, Pairs, KeyBytes} | What: what the scan of a reply finds */
    struct etf_scan scan;
    ErlNifBinary bytes;
    ERL_NIF_TERM result;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes) || bytes.size < 2)
        return enif_make_badarg(env);
    if (bytes.size > INLINE_REPLY_BYTES && enif_thread_type() == ERL_NIF_THR_NORMAL_SCHEDULER)
        return enif_schedule_nif(env, "scan", ERL_NIF_DIRTY_JOB_CPU_BOUND, scan_bytes, 1, argv);
    etf_scan_open(&scan);
    while (etf_scan_some(&scan, bytes.data, bytes.size, SCAN_STEP) == ETF_SCAN_MORE) {
    }
    if (scan.wrong != NULL)
        result = enif_make_atom(env, scan.wrong);
    else
        result = enif_make_tuple3(env, enif_make_uint64(env, scan.heap),
                                  enif_make_uint64(env, scan.pairs),
                                  enif_make_uint64(env, scan.key_bytes));
    etf_scan_close(&scan);
    return result;
}

static ErlNifFunc functions[] = {
    {"open", 6, open_ring, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"call", 3, call, 0},
    {"call_encoded", 3, call_encoded, 0},
    {"wait", 3, wait, 0},
    {"take", 2, take, 0},
    {"made", 1, made, 0},
    {"bad_reply", 1, bad_reply, 0},
    {"cancel", 2, cancel, 0},
    {"close", 2, close_ring, 0},
    {"choose", 2, choose, 0},
    {"home", 2, home, 0},
    {"pulse", 1, pulse, 0},
    {"leases", 2, leases, 0},
    {"used", 2, used, 0},
    {"hold", 2, hold, 0},
    {"abandoned", 2, abandoned, 0},
    {"info", 1, info, 0},
    {"encode", 1, encode, 0},
    {"scan", 1, scan_bytes, 0},
};

ERL_NIF_INIT(tame_ring_nif, functions, load, NULL, upgrade, unload)
