/* tame/watch.h - the end of a process, told to all who wait for it by one monitor.
 *
 * Part of tame.h; usable alone. A resource that has monitored a process must not be destroyed while
 * the process lives. The monitor's end is a signal that the process handles later, and a request for
 * process_info(Pid, monitored_by) that it handles before makes a term of the resource: of one that is being
 * destroyed, or whose memory is free. That ends the VM (OTP 25, 27 and 29), whether or not
 * enif_demonitor_process was called first.
 *
 * So there is one resource for each process, the watch, which lives until the process has ended. What is
 * told of that end enters itself there, and leaves. What must not be kept for that enters on a leash. */
#ifndef TAME_WATCH_H
#define TAME_WATCH_H

#include <erl_nif.h>
#include <stdint.h>
#include <string.h>

/* The table is cut into parts, so that schedulers rarely meet. A chain is as long as the processes
 * that are watched are many, divided by 4096. */
#define TAME_IMPL_WATCH_PARTS 16
#define TAME_IMPL_WATCH_CHAINS 256

struct tame_impl_watch;
struct tame_impl_watches;
struct tame_impl_watch_part;

/* An entry: `object` is told. Who enters sees to it that the entry is there until it has left, and the
 * object until it was told. */
struct tame_impl_watched {
    void *object;
    struct tame_impl_watched *next, *before;
    struct tame_impl_watch_part *part; /* where it entered last; NULL: it never did */
    struct tame_impl_watch *watch;     /* guarded by the part's lock; NULL: it is in none */
};

/* The resource. The table has a hold on it, until the process has ended. */
struct tame_impl_watch {
    struct tame_impl_watches *watches;
    struct tame_impl_watch_part *part;
    ErlNifPid pid;
    /* Guarded by the part's lock. */
    struct tame_impl_watch **chain, *next;
    struct tame_impl_watched *first;
};

struct tame_impl_watch_part {
    ErlNifMutex *lock;
    struct tame_impl_watch *chains[TAME_IMPL_WATCH_CHAINS];
};

/* The table. Counted: its users hold it, and so does each watch. */
struct tame_impl_watches {
    int references;
    struct tame_impl_watch_part parts[TAME_IMPL_WATCH_PARTS];
};

