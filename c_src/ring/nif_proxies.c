/* nif_proxies.c - the NIFs of leases: proxies made, held again, let go of. */
#include "nif_functions.h"
#include "nif_leases.h"

/* The host that asked has its leases to the end of the ring, which is near. */
static ERL_NIF_TERM make_too_many(ErlNifEnv *env)
{
    return enif_make_atom(env, "too_many");
}

ERL_NIF_TERM nif_leases(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Count) -> [{Id, Ref}] | too_many */
    struct ring *ring;
    unsigned count;
    ERL_NIF_TERM list = enif_make_list(env, 0);

    (void)argc;
    if (!enif_get_uint(env, argv[1], &count) || count > 1024)
        return enif_make_badarg(env);
    if (!get_ring(env, argv[0], &ring))
        return is_lost(env, argv[0]) ? list : enif_make_badarg(env);
    while (count-- > 0) {
        struct proxy *proxy = enif_alloc_resource(library_of(env)->proxy_type, sizeof *proxy);
        enum lease_kept kept;
        ERL_NIF_TERM ref;
        uint64_t id;

        if (proxy == NULL)
            return raise_enomem(env);
        ring_keep(ring);
        enif_mutex_lock(ring->lock);
        id = ++ring->next_lease;
        enif_mutex_unlock(ring->lock);
        *proxy = (struct proxy){.ring = ring, .id = id};
        ref = enif_make_resource(env, proxy);
        kept = lease_keep(ring, proxy);
        if (kept != LEASE_KEPT) {
            enif_release_resource(proxy);
            return kept == LEASE_CLOSED     ? list
                   : kept == LEASE_TOO_MANY ? make_too_many(env)
                                            : raise_enomem(env);
        }
        list =
            enif_make_list_cell(env, enif_make_tuple2(env, enif_make_uint64(env, id), ref), list);
    }
    return list;
}

/* Elements of a list for one slice: some 50 us. */
#define LIST_STEP 512

ERL_NIF_TERM nif_used(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, [Id]) -> ok */
    struct ring *ring;
    ERL_NIF_TERM head, tail = argv[1];
    uint64_t ids[LEASES_STEP];
    size_t len = 0;
    int left = LIST_STEP;

    if (!get_ring(env, argv[0], &ring))
        return is_lost(env, argv[0]) ? library_of(env)->am_ok : enif_make_badarg(env);
    if (!enif_is_list(env, tail))
        return enif_make_badarg(env);
    for (; left > 0 && enif_get_list_cell(env, tail, &head, &tail); left--) {
        ErlNifUInt64 id;

        if (!enif_get_uint64(env, head, &id))
            return enif_make_badarg(env);
        ids[len++] = id;
        if (len == LEASES_STEP) {
            leases_used(ring, (const uint8_t *)ids, len);
            len = 0;
        }
    }
    leases_used(ring, (const uint8_t *)ids, len);
    if (!enif_is_empty_list(env, tail) && left == 0) {
        const ERL_NIF_TERM next[] = {argv[0], tail};

        (void)enif_consume_timeslice(env, 5);
        return enif_schedule_nif(env, "used", 0, nif_used, argc, next);
    }
    return ring->library->am_ok;
}

static ERL_NIF_TERM hold_slice(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, [Ref], Held) -> [Id] | too_many */
    struct ring *ring;
    ERL_NIF_TERM head, tail = argv[1], held = argv[2];
    void *object;
    int left = LIST_STEP;

    if (!get_ring(env, argv[0], &ring))
        return is_lost(env, argv[0]) ? held : enif_make_badarg(env);
    for (; left > 0 && enif_get_list_cell(env, tail, &head, &tail); left--) {
        enum lease_kept kept;
        struct proxy *proxy;

        /* One that was collected is a reference like any other now. */
        if (!enif_get_resource(env, head, library_of(env)->proxy_type, &object))
            continue;
        proxy = object;
        if (proxy->ring != ring)
            continue;
        enif_keep_resource(proxy);
        kept = lease_keep(ring, proxy);
        if (kept == LEASE_KEPT)
            held = enif_make_list_cell(env, enif_make_uint64(env, proxy->id), held);
        else
            enif_release_resource(proxy);
        if (kept == LEASE_TOO_MANY)
            return make_too_many(env);
    }
    if (!enif_is_empty_list(env, tail) && left == 0) {
        const ERL_NIF_TERM next[] = {argv[0], tail, held};

        (void)enif_consume_timeslice(env, 5);
        return enif_schedule_nif(env, "hold", 0, hold_slice, argc, next);
    }
    return held;
}

ERL_NIF_TERM nif_hold(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, [Ref]) -> [Id] | too_many */
    const ERL_NIF_TERM start[] = {argv[0], argv[1], enif_make_list(env, 0)};

    (void)argc;
    if (!enif_is_list(env, argv[1]))
        return enif_make_badarg(env);
    return hold_slice(env, 3, start);
}

void proxy_destroy(ErlNifEnv *env, void *object)
{
    struct proxy *proxy = object;

    (void)env;
    if (proxy->used) {
        enif_mutex_lock(proxy->ring->lock);
        proxy->ring->resources--;
        enif_mutex_unlock(proxy->ring->lock);
    }
    tell_gone(proxy->ring, proxy->id);
    ring_drop(proxy->ring);
}
