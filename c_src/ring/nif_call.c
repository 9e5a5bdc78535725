/* nif_call.c - calls: arguments into a slot or a region, or into the line where no slot is free.
 *
 * A call encodes its arguments straight into a slot, spins where that is to pay, and returns the
 * value itself; or {poll, Token}: then poll/2, after others had their turn; or {wait, Token}: then
 * wait/3 with a reference, and after {Ref, ready} take/2.
 */
#include "etf_write.h"
#include "nif_functions.h"
#include "nif_reading.h"
#include "nif_route.h"
#include "nif_slots.h"
#include "nif_wait.h"

/* A function whose last arguments were terms of many elements, and as many bytes as this, is left to
 * term_to_binary/1 at once. */
#define ENCODE_BYTES 8192

/* A large request on its way into its region, by hops. */
struct copy {
    struct ring *ring;
    struct extent region;
    size_t done;
};

/* ---- arguments that are in place ---- */

static ERL_NIF_TERM submit(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                           uint32_t function, size_t size, struct extent region, int by_route)
{
    struct slot *slot = &ring->slots[index];
    const uint64_t now_ns = own_now_ns();
    const struct ring_request request = {.function = function,
                                         .id = id,
                                         .size = size,
                                         .region = region,
                                         .now_ns = now_ns,
                                         .pause_ns = waiting_pause_ns(&ring->waiting, now_ns)};

    slot->region = region;
    slot->function = function;
    slot->replied_ns = 0;
    slot->polled_out = 0;
    __atomic_store_n(&slot->submitted_ns, now_ns, __ATOMIC_RELAXED);

    const int woke = ring_vm_submit(&ring->vm, index, use_of(id), 0, &request);

    return await(env, ring, index, id, size, woke, by_route);
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
    int closed, full;

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
    waiter_open(env, &entry->waiter);
    waiter_watch(env, ring, &entry->waiter);

    enif_mutex_lock(ring->lock);
    closed = is_closed(ring);
    full = ring->line_len >= ring->line_max;
    if (!closed && !full) {
        line_add(&ring->line, entry); /* the line owns the entry now */
        __atomic_fetch_add(&ring->line_len, 1, __ATOMIC_SEQ_CST);
    }
    enif_mutex_unlock(ring->lock);
    if (closed || full) {
        free_line_entry(ring, entry);
        return closed ? make_closed(env, ring) : busy(env, ring);
    }
    counted(&ring->lined);
    if (tame_now_ns() - __atomic_load_n(&ring->checked_ns, __ATOMIC_RELAXED) > LINE_LOOK_NS)
        wake_reader(ring);
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
static ERL_NIF_TERM submit_region(ErlNifEnv *env, struct ring *ring, uint32_t function, size_t size,
                                  struct extent region, int by_route)
{
    const uint64_t id = new_id(ring);
    const int index = claim_slot(ring, id);

    if (index < 0)
        return stand_in_line(env, ring, id, function, NULL, size, region);
    return submit(env, ring, (uint32_t)index, id, function, size, region, by_route);
}

/* ---- the NIFs ---- */

static int get_function(ErlNifEnv *env, ERL_NIF_TERM term, uint32_t *function)
{
    return enif_get_uint(env, term, function) && *function < RING_FUNCTIONS_MAX;
}

/* term_to_binary/1 takes memory for all of a term before anything bounds it, and a list may name one
 * binary a million times. Where the first elements take as much as this, the term is measured before. */
#define LEAST_ELEMENTS 64
#define LEAST_BYTES ((size_t)1 << 20)

/* encode | {measure, MostBytes} */
static ERL_NIF_TERM encode(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM args)
{
    const size_t most = ring->vm.geometry.request_bytes - RING_REQUEST_SKEW;

    if (etf_least(env, args, LEAST_ELEMENTS) < LEAST_BYTES)
        return ring->library->am_encode;
    return enif_make_tuple2(env, ring->library->am_measure, enif_make_uint64(env, most));
}

/* The arguments did not fit into the slot; the size is what they need. */
static ERL_NIF_TERM call_by_region(ErlNifEnv *env, struct ring *ring, uint32_t function,
                                   ERL_NIF_TERM args, size_t size, int by_route)
{
    struct extent region;

    if (size == 0) {
        __atomic_store_n(&ring->encodes[waiting_place(function)], 1, __ATOMIC_RELAXED);
        return encode(env, ring, args);
    }
    if (size > INLINE_REQUEST_BYTES)
        return encode(env, ring, args);
    region = take_request_region(ring, size);
    if (region.pages == 0)
        return no_region(env, ring, size);
    if (etf_write(env, args, ring_vm_region(&ring->vm, region), size) != size) {
        give_request_region(ring, region); /* cannot be: terms do not change */
        return encode(env, ring, args);
    }
    return submit_region(env, ring, function, size, region, by_route);
}

/* Reply | {decode, ...} | {poll | wait, Token} | encode | {measure, MostBytes}; by a route,
 * {decode, ...} never. */
static ERL_NIF_TERM call(ErlNifEnv *env, struct ring *ring, ERL_NIF_TERM function_term,
                         ERL_NIF_TERM args, int by_route)
{
    const struct extent none = {0, 0};
    uint32_t function;
    uint64_t id;
    int index;

    if (!get_function(env, function_term, &function))
        return enif_make_badarg(env);
    if (is_closed(ring))
        return make_closed(env, ring);
    if (__atomic_load_n(&ring->encodes[waiting_place(function)], __ATOMIC_RELAXED))
        return encode(env, ring, args);

    const size_t room = ring_payload_max(&ring->vm.geometry);

    id = new_id(ring);
    index = claim_slot(ring, id);
    if (index >= 0) {
        uint8_t *payload = ring_vm_slot(&ring->vm, (uint32_t)index)->payload;
        const size_t size = etf_write(env, args, payload, room);

        if (size > 0 && size <= room)
            return submit(env, ring, (uint32_t)index, id, function, size, none, by_route);
        free_slot(ring, (uint32_t)index);
        return call_by_region(env, ring, function, args, size, by_route);
    }

    uint8_t *data = enif_alloc(room);
    ERL_NIF_TERM result;

    if (data == NULL)
        return raise_enomem(env);
    const size_t size = etf_write(env, args, data, room);

    result = size > 0 && size <= room ? stand_in_line(env, ring, id, function, data, size, none)
                                      : call_by_region(env, ring, function, args, size, by_route);
    enif_free(data);
    return result;
}

ERL_NIF_TERM nif_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Function, Args) -> Reply | {decode, ...} | {poll | wait, Token} | encode |
     * {measure, MostBytes} */
    struct ring *ring;

    (void)argc;
    return get_ring(env, argv[0], &ring) ? call(env, ring, argv[1], argv[2], 0)
                                         : lost_call(env, argv[0]);
}

