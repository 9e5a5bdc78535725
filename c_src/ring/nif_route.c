/* nif_route.c - which host's ring a call goes to: routes, the least busy ring, a proxy's. */
#include "nif_route.h"

#include "nif_functions.h"
#include "nif_slots.h"

/* As many as a library may have hosts (tame_isolate_options). */
#define ROUTE_RINGS 64

struct route {
    ErlNifRWLock *lock; /* NULL: there was no memory for it */
    /* Guarded by lock. */
    uint32_t len;
    struct ring_handle *rings[ROUTE_RINGS]; /* the route keeps them */
};

static int get_route(ErlNifEnv *env, ERL_NIF_TERM term, struct route **route)
{
    void *object;

    if (!enif_get_resource(env, term, library_of(env)->route_type, &object))
        return 0;
    *route = object;
    return 1;
}

/* The place of the ring with the fewest calls; of several, the first from this place on. A closed
 * one, and NULL, only where all are. */
static uint32_t least_busy(struct ring *const rings[], uint32_t len, uint32_t from)
{
    uint32_t chosen = from % len;
    uint64_t least = UINT64_MAX;

    for (uint32_t i = 0; i < len && least > 0; i++) {
        const uint32_t index = (from + i) % len;

        if (rings[index] == NULL || is_closed(rings[index]))
            continue;
        const uint64_t calls = calls_under_way(rings[index]);

        if (calls < least) {
            least = calls;
            chosen = index;
        }
    }
    return chosen;
}

/* Schedulers begin at different rings. */
static uint32_t own_place(void)
{
    static uint32_t threads;
    static __thread uint32_t place; /* from 1 */

    if (place == 0)
        place = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
    return place - 1;
}

struct ring_handle *route_take(ErlNifEnv *env, ERL_NIF_TERM route_term)
{
    struct ring *rings[ROUTE_RINGS];
    struct ring_handle *taken = NULL;
    struct route *route;

    if (!get_route(env, route_term, &route))
        return NULL;
    enif_rwlock_rlock(route->lock);
    if (route->len == 1) {
        taken = route->rings[0];
    } else if (route->len > 1) {
        for (uint32_t i = 0; i < route->len; i++)
            rings[i] = route->rings[i]->ring;
        taken = route->rings[least_busy(rings, route->len, own_place())];
    }
    if (taken != NULL)
        enif_keep_resource(taken);
    enif_rwlock_runlock(route->lock);
    return taken;
}

static void release_all(struct ring_handle *const rings[], uint32_t len)
{
    for (uint32_t i = 0; i < len; i++)
        enif_release_resource(rings[i]);
}

void route_destroy(ErlNifEnv *env, void *object)
{
    struct route *route = object;

    (void)env;
    release_all(route->rings, route->len);
    if (route->lock != NULL)
        enif_rwlock_destroy(route->lock);
}

ERL_NIF_TERM nif_route(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> Route, without a ring */
    struct route *route = enif_alloc_resource(library_of(env)->route_type, sizeof *route);
    ERL_NIF_TERM term;

    (void)argc;
    (void)argv;
    if (route == NULL)
        return raise_enomem(env);
    memset(route, 0, sizeof *route);
    route->lock = enif_rwlock_create((char *)"tame_route");
    term = enif_make_resource(env, route);
    enif_release_resource(route); /* the term keeps it */
    return route->lock == NULL ? raise_enomem(env) : term;
}

ERL_NIF_TERM nif_lead(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Route, Rings) -> ok | lost: the route was made by another layout of this library */
    struct library *library = library_of(env);
    struct ring_handle *rings[ROUTE_RINGS], *before[ROUTE_RINGS];
    const ERL_NIF_TERM *terms;
    struct route *route;
    uint32_t len = 0, before_len;
    int arity;

    (void)argc;
    if (!enif_get_tuple(env, argv[1], &arity, &terms) || arity > ROUTE_RINGS)
        return enif_make_badarg(env);
    if (!get_route(env, argv[0], &route))
        return enif_is_ref(env, argv[0]) ? enif_make_atom(env, "lost") : enif_make_badarg(env);
    for (int i = 0; i < arity; i++) {
        void *object;

        if (enif_get_resource(env, terms[i], library->ring_type, &object))
            rings[len++] = object;
        else if (!is_lost(env, terms[i])) /* a lost one is closed: as if it were not there */
            return enif_make_badarg(env);
    }
    for (uint32_t i = 0; i < len; i++)
        enif_keep_resource(rings[i]);
    enif_rwlock_rwlock(route->lock);
    before_len = route->len;
    memcpy(before, route->rings, before_len * sizeof *before);
    memcpy(route->rings, rings, len * sizeof *rings);
    route->len = len;
    enif_rwlock_rwunlock(route->lock);
    release_all(before, before_len); /* a ring may end here, so not under the lock */
    return library->am_ok;
}

ERL_NIF_TERM nif_rings(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Route) -> Rings; none of a lost route */
    ERL_NIF_TERM terms[ROUTE_RINGS];
    struct route *route;
    uint32_t len = 0;

    (void)argc;
    if (get_route(env, argv[0], &route)) {
        enif_rwlock_rlock(route->lock);
        for (; len < route->len; len++)
            terms[len] = enif_make_resource(env, route->rings[len]);
        enif_rwlock_runlock(route->lock);
    } else if (!enif_is_ref(env, argv[0])) {
        return enif_make_badarg(env);
    }
    return enif_make_tuple_from_array(env, terms, len);
}

ERL_NIF_TERM nif_choose(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Rings) -> Index */
    struct ring *rings[ROUTE_RINGS];
    const ERL_NIF_TERM *terms;
    int len;

    (void)argc;
    if (!enif_get_tuple(env, argv[0], &len, &terms) || len == 0 || len > ROUTE_RINGS)
        return enif_make_badarg(env);
    for (int i = 0; i < len; i++)
        if (!get_ring(env, terms[i], &rings[i]))
            rings[i] = NULL;
    return enif_make_uint(env, least_busy(rings, (uint32_t)len, own_place()) + 1);
}

ERL_NIF_TERM nif_home(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Rings, Ref) -> Index | gone | none */
    struct library *library = library_of(env);
    const ERL_NIF_TERM *rings;
    struct ring *ring;
    void *object;
    int len;

    (void)argc;
    if (!enif_get_tuple(env, argv[0], &len, &rings))
        return enif_make_badarg(env);
    if (!enif_get_resource(env, argv[1], library->proxy_type, &object))
        return library->am_none;
    for (int i = 0; i < len; i++)
        if (get_ring(env, rings[i], &ring) && ring == ((struct proxy *)object)->ring)
            return enif_make_int(env, i + 1);
    return library->am_gone;
}
