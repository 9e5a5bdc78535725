/* nif_reading.c - large replies, in slices. */
#include "nif_reading.h"

#include "etf_search.h"
#include "nif_functions.h"
#include "nif_leases.h"
#include "nif_slots.h"

/* No term takes more than 16 bytes for each byte of its external format, version byte included (a
 * list of empty lists takes the most). */
#define MEMORY_PER_BYTE 16

/* A large reply is searched for maps first, in steps of this size: without one there is
 * nothing to scan it for. 10 to 30 us. */
#define MAP_SEARCH_BYTES (64 * 1024)

/* Building maps takes 70 to 240 ns a pair for keys of a few bytes, and up to 25 ns more for each
 * byte of long ones. By this rule at most 1 ms on a scheduler (measured: 0.5). */
#define DIRTY_NS 400000
#define PAIR_NS 100
#define KEY_BYTE_NS 12

/* Decoded in one go: 0.3 ms for JSON, 0.8 ms at worst (a list of empty lists). Maps that take longer
 * have gone to a dirty scheduler before. */
#define MESSAGE_REPLY_BYTES (160 * 1024)

/* A large reply on its way out of the shared memory. The resource is the calling process's alone;
 * it is destroyed when the process is done, or has died at any point of it. */
struct reading {
    struct ring *ring; /* counted */
    uint64_t id;
    uint32_t index;
    int owns_slot; /* the slot is BUSY, and ours */
    struct ring_reply reply;
    ErlNifBinary bytes; /* ours while has_bytes */
    int has_bytes;
    int is_binary;             /* the reply is one binary: bytes is its content */
    size_t done;               /* copied, of payload and ids together */
    struct lease_list *leases; /* ours; NULL: none, or handed over */
    uint64_t searched;         /* bytes from which no map begins */
    int needs_scan;
    struct etf_scan scan;
};

void scan_names(struct ring *ring, struct etf_scan *scan)
{
    etf_names_look(&ring->names, tame_now_ns());
    scan->names = &ring->names;
    scan->names_seed = ring->library->names_seed;
}

ERL_NIF_TERM kind_of(struct ring *ring, const struct ring_reply *reply)
{
    return reply->code == RING_VALUE ? ring->library->am_value : ring->library->am_raise;
}

int is_one_binary(const struct ring_reply *reply)
{
    uint8_t head[BINARY_HEAD];

    if (reply->size < sizeof head)
        return 0;
    memcpy(head, reply->data, sizeof head);
    return head[0] == ETF_VERSION && head[1] == ETF_BINARY &&
           ((uint64_t)head[2] << 24 | (uint64_t)head[3] << 16 | (uint64_t)head[4] << 8 | head[5]) ==
               reply->size - sizeof head;
}

int is_small(struct ring *ring, uint64_t size)
{
    return size <= (ring->reply_bytes_max - 1) / MEMORY_PER_BYTE;
}

static int is_for_dirty(const struct etf_scan *scan)
{
    return scan->pairs > 0 && scan->pairs * PAIR_NS + scan->key_bytes * KEY_BYTE_NS > DIRTY_NS;
}

static void reading_hand_over(struct reading *reading)
{
    if (reading->leases != NULL)
        leases_hand_over(reading->ring, reading->leases);
    reading->leases = NULL;
}

static void reading_free_bytes(struct reading *reading)
{
    if (reading->has_bytes)
        enif_release_binary(&reading->bytes);
    reading->has_bytes = 0;
    etf_scan_close(&reading->scan);
}

void reading_destroy(ErlNifEnv *env, void *object)
{
    struct reading *reading = object;

    (void)env;
    reading_free_bytes(reading);
    if (reading->owns_slot) { /* the leases are still listed in the slot */
        free(reading->leases);
        abandon_slot(reading->ring, reading->index, reading->id);
    } else {
        reading_hand_over(reading);
    }
    ring_drop(reading->ring);
}

/* Ends a reading without a term of its bytes. */
static ERL_NIF_TERM reading_end(struct reading *reading, ERL_NIF_TERM result)
{
    reading_free_bytes(reading);
    reading_hand_over(reading);
    return result;
}

