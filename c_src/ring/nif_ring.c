/* nif_ring.c - rings as the NIFs know them: by their terms, closed, charged for; and their end. */
#include "nif_ring.h"

#include <tame/charge.h>

static void line_free(struct line *line)
{
    while (line->first != NULL) {
        struct line_entry *entry = line->first;

        line->first = entry->next;
        if (entry->waiter.env != NULL)
            enif_free_env(entry->waiter.env);
        free(entry);
    }
}

void ring_free(struct ring *ring)
{
    for (uint32_t i = 0; ring->slots != NULL && i < ring->vm.geometry.slots; i++)
        if (ring->slots[i].waiter.env != NULL)
            enif_free_env(ring->slots[i].waiter.env);
    line_free(&ring->line);
    line_free(&ring->dismissed);
    while (ring->used != NULL) {
        struct lease_list *next = ring->used->next;

        free(ring->used);
        ring->used = next;
    }
    ring_vm_close(&ring->vm);
    if (ring->lock != NULL)
        enif_mutex_destroy(ring->lock);
    if (ring->gone_lock != NULL)
        enif_mutex_destroy(ring->gone_lock);
    if (ring->reason_env != NULL)
        enif_free_env(ring->reason_env);
    free(ring->slots);
    free(ring->purges);
    for (size_t i = 0; i < LEASE_SEGMENTS_MAX && ring->leases[i] != NULL; i++)
        free(ring->leases[i]);
    free(ring->gone);
    free(ring);
}

/* ---- terms ---- */

int get_ring(ErlNifEnv *env, ERL_NIF_TERM term, struct ring **ring)
{
    void *object;

    if (!enif_get_resource(env, term, library_of(env)->ring_type, &object))
        return 0;
    *ring = ((struct ring_handle *)object)->ring;
    return 1;
}

ERL_NIF_TERM raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

int is_lost(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    return enif_is_ref(env, ring_term);
}

ERL_NIF_TERM make_error(ErlNifEnv *env, struct library *library, ERL_NIF_TERM reason)
{
    return enif_make_tuple2(env, library->am_error, reason);
}

ERL_NIF_TERM make_host_down(ErlNifEnv *env, struct ring *ring)
{
    struct library *library = ring->library;
    ERL_NIF_TERM reason;

    enif_mutex_lock(ring->lock);
    reason = ring->reason_env == NULL ? library->am_closed : enif_make_copy(env, ring->reason);
    enif_mutex_unlock(ring->lock);
    return make_error(env, library, enif_make_tuple2(env, library->am_host_down, reason));
}

ERL_NIF_TERM make_bad_reply(ErlNifEnv *env, struct ring *ring, const char *what)
{
    if (is_removed(ring))
        return make_host_down(env, ring);
    counted(&ring->bad_replies);
    return make_error(
        env, ring->library,
        enif_make_tuple2(env, ring->library->am_bad_reply, enif_make_atom(env, what)));
}

ERL_NIF_TERM make_too_large(ErlNifEnv *env, struct ring *ring, uint64_t bytes)
{
    return make_error(
        env, ring->library,
        enif_make_tuple2(env, ring->library->am_reply_too_large, enif_make_uint64(env, bytes)));
}

ERL_NIF_TERM make_closed(ErlNifEnv *env, struct ring *ring)
{
    return make_error(env, ring->library, ring->library->am_closed);
}

ERL_NIF_TERM lost(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    struct library *library = library_of(env);

    if (!is_lost(env, ring_term))
        return enif_make_badarg(env);
    return enif_make_tuple2(env, library->am_error,
                            enif_make_tuple2(env, library->am_host_down, library->am_upgraded));
}

ERL_NIF_TERM lost_call(ErlNifEnv *env, ERL_NIF_TERM ring_term)
{
    struct library *library = library_of(env);

    if (!is_lost(env, ring_term))
        return enif_make_badarg(env);
    return enif_make_tuple2(env, library->am_error, library->am_closed);
}

/* ---- time, and closing ---- */

void charge(ErlNifEnv *env, uint64_t ns)
{
    (void)tame_charge(env, ns);
}

uint64_t own_now_ns(void)
{
    return tame_impl_meter_now_ns();
}

void ring_shut(struct ring *ring, ERL_NIF_TERM reason)
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
