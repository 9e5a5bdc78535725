/* tame_ring_nif.c - the library of the ring's NIFs: its table, loaded, replaced, unloaded.
 *
 * What it stands on is listed in FLOORS, from ring.h (the shared memory) and ring_vm.h (the VM's
 * end of it, plain C) up to nif_life.h. No NIF takes longer than some 100 us on a scheduler, but
 * what DIRTY_NS (nif_reading.c) lets pass.
 *
 * Replacement (hot upgrade). The new instance takes over the resource types, which have the same
 * names, and the library's struct, so open rings go on. A reader thread runs code of the instance
 * that started it, which may be unloaded later: each is stopped, joined, and started again in the
 * new code; that takes as long as a reader may be at one reply's leases, or a second where a
 * hostile host spoils the bell. Calls under way are in the ring, and their callers in tame_ring.
 *
 * That holds for instances of one layout of these structs, which ABI numbers: raise it with every
 * change of nif_ring.h. Of another layout the new instance touches nothing: it has the old one
 * close its rings with the reason `upgraded`, and the types, whose names hold the number too, stay
 * with the old one. */
#include <tame/clock.h>

#include "nif_functions.h"
#include "nif_life.h"
#include "nif_reader.h"

/* "tamering" and the layout's number. */
#define ABI_MAGIC UINT64_C(0x74616d6572696e00)
#ifndef ABI_LAYOUT /* a test builds another */
#define ABI_LAYOUT 10
#endif
#define ABI (ABI_MAGIC | ABI_LAYOUT)

_Static_assert(offsetof(struct library, retire) == offsetof(struct library_head, retire),
               "other instances know these words");

static int open_types(ErlNifEnv *env, struct library *library)
{
    const struct {
        const char *kind;
        ErlNifResourceDtor *destroy;
        ErlNifResourceDown *down;
        ErlNifResourceType **type;
    } rows[] = {
        {"ring", handle_destroy, NULL, &library->ring_type},
        {"route", route_destroy, NULL, &library->route_type},
        {"proxy", proxy_destroy, NULL, &library->proxy_type},
        {"copy", copy_destroy, NULL, &library->copy_type},
        {"reading", reading_destroy, NULL, &library->reading_type},
        {"watch", tame_impl_watch_destroy, process_down, &library->watch_type},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const ErlNifResourceTypeInit init = {.dtor = rows[i].destroy, .down = rows[i].down};
        char name[64];

        enif_snprintf(name, sizeof name, "tame_%s_%d", rows[i].kind, ABI_LAYOUT);
        *rows[i].type = enif_open_resource_type_x(env, name, &init,
                                                  ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER, NULL);
        if (*rows[i].type == NULL)
            return 0;
    }
    return 1;
}

/* For an instance of another layout. */
static void retire(struct library *library)
{
    enif_mutex_lock(library->lock);
    stop_readers(library);
    while (library->rings != NULL) {
        struct ring *ring = library->rings;

        library->rings = ring->next;
        shut_stopped(library, ring);
        ring_drop(ring);
    }
    enif_mutex_unlock(library->lock);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    struct library *library = enif_alloc(sizeof *library);

    (void)load_info;
    if (library == NULL)
        return 1;
    memset(library, 0, sizeof *library);
    library->abi = ABI;
    library->instances = 1;
    library->reader = reader;
    library->retire = retire;
    library->lock = enif_mutex_create((char *)"tame_ring_library");
    library->watches = tame_impl_watches_new();
    library->names_seed = tame_now_ns() ^ (uint64_t)(uintptr_t)library << 20;

    const struct {
        const char *name;
        ERL_NIF_TERM *atom;
    } atoms[] = {
        {"value", &library->am_value},
        {"raise", &library->am_raise},
        {"badarg", &library->am_badarg},
        {"error", &library->am_error},
        {"busy", &library->am_busy},
        {"host_down", &library->am_host_down},
        {"bad_reply", &library->am_bad_reply},
        {"wait", &library->am_wait},
        {"poll", &library->am_poll},
        {"encode", &library->am_encode},
        {"measure", &library->am_measure},
        {"too_large", &library->am_too_large},
        {"ok", &library->am_ok},
        {"closed", &library->am_closed},
        {"ready", &library->am_ready},
        {"decode", &library->am_decode},
        {"upgraded", &library->am_upgraded},
        {"owner_down", &library->am_owner_down},
        {"reply_too_large", &library->am_reply_too_large},
        {"gone", &library->am_gone},
        {"none", &library->am_none},
        {"by", &library->am_by},
    };

    for (size_t i = 0; i < sizeof atoms / sizeof atoms[0]; i++)
        *atoms[i].atom = enif_make_atom(env, atoms[i].name);
    if (library->lock == NULL || library->watches == NULL || !open_types(env, library)) {
        tame_impl_watches_release(library->watches);
        if (library->lock != NULL)
            enif_mutex_destroy(library->lock);
        enif_free(library);
        return 1;
    }
    *priv_data = library;
    return 0;
}

