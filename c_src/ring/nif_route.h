/* nif_route.h - a route: the rings of the hosts that are up with a library, under one term that
 * stays while hosts come and go. Its callers need not be told a new ring's term, so what they know
 * of the library can be a persistent term, which is dear to change. */
#ifndef TAME_RING_NIF_ROUTE_H
#define TAME_RING_NIF_ROUTE_H

#include "nif_ring.h"

/* The least busy of a route's rings, kept for the caller, who releases it; NULL: it has none, or
 * the route was made by another layout of this library. */
struct ring_handle *route_take(ErlNifEnv *env, ERL_NIF_TERM route_term);

#endif
