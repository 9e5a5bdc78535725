/* tame_ring_nif.c - calls over a ring, from the VM. What the parts do: ring.h (the memory),
 * vm_ring.h (slots, line, proxies), vm_reader.h (replies, the reader thread), nif_wait.h (how a
 * caller waits), nif_leases.h.
 *
 * A call encodes its arguments straight into a slot, spins while that has paid lately, and returns
 * the value itself or {wait, Ref, Id}: then {Ref, Reply} follows by message, whatever happens. No
 * work of a NIF here takes longer than some 100 us: what is larger is cut into hops or left to the
 * reader. */
#define _GNU_SOURCE /* memfd's seals, O_PATH */
#include "etf_write.h"
#include "vm_reader.h"

/* Encoded or copied in one go at most; longer arguments take hops. 10 to 80 us. */
#define INLINE_REQUEST_BYTES (256 * 1024)

/* A reply decoded on the scheduler. The worst one, a list of empty lists, takes 9 ns a byte. */
#define INLINE_REPLY_BYTES (16 * 1024)

/* A reply that is one binary only has to be copied. */
#define INLINE_BINARY_BYTES (256 * 1024)

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

#include "nif_leases.h"

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
    return await(env, ring, ring_term, index, id, function, size);
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
    ERL_NIF_TERM ref;

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
    ref = waiter_open(env, ring, &entry->waiter);

    enif_mutex_lock(ring->lock);
    if (is_closed(ring)) {
        refused = "closed";
    } else if (ring->line_len >= ring->line_max) {
        refused = "busy";
    } else {
        *ring->line_end = entry; /* the line owns the entry now */
        ring->line_end = &entry->next;
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
    return enif_make_tuple3(env, ring->library->am_wait, ref, enif_make_uint64(env, id));
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
    /* (Ring, Function, Args) -> Reply | {wait, Ref, Id} | encode */
    const struct extent none = {0, 0};
    struct ring *ring;
    uint32_t function;
    uint64_t id;
    int index;

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[1], &function))
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

    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[1], &function) ||
        !enif_inspect_binary(env, argv[2], &bytes) ||
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
    /* (Ring, Function, Bytes) -> Reply | {wait, Ref, Id}; Bytes is term_to_binary(Args) */
    struct ring *ring;
    uint32_t function;
    ErlNifBinary bytes;
    struct copy *copy;

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[1], &function) ||
        !enif_inspect_binary(env, argv[2], &bytes))
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

static ERL_NIF_TERM cancel(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Id) -> ok: no message will come | wait: it is on its way */
    struct ring *ring;
    struct line_entry *entry;
    ErlNifUInt64 id;

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_get_uint64(env, argv[1], &id))
        return enif_make_badarg(env);
    entry = leave_line(ring, id, NULL);
    if (entry != NULL) {
        free_line_entry(env, ring, entry);
        return ring->library->am_ok;
    }
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];

        if (__atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) == word_of(id, WAITING) &&
            turn(slot, id, WAITING, READING)) {
            waiter_close(env, ring, &slot->waiter);
            slot->abandoned_ns = ring_now_ns();
            ring_vm_cancel(&ring->vm, i); /* while the slot cannot pass to another call */
            __atomic_store_n(&slot->word, word_of(id, ABANDONED), __ATOMIC_SEQ_CST);
            (void)deliver(env, ring,
                          i); /* the reply may have come meanwhile, and its ring been heard */
            return ring->library->am_ok;
        }
    }
    return ring->library->am_wait;
}

/* A caller that waits has died. */
static void caller_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    struct ring *ring = ((struct ring_handle *)object)->ring;
    struct line_entry *entry;

    (void)monitor;
    while ((entry = leave_line(ring, 0, pid)) != NULL) {
        entry->waiter.monitored = 0;
        free_line_entry(env, ring, entry);
    }
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];
        const uint64_t word = __atomic_load_n(&slot->word, __ATOMIC_SEQ_CST);

        /* If the slot passes to another call in between, the turn fails. */
        if ((word & 7) == WAITING && enif_compare_pids(&slot->waiter.pid, pid) == 0 &&
            turn(slot, word >> 3, WAITING, READING)) {
            slot->waiter.monitored = 0;
            waiter_close(env, ring, &slot->waiter);
            slot->abandoned_ns = ring_now_ns();
            ring_vm_cancel(&ring->vm, i);
            /* It may have died while it looked: now the host is to ring. */
            (void)ring_vm_wait(&ring->vm, i, use_of(word >> 3));
            __atomic_store_n(&slot->word, word_of(word >> 3, ABANDONED), __ATOMIC_SEQ_CST);
            (void)deliver(env, ring, i);
        }
    }
}

