/* nif_reply.c - the reply in a slot: how it is read, and what is wrong with it. */
#include "nif_reply.h"

#include "etf_search.h"
#include "nif_leases.h"
#include "nif_reading.h"
#include "nif_slots.h"

/* A reply that is one binary only has to be copied. Its head is within. */
#define INLINE_BINARY_BYTES (260 * 1024)

/* Leases released by the caller; more are the reader's. */
#define INLINE_LEASES LEASES_STEP

/* The reply is not read any further. Its leases are used all the same, by the reader where they are
 * many. */
static void drop_reply(struct ring *ring, uint32_t index, uint64_t id,
                       const struct ring_reply *reply)
{
    if (reply->leases > INLINE_LEASES) {
        abandon_slot(ring, index, id);
        return;
    }
    leases_used(ring, reply->data + reply->size, reply->leases);
    finish_slot(ring, index, id, reply);
}

/* Whether a small copy of a reply holds what the emulator must not see (etf_scan.h). */
static int is_wrong(struct ring *ring, const uint8_t *data, size_t size)
{
    struct etf_scan scan;
    int wrong;

    if (!etf_may_be_wrong(data, size))
        return 0;
    etf_scan_open(&scan);
    scan_names(ring, &scan);
    while (etf_scan_some(&scan, data, size, SCAN_STEP) == ETF_SCAN_MORE) {
    }
    wrong = scan.wrong != NULL;
    etf_scan_close(&scan);
    return wrong;
}

/* Returns 0 when it is too much, or wrong; then nothing has happened. */
static int read_at_once(ErlNifEnv *env, struct ring *ring, const struct ring_reply *reply,
                        ERL_NIF_TERM *term)
{
    uint8_t near[2048];
    uint8_t *copy = near;
    int read = 0;

    if (reply->leases > INLINE_LEASES || reply->size > ring->reply_bytes_max)
        return 0;
    if (reply->size <= INLINE_BINARY_BYTES && is_one_binary(reply)) {
        const size_t bytes = reply->size - BINARY_HEAD;

        ring_copy(enif_make_new_binary(env, bytes, term), reply->data + BINARY_HEAD, bytes);
        return 1;
    }
    if (reply->size > INLINE_REPLY_BYTES || reply->size < 2 || !is_small(ring, reply->size))
        return 0;
    if (reply->size > sizeof near)
        copy = enif_alloc(reply->size);
    if (copy == NULL)
        return 0;
    ring_copy(copy, reply->data, reply->size);
    /* A host has no reason to compress; its few bytes could become gigabytes. */
    read = copy[0] == ETF_VERSION && copy[1] != ETF_COMPRESSED &&
           !is_wrong(ring, copy, reply->size) &&
           enif_binary_to_term(env, copy, reply->size, term, ERL_NIF_BIN2TERM_SAFE) == reply->size;
    if (copy != near)
        enif_free(copy);
    return read;
}

/* What this call teaches about how to wait for the next. */
static void learn(struct ring *ring, const struct slot *slot, uint64_t work_ns)
{
    waiting_replied(&ring->waiting, slot->function, work_ns, slot->replied_ns);
    if (slot->polled_out)
        waiting_polled_out(&ring->waiting, work_ns, slot->submitted_ns, slot->replied_ns);
}

/* Returns 0 for a large reply: nothing has happened then but that it is described. */
static int take_small(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                      struct ring_reply *reply, ERL_NIF_TERM *result)
{
    struct library *library = ring->library;
    struct slot *slot = &ring->slots[index];
    const char *wrong = ring_vm_reply(&ring->vm, index, slot->region, reply);

    if (wrong != NULL) {
        *result = make_bad_reply(env, ring, wrong);
        finish_slot(ring, index, id, NULL);
        return 1;
    }
    if (slot->replied_ns == 0)
        slot->replied_ns = own_now_ns();
    switch (reply->code) {
    case RING_VALUE:
    case RING_RAISE:
        if (reply->size > ring->reply_bytes_max) {
            *result = make_too_large(env, ring, reply->size);
            break;
        }
        if (!read_at_once(env, ring, reply, result))
            return 0;
        *result = enif_make_tuple2(env, kind_of(ring, reply), *result);
        if (is_removed(ring))
            *result = make_host_down(env, ring);
        break;
    case RING_BADARG:
        *result = library->am_badarg;
        break;
    case RING_TOO_LARGE:
        *result = make_error(env, library, library->am_too_large);
        break;
    default: /* RING_DROPPED, of a call that has a caller: a lie */
        *result = make_bad_reply(env, ring, "dropped");
        break;
    }
    learn(ring, slot, reply->work_ns);
    drop_reply(ring, index, id, reply);
    return 1;
}

ERL_NIF_TERM take_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id)
{
    struct ring_reply reply;
    ERL_NIF_TERM result;

    if (take_small(env, ring, index, id, &reply, &result))
        return result;
    learn(ring, &ring->slots[index], reply.work_ns);
    return read_in_slices(env, ring, index, id, &reply);
}

int take_small_reply(ErlNifEnv *env, struct ring *ring, uint32_t index, uint64_t id,
                     ERL_NIF_TERM *result)
{
    struct ring_reply reply;

    return take_small(env, ring, index, id, &reply, result);
}
