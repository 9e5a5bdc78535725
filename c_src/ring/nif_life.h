/* nif_life.h - rings are opened and closed; the library is loaded, replaced, unloaded.
 *
 * Private to tame_ring_nif.c, which includes it behind the rest.
 *
 * Replacement (hot upgrade). The new instance takes over the resource types, which have the same
 * names, and the library's struct, so open rings go on. A reader thread runs code of the instance
 * that started it, which may be unloaded later: each is stopped, joined, and started again in the
 * new code; that takes as long as a reader may be at one reply's leases, or a second where a
 * hostile host spoils the bell. Calls under way are in the ring, and their callers in tame_ring.
 *
 * That holds for instances of one layout of these structs, which ABI numbers: raise it with every
 * change of vm_ring.h. Of another layout the new instance touches nothing: it has the old one close
 * its rings with the reason `upgraded`, and the types, whose names hold the number too, stay with
 * the old one. */
#ifndef TAME_RING_NIF_LIFE_H
#define TAME_RING_NIF_LIFE_H

/* "tamering" and the layout's number. */
#define ABI_MAGIC UINT64_C(0x74616d6572696e00)
#ifndef ABI_LAYOUT /* a test builds another */
#define ABI_LAYOUT 2
#endif
#define ABI (ABI_MAGIC | ABI_LAYOUT)

_Static_assert(offsetof(struct library, retire) == offsetof(struct library_head, retire),
               "other instances know these words");

/* Joins readers that have ended, or all. The lock is not held. */
static void join_readers(struct library *library, int all)
{
    struct ring *ended = NULL;

    enif_mutex_lock(library->lock);
    for (struct ring **place = &library->rings; *place != NULL;) {
        struct ring *ring = *place;

        if (all || __atomic_load_n(&ring->reader_done, __ATOMIC_ACQUIRE)) {
            *place = ring->next;
            ring->next = ended;
            ended = ring;
        } else {
            place = &ring->next;
        }
    }
    enif_mutex_unlock(library->lock);
    while (ended != NULL) {
        struct ring *next = ended->next;

        enif_thread_join(ended->reader, NULL);
        ring_drop(ended);
        ended = next;
    }
}

static void handle_destroy(ErlNifEnv *env, void *object)
{
    struct ring *ring = ((struct ring_handle *)object)->ring;

    (void)env;
    if (ring == NULL)
        return;

    struct library *library = ring->library;

    ring_shut(ring, 0);
    ring_drop(ring);
    join_readers(library, 0);
}

static const char *ring_new(struct ring **made, ErlNifSInt64 os_pid, ErlNifSInt64 fd,
                            ErlNifUInt64 bytes_max)
{
    struct ring *ring = aligned_alloc(64, sizeof *ring);
    const char *wrong;

    if (ring == NULL)
        return "enomem";
    memset(ring, 0, sizeof *ring);
    ring->lock = enif_mutex_create((char *)"tame_ring");
    ring->gone_lock = enif_mutex_create((char *)"tame_ring_gone");
    wrong = ring->lock == NULL || ring->gone_lock == NULL ? "enomem"
                                                          : ring_vm_open(&ring->vm, os_pid, fd);
    if (wrong == NULL && ring->vm.bytes > bytes_max)
        wrong = "too_large";
    if (wrong == NULL) {
        const uint32_t slots = ring->vm.geometry.slots;

        ring->slots = aligned_alloc(64, slots * sizeof *ring->slots);
        if (ring->slots == NULL)
            wrong = "enomem";
        else
            memset(ring->slots, 0, slots * sizeof *ring->slots);
        for (uint32_t i = 0; i < slots; i++)
            ring->free[i / 64] |= UINT64_C(1) << i % 64;
    }
    if (wrong != NULL) {
        ring_free(ring);
        return wrong;
    }
    *made = ring;
    return NULL;
}

/* The library's lock is held. Returns 0 where the system gives no thread. */
static int start_reader(struct library *library, struct ring *ring)
{
    __atomic_store_n(&ring->stop, 0, __ATOMIC_SEQ_CST);
    return enif_thread_create((char *)"tame_ring", &ring->reader, library->reader, ring, NULL) == 0;
}