static int upgrade(ErlNifEnv *env, void **priv_data, void **old_priv_data, ERL_NIF_TERM load_info)
{
    struct library *library = *old_priv_data;

    if (library == NULL || (library->abi & ~UINT64_C(255)) != ABI_MAGIC)
        return load(env, priv_data,
                    load_info); /* older than this way of doing it: they live apart */
    if (library->abi != ABI) {
        library->retire(library);
        return load(env, priv_data, load_info);
    }
    enif_mutex_lock(library->lock);
    if (!open_types(env, library)) {
        enif_mutex_unlock(library->lock);
        return 1;
    }
    library->instances++;
    library->reader = reader;
    library->retire = retire;
    stop_readers(library);
    for (struct ring **place = &library->rings; *place != NULL;) {
        struct ring *ring = *place;

        if (start_reader(library, ring)) {
            place = &ring->next;
        } else {
            *place = ring->next;
            __atomic_store_n(&ring->stop, 1, __ATOMIC_SEQ_CST);
            shut_stopped(library, ring);
            ring_drop(ring);
        }
    }
    enif_mutex_unlock(library->lock);
    *priv_data = library;
    return 0;
}

/* The last instance goes when no resource of it lives any more, so every ring is closed and its
 * reader about to end. */
static void unload(ErlNifEnv *env, void *priv_data)
{
    struct library *library = priv_data;
    uint32_t left;

    (void)env;
    enif_mutex_lock(library->lock);
    left = --library->instances;
    enif_mutex_unlock(library->lock);
    if (left > 0)
        return;
    join_readers(library, 1);
    tame_impl_watches_release(library->watches);
    enif_mutex_destroy(library->lock);
    enif_free(library);
}

static ErlNifFunc functions[] = {
    {"open", 6, nif_open, 0},
    {"call", 3, nif_call, 0},
    {"call_by", 3, nif_call_by, 0},
    {"call_encoded", 3, nif_call_encoded, 0},
    {"poll", 2, nif_poll, 0},
    {"wait", 3, nif_wait, 0},
    {"take", 2, nif_take, 0},
    {"decode", 2, nif_decode, 0},
    {"made", 1, nif_made, 0},
    {"bad_reply", 1, nif_bad_reply, 0},
    {"cancel", 2, nif_cancel, 0},
    {"close", 2, nif_close, 0},
    {"route", 0, nif_route, 0},
    {"lead", 2, nif_lead, 0},
    {"rings", 1, nif_rings, 0},
    {"choose", 1, nif_choose, 0},
    {"home", 2, nif_home, 0},
    {"pulse", 1, nif_pulse, 0},
    {"leases", 2, nif_leases, 0},
    {"used", 2, nif_used, 0},
    {"hold", 2, nif_hold, 0},
    {"abandoned", 2, nif_abandoned, 0},
    {"info", 1, nif_info, 0},
    {"encode", 1, nif_encode, 0},
    {"scan", 1, nif_scan, 0},
    {"read", 1, nif_read, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"flat_size", 1, nif_flat_size, ERL_NIF_DIRTY_JOB_CPU_BOUND},
    {"is_alive", 1, nif_is_alive, 0},
    {"send", 2, nif_send, ERL_NIF_DIRTY_JOB_CPU_BOUND},
};

ERL_NIF_INIT(tame_ring_nif, functions, load, NULL, upgrade, unload)
