/* nif_life.c - rings are opened and closed, their readers started and joined. */
#include "nif_life.h"
#include "nif_functions.h"
#include "nif_reader.h"

void join_readers(struct library *library, int all)
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

void handle_destroy(ErlNifEnv *env, void *object)
{
    struct ring *ring = ((struct ring_handle *)object)->ring;

    (void)env;
    if (ring == NULL)
        return;

    struct library *library = ring->library;

    ring_shut(ring, 0);
    if (tame_impl_unwatch(&ring->owner_watched))
        ring_drop(ring);
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

int start_reader(struct library *library, struct ring *ring)
{
    __atomic_store_n(&ring->stop, 0, __ATOMIC_SEQ_CST);
    return enif_thread_create((char *)"tame_ring", &ring->reader, library->reader, ring, NULL) == 0;
}

/* If the owner, who calls this, ends from here on, the ring is closed. */
static void watch_owner(ErlNifEnv *env, struct ring *ring)
{
    struct library *library = ring->library;

    ring_keep(ring);
    if (enif_self(env, &ring->owner) == NULL ||
        !tame_impl_watch_enter(env, library->watches, library->watch_type, &ring->owner,
                               &ring->owner_watched, ring)) {
        ring_shut(ring, library->am_owner_down); /* killed while it was opening */
        ring_drop(ring);
    }
}

/* ({Handle, Watch}, OsPid, Fd, MaxWaiting, SpinNs, MaxBytes, MaxReplyBytes), on a dirty scheduler */
static ERL_NIF_TERM open_ring(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct library *library = library_of(env);
    struct ring_handle *handle;
    struct ring *ring;
    ErlNifSInt64 os_pid, fd;
    ErlNifUInt64 bytes_max, reply_bytes_max;
    unsigned line_max, spin_ns;
    const ERL_NIF_TERM *held;
    const char *wrong;
    void *object;
    int arity, started;

    (void)argc;
    if (!enif_get_tuple(env, argv[0], &arity, &held) || arity != 2 ||
        !enif_get_resource(env, held[0], library->ring_type, &object) ||
        !enif_get_int64(env, argv[1], &os_pid) || !enif_get_int64(env, argv[2], &fd) ||
        !enif_get_uint(env, argv[3], &line_max) || !enif_get_uint(env, argv[4], &spin_ns) ||
        !enif_get_uint64(env, argv[5], &bytes_max) ||
        !enif_get_uint64(env, argv[6], &reply_bytes_max))
        return enif_make_badarg(env);
    handle = object;
    join_readers(library, 0);
    wrong = ring_new(&ring, os_pid, fd, bytes_max);
    if (wrong != NULL)
        return make_error(env, library, enif_make_atom(env, wrong));
    ring->library = library;
    ring->line_max = line_max;
    ring->spin_ns = spin_ns;
    ring->reply_bytes_max = reply_bytes_max;
    ring->refs = 2; /* the resource's and the reader's */
    handle->ring = ring;
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
        return make_error(env, library, enif_make_atom(env, "system_limit"));
    }
    watch_owner(env, ring);
    return enif_make_tuple2(env, library->am_ok, held[0]);
}

ERL_NIF_TERM nif_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (OsPid, Fd, MaxWaiting, SpinNs, MaxBytes, MaxReplyBytes) -> {ok, Ring} | {error, Reason}. The
     * handle is made here, and a watch that holds their type: on a dirty scheduler a type may be
     * gone, when the caller was killed and this code purged. */
    struct library *library = library_of(env);
    struct ring_handle *handle =
        enif_alloc_resource(library->ring_type, sizeof *handle); /* the term's, below */
    struct tame_impl_watch *watch;
    ERL_NIF_TERM next[7], handle_term;

    if (handle == NULL)
        return raise_enomem(env);
    handle->ring = NULL;
    handle_term = enif_make_resource(env, handle);
    enif_release_resource(handle);
    watch = enif_alloc_resource(library->watch_type, sizeof *watch); /* the term's, below */
    if (watch == NULL)
        return raise_enomem(env);
    memset(watch, 0, sizeof *watch);
    next[0] = enif_make_tuple2(env, handle_term, enif_make_resource(env, watch));
    enif_release_resource(watch);
    memcpy(next + 1, argv, sizeof *argv * (size_t)argc);
    return enif_schedule_nif(env, "open", ERL_NIF_DIRTY_JOB_IO_BOUND, open_ring, 7, next);
}

ERL_NIF_TERM nif_close(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
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

void stop_readers(struct library *library)
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

void shut_stopped(struct library *library, struct ring *ring)
{
    ring_shut(ring, library->am_upgraded);
    reader_end(ring);
}