static ERL_NIF_TERM open_ring(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (OsPid, Fd, MaxWaiting, SpinNs, MaxBytes, MaxReplyBytes) -> {ok, Ring} | {error, Reason} */
    struct library *library = library_of(env);
    struct ring_handle *handle;
    struct ring *ring;
    ErlNifSInt64 os_pid, fd;
    ErlNifUInt64 bytes_max, reply_bytes_max;
    unsigned line_max, spin_ns;
    const char *wrong;
    ErlNifPid owner;
    ERL_NIF_TERM result;
    int started;

    (void)argc;
    if (!enif_get_int64(env, argv[0], &os_pid) || !enif_get_int64(env, argv[1], &fd) ||
        !enif_get_uint(env, argv[2], &line_max) || !enif_get_uint(env, argv[3], &spin_ns) ||
        !enif_get_uint64(env, argv[4], &bytes_max) ||
        !enif_get_uint64(env, argv[5], &reply_bytes_max))
        return enif_make_badarg(env);
    join_readers(library, 0);
    wrong = ring_new(&ring, os_pid, fd, bytes_max);
    if (wrong != NULL)
        return make_error(env, library, enif_make_atom(env, wrong));
    ring->library = library;
    ring->line_max = line_max;
    ring->spin_ns = spin_ns;
    ring->reply_bytes_max = reply_bytes_max;

    handle = enif_alloc_resource(library->ring_type, sizeof *handle);
    if (handle == NULL) {
        ring_free(ring);
        return raise_enomem(env);
    }
    handle->ring = ring;
    ring->resource = handle;
    ring->refs = 2; /* the resource's and the reader's */
    enif_mutex_lock(library->lock);
    started = start_reader(library, ring);
    if (started) {
        ring->next = library->rings;
        library->rings = ring;
    }
    enif_mutex_unlock(library->lock);
    if (!started) {
        handle->ring = NULL;
        ring_free(ring);
        enif_release_resource(handle);
        return make_error(env, library, enif_make_atom(env, "system_limit"));
    }
    if (enif_self(env, &owner) == NULL ||
        enif_monitor_process(env, handle, &owner, &ring->owner) != 0)
        ring_shut(ring, library->am_owner_down); /* killed while it was opening */
    result = enif_make_tuple2(env, library->am_ok, enif_make_resource(env, handle));
    enif_release_resource(handle); /* the term keeps it */
    return result;
}

static ERL_NIF_TERM close_ring(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Reason) -> ok */
    struct ring *ring;

    (void)argc;
    if (get_ring(env, argv[0], &ring))
        ring_shut(ring, argv[1]);
    else if (!is_lost(env, argv[0]))
        return enif_make_badarg(env);
    return library_of(env)->am_ok;
}

/* ---- the library
 * -------------------------------------------------------------------------------------------------
 */

static int open_types(ErlNifEnv *env, struct library *library)
{
    const struct {
        const char *kind;
        ErlNifResourceDtor *destroy;
        ErlNifResourceDown *down;
        ErlNifResourceType **type;
    } rows[] = {
        {"ring", handle_destroy, process_down, &library->ring_type},
        {"proxy", proxy_destroy, NULL, &library->proxy_type},
        {"copy", copy_destroy, NULL, &library->copy_type},
        {"reading", reading_destroy, NULL, &library->reading_type},
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

/* Ends the readers of all rings; what a closed ring's has left is done. The library's lock is held.
 */
static void stop_readers(struct library *library)
{
    for (struct ring *ring = library->rings; ring != NULL; ring = ring->next) {
        __atomic_store_n(&ring->stop, 1, __ATOMIC_SEQ_CST);
        wake_reader(ring);
    }
    for (struct ring **place = &library->rings; *place != NULL;) {
        struct ring *ring = *place;

        enif_thread_join(ring->reader, NULL);
        if (__atomic_load_n(&ring->reader_done, __ATOMIC_ACQUIRE)) {
            *place = ring->next;
            ring_drop(ring);
        } else {
            place = &ring->next;
        }
    }
}

/* Closes a ring that has no reader. The library's lock is held. */
static void shut_stopped(struct library *library, struct ring *ring)
{
    ring_shut(ring, library->am_upgraded);
    reader_end(ring);
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
        {"encode", &library->am_encode},
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
    };

    for (size_t i = 0; i < sizeof atoms / sizeof atoms[0]; i++)
        *atoms[i].atom = enif_make_atom(env, atoms[i].name);
    if (library->lock == NULL || !open_types(env, library)) {
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
    enif_mutex_destroy(library->lock);
    enif_free(library);
}

#endif