static ERL_NIF_TERM read_dirty(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Reading) -> Reply; on a dirty CPU scheduler */
    struct reading *reading;
    void *object;
    ERL_NIF_TERM term;

    (void)argc;
    if (!enif_get_resource(env, argv[0], library_of(env)->reading_type, &object))
        return enif_make_badarg(env);
    reading = object;

    const size_t size = reading->bytes.size;

    if (enif_binary_to_term(env, reading->bytes.data, size, &term, ERL_NIF_BIN2TERM_SAFE) != size)
        return reading_end(reading, make_bad_reply(env, reading->ring, "payload"));
    return reading_end(reading,
                       enif_make_tuple2(env, kind_of(reading->ring, &reading->reply), term));
}

/* Copies up to one step; returns 0 when all is copied. */
static int reading_copy(struct reading *reading)
{
    const size_t head = reading->is_binary ? BINARY_HEAD : 0;
    const size_t payload = reading->reply.size - head;
    const size_t ids = reading->leases == NULL ? 0 : reading->leases->len * sizeof(uint64_t);
    const uint8_t *from = reading->reply.data + head + reading->done;
    size_t step;

    if (reading->done < payload) {
        step = payload - reading->done;
        if (step > COPY_STEP_BYTES)
            step = COPY_STEP_BYTES;
        ring_copy(reading->bytes.data + reading->done, from, step);
    } else {
        step = payload + ids - reading->done;
        if (step > COPY_STEP_BYTES)
            step = COPY_STEP_BYTES;
        if (step > 0)
            memcpy((uint8_t *)reading->leases->ids + (reading->done - payload), from, step);
    }
    reading->done += step;
    return reading->done < payload + ids;
}

static ERL_NIF_TERM reading_make(ErlNifEnv *env, struct reading *reading, ERL_NIF_TERM self)
{
    struct ring *ring = reading->ring;
    const ERL_NIF_TERM kind = kind_of(ring, &reading->reply);
    const ERL_NIF_TERM bytes = enif_make_binary(env, &reading->bytes);

    reading->has_bytes = 0; /* the term's */
    etf_scan_close(&reading->scan);
    if (reading->is_binary)
        return reading_end(reading, enif_make_tuple2(env, kind, bytes));
    if (reading->leases == NULL)
        return enif_make_tuple3(env, ring->library->am_decode, kind, bytes);
    return enif_make_tuple4(env, ring->library->am_decode, kind, bytes, self);
}

/* One step of the copy's examination. A reply without maps and identifiers needs no scan, if it is small enough:
 * binary_to_term/2 takes it in slices, and finds what is wrong. */
static enum etf_scan_end reading_examine(struct reading *reading)
{
    const uint8_t *data = reading->bytes.data;
    const uint64_t size = reading->bytes.size;

    if (reading->is_binary)
        return ETF_SCAN_DONE;
    if (reading->searched == 0) {
        if (size < 2 || data[0] != ETF_VERSION) {
            reading->scan.wrong = "payload";
            return ETF_SCAN_WRONG;
        }
        /* A compressed one the scan refuses. */
        reading->needs_scan = !is_small(reading->ring, size) || data[1] == ETF_COMPRESSED;
    }
    if (!reading->needs_scan) {
        const uint64_t left = size - reading->searched;
        const uint64_t end =
            reading->searched + (left < MAP_SEARCH_BYTES ? left : MAP_SEARCH_BYTES);

        reading->needs_scan = etf_may_have(data, reading->searched, end, size, 0);
        reading->searched = end;
        return end == size && !reading->needs_scan ? ETF_SCAN_DONE : ETF_SCAN_MORE;
    }
    return etf_scan_some(&reading->scan, data, size, SCAN_STEP);
}