static ERL_NIF_TERM abandoned(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Ms) -> how many calls go on though nobody has wanted them for so long */
    struct ring *ring;
    unsigned ms, count = 0;
    const uint64_t now_ns = ring_now_ns();

    (void)argc;
    if (!get_ring(env, argv[0], &ring) || !enif_get_uint(env, argv[1], &ms))
        return enif_make_badarg(env);
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++) {
        struct slot *slot = &ring->slots[i];

        /* If the slot passes to another call in between, that one is younger. */
        if ((__atomic_load_n(&slot->word, __ATOMIC_SEQ_CST) & 7) == ABANDONED &&
            ring_vm_taken(&ring->vm, i) &&
            now_ns - __atomic_load_n(&slot->abandoned_ns, __ATOMIC_RELAXED) >=
                ms * UINT64_C(1000000))
            count++;
    }
    return enif_make_uint(env, count);
}

static void copy_destroy(ErlNifEnv *env, void *object)
{
    struct copy *copy = object;

    (void)env;
    give_request_region(copy->ring, copy->region);
    ring_drop(copy->ring);
}

/* ---- life
 * ---------------------------------------------------------------------------------------------------------
 */

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
    ring->line_end = &ring->line;
    ring->lock = enif_mutex_create((char *)"tame_ring");
    wrong = ring->lock == NULL ? "enomem" : ring_vm_open(&ring->vm, os_pid, fd);
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

static ERL_NIF_TERM open_ring(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (OsPid, Fd, MaxWaiting, SpinNs, MaxBytes) -> {ok, Ring} | {error, Reason} */
    struct library *library = library_of(env);
    struct ring_handle *handle;
    struct ring *ring;
    ErlNifSInt64 os_pid, fd;
    ErlNifUInt64 bytes_max;
    unsigned line_max, spin_ns;
    const char *wrong;
    ERL_NIF_TERM result;

    (void)argc;
    if (!enif_get_int64(env, argv[0], &os_pid) || !enif_get_int64(env, argv[1], &fd) ||
        !enif_get_uint(env, argv[2], &line_max) || !enif_get_uint(env, argv[3], &spin_ns) ||
        !enif_get_uint64(env, argv[4], &bytes_max))
        return enif_make_badarg(env);
    join_readers(library, 0);
    wrong = ring_new(&ring, os_pid, fd, bytes_max);
    if (wrong != NULL)
        return make_error(env, library, enif_make_atom(env, wrong));
    ring->library = library;
    ring->line_max = line_max;
    ring->spin_ns = spin_ns;

    handle = enif_alloc_resource(library->ring_type, sizeof *handle);
    if (handle == NULL) {
        ring_free(ring);
        return raise_enomem(env);
    }
    handle->ring = ring;
    ring->resource = handle;
    ring->refs = 2; /* the resource's and the reader's */
    if (enif_thread_create((char *)"tame_ring", &ring->reader, reader, ring, NULL) != 0) {
        handle->ring = NULL;
        ring_free(ring);
        enif_release_resource(handle);
        return make_error(env, library, enif_make_atom(env, "system_limit"));
    }
    enif_mutex_lock(library->lock);
    ring->next = library->rings;
    library->rings = ring;
    enif_mutex_unlock(library->lock);
    result = enif_make_tuple2(env, library->am_ok, enif_make_resource(env, handle));
    enif_release_resource(handle); /* the term keeps it */
    return result;
}

static ERL_NIF_TERM close_ring(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring, Reason) -> ok */
    struct ring *ring;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return enif_make_badarg(env);
    ring_shut(ring, argv[1]);
    return ring->library->am_ok;
}

