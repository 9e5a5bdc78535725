/* nif_leases.h - the NIFs of leases: proxies made, held again, let go of.
 *
 * Private to tame_ring_nif.c, which includes it behind its helpers; the table of leases is in
 * vm_ring.h. */
#ifndef TAME_RING_NIF_LEASES_H
#define TAME_RING_NIF_LEASES_H

static ERL_NIF_TERM leases(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Count) -> [{Id, Ref}] */
    struct ring *ring;
    unsigned count;
    ERL_NIF_TERM list = enif_make_list(env, 0);

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[1], &count) || count > 1024)
        return enif_make_badarg(env);
    while (count-- > 0) {
        struct proxy *proxy = enif_alloc_resource(library_of(env)->proxy_type, sizeof *proxy);
        ERL_NIF_TERM ref;
        uint64_t id;

        if (proxy == NULL)
            return raise_enomem(env);
        ring_keep(ring);
        enif_mutex_lock(ring->lock);
        id = ++ring->next_lease;
        enif_mutex_unlock(ring->lock);
        *proxy = (struct proxy){ring, id};
        ref = enif_make_resource(env, proxy);
        if (!lease_keep(ring, id, proxy)) {
            enif_release_resource(proxy);
            return is_closed(ring) ? list : raise_enomem(env);
        }
        list =
            enif_make_list_cell(env, enif_make_tuple2(env, enif_make_uint64(env, id), ref), list);
    }
    return list;
}

static ERL_NIF_TERM used(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, [Id]) -> ok */
    struct ring *ring;
    ERL_NIF_TERM head, tail = argv[1];
    ErlNifUInt64 id;
    int left = 10000;

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_is_list(env, tail))
        return enif_make_badarg(env);
    for (; enif_get_list_cell(env, tail, &head, &tail); left--) {
        if (left == 0 || !enif_get_uint64(env, head, &id))
            return enif_make_badarg(env);
        lease_used(ring, id);
    }
    return ring->library->am_ok;
}

static ERL_NIF_TERM hold(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, [Ref]) -> [Id] */
    struct ring *ring;
    ERL_NIF_TERM head, tail = argv[1], held = enif_make_list(env, 0);
    void *object;
    int left = 10000;

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_is_list(env, tail))
        return enif_make_badarg(env);
    for (; left > 0 && enif_get_list_cell(env, tail, &head, &tail); left--) {
        struct proxy *proxy;

        /* One that was collected is a reference like any other now. */
        if (!enif_get_resource(env, head, library_of(env)->proxy_type, &object))
            continue;
        proxy = object;
        if (proxy->ring != ring)
            continue;
        enif_keep_resource(proxy);
        if (lease_keep(ring, proxy->id, proxy))
            held = enif_make_list_cell(env, enif_make_uint64(env, proxy->id), held);
        else
            enif_release_resource(proxy);
    }
    return held;
}

static void proxy_destroy(ErlNifEnv *env, void *object)
{
    struct proxy *proxy = object;

    (void)env;
    tell_gone(proxy->ring, proxy->id);
    ring_drop(proxy->ring);
}

#endif