static ERL_NIF_TERM read_slice(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Reading) -> Reply | {decode, Kind, Bytes[, Reading]} */
    struct reading *reading;
    void *object;
    const uint64_t start_ns = tame_now_ns();
    enum etf_scan_end end = ETF_SCAN_MORE;

    if (!enif_get_resource(env, argv[0], library_of(env)->reading_type, &object))
        return enif_make_badarg(env);
    reading = object;

    struct ring *ring = reading->ring;

    while (reading->owns_slot && tame_now_ns() - start_ns < COPY_SLICE_NS)
        if (!reading_copy(reading)) {
            reading->owns_slot = 0;
            finish_slot(ring, reading->index, reading->id, &reading->reply);
            if (is_removed(ring))
                return reading_end(reading, make_host_down(env, ring));
        }
    while (!reading->owns_slot && end == ETF_SCAN_MORE &&
           tame_now_ns() - start_ns < COPY_SLICE_NS) {
        end = reading_examine(reading);
        if (end == ETF_SCAN_WRONG)
            return reading_end(reading, make_bad_reply(env, ring, reading->scan.wrong));
        if (reading->scan.heap > ring->reply_bytes_max)
            return reading_end(reading, make_too_large(env, ring, reading->scan.heap));
    }
    if (end == ETF_SCAN_MORE) {
        (void)enif_consume_timeslice(env, 100);
        return enif_schedule_nif(env, "read_slice", 0, read_slice, argc, argv);
    }
    charge(env, tame_now_ns() - start_ns);
    if (is_for_dirty(&reading->scan))
        return enif_schedule_nif(env, "read_dirty", ERL_NIF_DIRTY_JOB_CPU_BOUND, read_dirty, argc,
                                 argv);
    return reading_make(env, reading, argv[0]);
}

/* The slot's reply, which is ours, goes the long way. */
ERL_NIF_TERM read_in_slices(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                            const struct ring_reply *reply)
{
    struct reading *reading = enif_alloc_resource(ring->library->reading_type, sizeof *reading);
    const int is_binary = is_one_binary(reply);
    ERL_NIF_TERM self;

    memset(reading, 0, sizeof *reading);
    ring_keep(ring);
    reading->ring = ring;
    reading->id = id;
    reading->index = index;
    reading->owns_slot = 1;
    reading->reply = *reply;
    reading->is_binary = is_binary;
    etf_scan_open(&reading->scan);
    scan_names(ring, &reading->scan);
    if (reply->leases > 0) {
        reading->leases = malloc(sizeof *reading->leases + reply->leases * sizeof(uint64_t));
        if (reading->leases != NULL)
            reading->leases->len = reply->leases;
    }
    reading->has_bytes =
        enif_alloc_binary(reply->size - (is_binary ? BINARY_HEAD : 0), &reading->bytes);
    self = enif_make_resource(env, reading);
    if (!reading->has_bytes || (reply->leases > 0 && reading->leases == NULL) ||
        reading->scan.wrong != NULL) {
        enif_release_resource(reading); /* its end abandons the slot */
        return raise_enomem(env);
    }
    enif_release_resource(reading); /* the term keeps it */
    return read_slice(env, 1, &self);
}

ERL_NIF_TERM nif_decode(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ref, Bytes) -> sent | wrong | large; sends {Ref, Term} to the calling process */
    const uint64_t start_ns = tame_now_ns();
    ErlNifBinary bytes;
    ErlNifPid self;
    ErlNifEnv *message; /* ours; enif_send empties it */
    ERL_NIF_TERM term;
    int sent;

    (void)argc;
    if (!enif_is_ref(env, argv[0]) || !enif_inspect_binary(env, argv[1], &bytes))
        return enif_make_badarg(env);
    if (bytes.size > MESSAGE_REPLY_BYTES)
        return enif_make_atom(env, "large");
    message = enif_alloc_env();
    sent = enif_binary_to_term(message, bytes.data, bytes.size, &term, ERL_NIF_BIN2TERM_SAFE) ==
               bytes.size &&
           enif_send(env, enif_self(env, &self), message,
                     enif_make_tuple2(message, enif_make_copy(message, argv[0]), term));
    enif_free_env(message);
    charge(env, tame_now_ns() - start_ns);
    return enif_make_atom(env, sent ? "sent" : "wrong");
}

/* A large reply has been made, or not: its leases are used. */
ERL_NIF_TERM nif_made(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Reading) -> ok */
    void *object;

    (void)argc;
    if (enif_get_resource(env, argv[0], library_of(env)->reading_type, &object))
        reading_hand_over(object);
    return library_of(env)->am_ok;
}

ERL_NIF_TERM nif_bad_reply(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring) -> Reply; binary_to_term/2 has refused the bytes of a reply */
    struct ring *ring;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return lost(env, argv[0]);
    return make_bad_reply(env, ring, "payload");
}