static int is_value(ErlNifEnv *env, ERL_NIF_TERM result)
{
    const ERL_NIF_TERM *elements;
    int arity;

    return enif_get_tuple(env, result, &arity, &elements) && arity == 2 &&
           elements[0] == library_of(env)->am_value;
}

ERL_NIF_TERM nif_call_by(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Route, Function, Args) -> {value, Term} | {by, Ring, what call/3 returns but a value} | none */
    struct ring_handle *handle = route_take(env, argv[0]);
    ERL_NIF_TERM result;

    (void)argc;
    if (handle == NULL)
        return enif_is_ref(env, argv[0]) ? library_of(env)->am_none : enif_make_badarg(env);
    result = call(env, handle->ring, argv[1], argv[2], 1);
    if (!enif_has_pending_exception(env, NULL) && !is_value(env, result))
        result =
            enif_make_tuple3(env, library_of(env)->am_by, enif_make_resource(env, handle), result);
    enif_release_resource(handle);
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
    const uint64_t start_ns = tame_now_ns();

    if (!get_ring(env, argv[0], &ring))
        return lost_call(env, argv[0]);
    if (!get_function(env, argv[1], &function) || !enif_inspect_binary(env, argv[2], &bytes) ||
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
        if (tame_now_ns() - start_ns > COPY_SLICE_NS) {
            (void)enif_consume_timeslice(env, 100);
            return enif_schedule_nif(env, "copy_slice", 0, copy_slice, argc, argv);
        }
    }
    charge(env, tame_now_ns() - start_ns);
    if (is_closed(ring))
        return make_closed(env, ring);
    region = copy->region;
    copy->region = (struct extent){0, 0}; /* the call's now */
    return submit_region(env, ring, function, bytes.size, region, 0);
}

ERL_NIF_TERM nif_call_encoded(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Function, Bytes) -> as call; Bytes is term_to_binary(Args) */
    struct ring *ring;
    uint32_t function;
    ErlNifBinary bytes;
    struct copy *copy;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost_call(env, argv[0]);
    if (!get_function(env, argv[1], &function) || !enif_inspect_binary(env, argv[2], &bytes))
        return enif_make_badarg(env);
    if (is_closed(ring))
        return make_closed(env, ring);

    __atomic_store_n(&ring->encodes[waiting_place(function)], bytes.size >= ENCODE_BYTES,
                     __ATOMIC_RELAXED);
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

void copy_destroy(ErlNifEnv *env, void *object)
{
    struct copy *copy = object;

    (void)env;
    give_request_region(copy->ring, copy->region);
    ring_drop(copy->ring);
}