static ERL_NIF_TERM info(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Ring) -> map */
    struct ring *ring;
    ERL_NIF_TERM map = enif_make_new_map(env);
    uint64_t in_use = 0;

    (void)argc;
    if (!get_ring(env, argv[0], &ring))
        return enif_make_badarg(env);
    for (uint32_t i = 0; i < ring->vm.geometry.slots; i++)
        in_use += (__atomic_load_n(&ring->slots[i].word, __ATOMIC_RELAXED) & 7) != FREE;

    enif_mutex_lock(ring->lock);
    const uint64_t region_bytes = ring->vm.requests.used_pages * RING_PAGE;
    const uint64_t region_bytes_max = ring->vm.requests.used_max * RING_PAGE;
    const uint64_t unused = ring->leases_unused;
    enif_mutex_unlock(ring->lock);

    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {
        {"slots", ring->vm.geometry.slots},
        {"slot_bytes", ring->vm.geometry.slot_bytes},
        {"request_bytes", ring->vm.geometry.request_bytes},
        {"reply_bytes", ring->vm.geometry.reply_bytes},
        {"slots_in_use", in_use},
        {"in_line", __atomic_load_n(&ring->line_len, __ATOMIC_RELAXED)},
        {"region_bytes", region_bytes},
        {"region_bytes_max", region_bytes_max},
        {"leases_unused", unused},
        {"calls", __atomic_load_n(&ring->calls, __ATOMIC_RELAXED)},
        {"spins", __atomic_load_n(&ring->spins, __ATOMIC_RELAXED)},
        {"spins_paid", __atomic_load_n(&ring->spins_paid, __ATOMIC_RELAXED)},
        {"looks_paid", __atomic_load_n(&ring->looks_paid, __ATOMIC_RELAXED)},
        {"waits", __atomic_load_n(&ring->waits, __ATOMIC_RELAXED)},
        {"lined", __atomic_load_n(&ring->lined, __ATOMIC_RELAXED)},
        {"busy", __atomic_load_n(&ring->busy, __ATOMIC_RELAXED)},
        {"bad_replies", __atomic_load_n(&ring->bad_replies, __ATOMIC_RELAXED)},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        (void)enif_make_map_put(env, map, enif_make_atom(env, rows[i].name),
                                enif_make_uint64(env, rows[i].value), &map);
    return map;
}

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

static ErlNifResourceType *open_type(ErlNifEnv *env, struct library *library, const char *kind,
                                     ErlNifResourceDtor *destroy, ErlNifResourceDown *down)
{
    ErlNifResourceTypeInit init;
    char name[64];

    memset(&init, 0, sizeof init);
    init.dtor = destroy;
    init.down = down;
    /* A name of its own: another instance of this library has another type. */
    enif_snprintf(name, sizeof name, "tame_%s_%p", kind, (void *)library);
    return enif_open_resource_type_x(env, name, &init, ERL_NIF_RT_CREATE, NULL);
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM load_info)
{
    struct library *library = enif_alloc(sizeof *library);

    (void)load_info;
    if (library == NULL)
        return 1;
    memset(library, 0, sizeof *library);
    library->lock = enif_mutex_create((char *)"tame_ring_library");
    library->ring_type = open_type(env, library, "ring", handle_destroy, caller_down);
    library->proxy_type = open_type(env, library, "proxy", proxy_destroy, NULL);
    library->copy_type = open_type(env, library, "copy", copy_destroy, NULL);
    library->am_value = enif_make_atom(env, "value");
    library->am_raise = enif_make_atom(env, "raise");
    library->am_badarg = enif_make_atom(env, "badarg");
    library->am_error = enif_make_atom(env, "error");
    library->am_busy = enif_make_atom(env, "busy");
    library->am_host_down = enif_make_atom(env, "host_down");
    library->am_bad_reply = enif_make_atom(env, "bad_reply");
    library->am_wait = enif_make_atom(env, "wait");
    library->am_encode = enif_make_atom(env, "encode");
    library->am_too_large = enif_make_atom(env, "too_large");
    library->am_ok = enif_make_atom(env, "ok");
    library->am_closed = enif_make_atom(env, "closed");
    if (library->lock == NULL || library->ring_type == NULL || library->proxy_type == NULL ||
        library->copy_type == NULL) {
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
    (void)old_priv_data; /* rings of the old instance stay with it */
    return load(env, priv_data, load_info);
}

/* No resource of this instance lives any more, so every ring is closed and its reader about to end.
 */
static void unload(ErlNifEnv *env, void *priv_data)
{
    struct library *library = priv_data;

    (void)env;
    join_readers(library, 1);
    enif_mutex_destroy(library->lock);
    enif_free(library);
}

static ErlNifFunc functions[] = {
    {"open", 5, open_ring, ERL_NIF_DIRTY_JOB_IO_BOUND},
    {"call", 3, call, 0},
    {"call_encoded", 3, call_encoded, 0},
    {"cancel", 2, cancel, 0},
    {"close", 2, close_ring, 0},
    {"leases", 2, leases, 0},
    {"used", 2, used, 0},
    {"hold", 2, hold, 0},
    {"abandoned", 2, abandoned, 0},
    {"info", 1, info, 0},
    {"encode", 1, encode, 0},
};

ERL_NIF_INIT(tame_ring_nif, functions, load, NULL, upgrade, unload)