static inline void tame_impl_watches_release(struct tame_impl_watches *watches)
{
    if (watches == NULL || __atomic_sub_fetch(&watches->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    for (int i = 0; i < TAME_IMPL_WATCH_PARTS; i++)
        if (watches->parts[i].lock != NULL)
            enif_mutex_destroy(watches->parts[i].lock);
    enif_free(watches);
}

static inline struct tame_impl_watches *tame_impl_watches_keep(struct tame_impl_watches *watches)
{
    __atomic_fetch_add(&watches->references, 1, __ATOMIC_RELAXED);
    return watches;
}

/* Owned by who calls this. NULL without memory. */
static inline struct tame_impl_watches *tame_impl_watches_new(void)
{
    struct tame_impl_watches *watches = (struct tame_impl_watches *)enif_alloc(sizeof *watches);

    if (watches == NULL)
        return NULL;
    memset(watches, 0, sizeof *watches);
    watches->references = 1;
    for (int i = 0; i < TAME_IMPL_WATCH_PARTS; i++) {
        watches->parts[i].lock = enif_mutex_create((char *)"tame_watch");
        if (watches->parts[i].lock == NULL) {
            tame_impl_watches_release(watches);
            return NULL;
        }
    }
    return watches;
}

/* A watch of a process, in its chain; NULL when the process has ended, or without memory. Called with
 * the part's lock. */
static inline struct tame_impl_watch *
tame_impl_watch_new(ErlNifEnv *env, struct tame_impl_watches *watches, ErlNifResourceType *type,
                    const ErlNifPid *pid, struct tame_impl_watch_part *part,
                    struct tame_impl_watch **chain)
{
    struct tame_impl_watch *watch =
        (struct tame_impl_watch *)enif_alloc_resource(type, sizeof *watch); /* the table's */

    if (watch == NULL)
        return NULL;
    memset(watch, 0, sizeof *watch);
    watch->watches = tame_impl_watches_keep(watches);
    watch->part = part;
    watch->pid = *pid;
    if (enif_monitor_process(env, watch, pid, NULL) != 0) {
        enif_release_resource(watch);
        return NULL;
    }
    watch->chain = chain;
    watch->next = *chain;
    *chain = watch;
    return watch;
}

/* The macro of OTP's header has a cast that a C++ compiler may warn of, as if it were ours. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-qualifiers"
static inline uint64_t tame_impl_watch_hash(ErlNifEnv *env, const ErlNifPid *pid)
{
    return (uint64_t)enif_hash(ERL_NIF_INTERNAL_HASH, enif_make_pid(env, pid), 0) *
           UINT64_C(0x9e3779b97f4a7c15);
}
#pragma GCC diagnostic pop

/* Enters: it is told when the process ends. 0 when that has ended already, or without memory. On any
 * thread; env as for enif_monitor_process. The type is one of this header's two functions below. */
static inline int tame_impl_watch_enter(ErlNifEnv *env, struct tame_impl_watches *watches,
                                        ErlNifResourceType *type, const ErlNifPid *pid,
                                        struct tame_impl_watched *watched, void *object)
{
    const uint64_t hash = tame_impl_watch_hash(env, pid);
    struct tame_impl_watch_part *part = &watches->parts[(hash >> 32) % TAME_IMPL_WATCH_PARTS];
    struct tame_impl_watch **chain = &part->chains[(hash >> 40) % TAME_IMPL_WATCH_CHAINS];
    struct tame_impl_watch *watch;

    enif_mutex_lock(part->lock);
    for (watch = *chain; watch != NULL && enif_compare_pids(&watch->pid, pid) != 0;)
        watch = watch->next;
    if (watch == NULL)
        watch = tame_impl_watch_new(env, watches, type, pid, part, chain);
    if (watch != NULL) {
        watched->object = object;
        watched->part = part;
        watched->watch = watch;
        watched->before = NULL;
        watched->next = watch->first;
        if (watch->first != NULL)
            watch->first->before = watched;
        watch->first = watched;
    }
    enif_mutex_unlock(part->lock);
    return watch != NULL;
}

/* Called with the part's lock, of what is in a watch. */
static inline void tame_impl_watch_leave(struct tame_impl_watched *watched)
{
    if (watched->before != NULL)
        watched->before->next = watched->next;
    else
        watched->watch->first = watched->next;
    if (watched->next != NULL)
        watched->next->before = watched->before;
    watched->watch = NULL;
}

/* Leaves. 0 when it was in none: it never entered, has left, or it was told, or is being told on another
 * thread. */
static inline int tame_impl_unwatch(struct tame_impl_watched *watched)
{
    int was_in;

    if (watched->part == NULL)
        return 0;
    enif_mutex_lock(watched->part->lock);
    was_in = watched->watch != NULL;
    if (was_in)
        tame_impl_watch_leave(watched);
    enif_mutex_unlock(watched->part->lock);
    return was_in;
}

/* The entry is another from now on: that it is copied to. Nobody else enters or leaves either. */
static inline void tame_impl_watch_pass(struct tame_impl_watched *from,
                                        struct tame_impl_watched *to)
{
    if (from->part == NULL) {
        *to = *from;
        return;
    }
    /* Those beside it in the watch write to it, whenever they enter or leave. */
    enif_mutex_lock(from->part->lock);
    *to = *from;
    if (to->watch != NULL) {
        if (to->before != NULL)
            to->before->next = to;
        else
            to->watch->first = to;
        if (to->next != NULL)
            to->next->before = to;
    }
    from->watch = NULL;
    enif_mutex_unlock(from->part->lock);
}

/* The process has ended: each that is in its watch has left, and its object is told. For the type's
 * `down`. */
static inline void tame_impl_watch_down(ErlNifEnv *env, struct tame_impl_watch *watch,
                                        void (*told)(ErlNifEnv *, void *object, const ErlNifPid *))
{
    struct tame_impl_watch_part *part = watch->part;
    struct tame_impl_watch **place;
    struct tame_impl_watched *watched;

    /* The process may end as soon as it is monitored, when the watch is in no chain yet. */
    enif_mutex_lock(part->lock);
    place = watch->chain;
    while (*place != watch)
        place = &(*place)->next;
    *place = watch->next;
    while ((watched = watch->first) != NULL) {
        void *const object = watched->object;

        tame_impl_watch_leave(watched);
        enif_mutex_unlock(part->lock);
        told(env, object, &watch->pid);
        enif_mutex_lock(part->lock);
    }
    enif_mutex_unlock(part->lock);
    enif_release_resource(watch); /* the table's hold */
}

/* ---- on a leash ----
 *
 * Some resources must end with their last term, so a watch must not hold them. Such a resource has a
 * leash, which is the object of its entries and leads to it. The destructor takes the leash off first. */

struct tame_impl_leash {
    int references; /* the resource's, and each entry's */
    ErlNifMutex *lock;
    void *resource; /* guarded by lock; NULL: it is off */
};

/* The resource's. NULL without memory. */
static inline struct tame_impl_leash *tame_impl_leash_new(void *resource)
{
    struct tame_impl_leash *leash = (struct tame_impl_leash *)enif_alloc(sizeof *leash);

    if (leash == NULL)
        return NULL;
    leash->references = 1;
    leash->resource = resource;
    leash->lock = enif_mutex_create((char *)"tame_leash");
    if (leash->lock == NULL) {
        enif_free(leash);
        return NULL;
    }
    return leash;
}

static inline void tame_impl_leash_release(struct tame_impl_leash *leash)
{
    if (__atomic_sub_fetch(&leash->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    enif_mutex_destroy(leash->lock);
    enif_free(leash);
}

/* Waits for who is telling the resource on another thread. */
static inline void tame_impl_leash_off(struct tame_impl_leash *leash)
{
    enif_mutex_lock(leash->lock);
    leash->resource = NULL;
    enif_mutex_unlock(leash->lock);
    tame_impl_leash_release(leash);
}

/* As tame_impl_watch_enter. */
static inline int tame_impl_leash_watch(ErlNifEnv *env, struct tame_impl_watches *watches,
                                        ErlNifResourceType *type, const ErlNifPid *pid,
                                        struct tame_impl_watched *watched,
                                        struct tame_impl_leash *leash)
{
    __atomic_fetch_add(&leash->references, 1, __ATOMIC_RELAXED);
    if (tame_impl_watch_enter(env, watches, type, pid, watched, leash))
        return 1;
    tame_impl_leash_release(leash);
    return 0;
}

/* As tame_impl_unwatch, of an entry that may never have been one: its part is NULL then, and from now
 * on. */
static inline void tame_impl_leash_unwatch(struct tame_impl_watched *watched)
{
    if (tame_impl_unwatch(watched))
        tame_impl_leash_release((struct tame_impl_leash *)watched->object);
    watched->part = NULL;
}

/* Of a leash that was told: calls `told` with the resource, if it is there. It stays there until `told`
 * has returned, because a resource is destroyed on a scheduler between two processes, and not where
 * its last reference goes. */
static inline void
tame_impl_leash_told(ErlNifEnv *env, struct tame_impl_leash *leash, const ErlNifPid *pid,
                     void (*told)(ErlNifEnv *, void *resource, const ErlNifPid *))
{
    enif_mutex_lock(leash->lock);
    if (leash->resource != NULL)
        told(env, leash->resource, pid);
    enif_mutex_unlock(leash->lock);
    tame_impl_leash_release(leash); /* the entry's */
}

/* The type's `dtor`. */
static inline void tame_impl_watch_destroy(ErlNifEnv *env, void *object)
{
    (void)env;
    tame_impl_watches_release(((struct tame_impl_watch *)object)->watches);
}

#endif
