/* early.h - what has come of a receive of an exact length and was not taken: kept while it waits, and for
 * later receives of any length.
 *
 * No call copies more than TCP_SLICE_BYTES: a larger part moves in slices into a block of its own, and all
 * of it goes as it is. For the same reason memory is not doubled: a receive of many bytes takes a slice of it, and
 * when that is full all that it wants, whose pages the system gives as they are filled. */
#ifndef TAME_TCP_EARLY_H
#define TAME_TCP_EARLY_H

#include <erl_nif.h>
#include <string.h>

/* What a call receives or moves at most: 0.1 ms, and 0.4 where the system has to find each page. More at
 * once is slower, because the bytes leave the cache. */
#define TCP_SLICE_BYTES ((size_t)256 * 1024)

enum tcp_read {
    TCP_READ_SOME,
    TCP_READ_BLOCKS,
    TCP_READ_SLICE,
    TCP_READ_PART,
    TCP_READ_END,
    TCP_READ_FAILS
};

/* The socket's, of who holds TAME_FD_READ. */
struct tcp_early {
    ErlNifBinary block; /* if `has` */
    ErlNifBinary next;  /* if `moves`: the bytes move there, in slices */
    size_t moved;       /* how many have */
    size_t at, size;    /* the bytes: `at` is 0 when there are none */
    int has, moves;
};

/* Reports the time that copying takes: 0.3 us for each KiB, of a timeslice of 1 ms. */
static inline void tcp_charge(ErlNifEnv *env, size_t bytes)
{
    const size_t percent = bytes / 32768;

    if (percent > 0)
        (void)enif_consume_timeslice(env, percent > 100 ? 100 : (int)percent);
}

/* What was moved is not what is first any more, or goes elsewhere. */
static inline void tcp_early_stays(struct tcp_early *early)
{
    if (early->moves)
        enif_release_binary(&early->next);
    early->moves = 0;
}

static inline void tcp_early_end(struct tcp_early *early)
{
    tcp_early_stays(early);
    if (early->has)
        enif_release_binary(&early->block);
    early->has = 0;
    early->at = early->size = 0;
}

/* The block is the socket's from here on; nothing is there. */
static inline void tcp_early_keep(struct tcp_early *early, const ErlNifBinary *block, size_t size)
{
    tcp_early_end(early);
    early->block = *block;
    early->has = 1;
    early->size = size;
}

/* A slice of the first `wanted` bytes goes into a block of `room`. TCP_READ_SOME: they are there. */
static inline enum tcp_read tcp_early_move(ErlNifEnv *env, struct tcp_early *early, size_t room,
                                           size_t wanted)
{
    size_t bytes;

    if (early->moves && early->next.size != room)
        tcp_early_stays(early);
    if (!early->moves) {
        if (!enif_alloc_binary(room, &early->next))
            return TCP_READ_FAILS;
        early->moves = 1;
        early->moved = 0;
    }
    bytes = wanted - early->moved;
    if (bytes > TCP_SLICE_BYTES)
        bytes = TCP_SLICE_BYTES;
    memcpy(early->next.data + early->moved, early->block.data + early->at + early->moved, bytes);
    early->moved += bytes;
    tcp_charge(env, bytes);
    return early->moved < wanted ? TCP_READ_SLICE : TCP_READ_SOME;
}

/* All that is there. */
static inline ERL_NIF_TERM tcp_early_take(ErlNifEnv *env, struct tcp_early *early)
{
    const size_t at = early->at, size = early->size;
    ERL_NIF_TERM term;

    if (size < early->block.size && size <= TCP_SLICE_BYTES) {
        memcpy(enif_make_new_binary(env, size, &term), early->block.data + at, size);
        tcp_early_end(early);
        tcp_charge(env, size);
        return term;
    }
    term = enif_make_binary(env, &early->block);
    if (size < early->block.size) /* too much to copy here */
        term = enif_make_sub_binary(env, term, at, size);
    early->has = 0;
    tcp_early_end(early);
    return term;
}

/* The first `size` bytes; they are there. TCP_READ_SLICE: not all have moved yet. */
static inline enum tcp_read tcp_early_part(ErlNifEnv *env, struct tcp_early *early, size_t size,
                                           ERL_NIF_TERM *term)
{
    enum tcp_read result = TCP_READ_SOME;

    if (size == early->size) {
        *term = tcp_early_take(env, early);
        return TCP_READ_SOME;
    }
    if (size <= TCP_SLICE_BYTES) {
        memcpy(enif_make_new_binary(env, size, term), early->block.data + early->at, size);
        tcp_early_stays(early);
        tcp_charge(env, size);
    } else {
        result = tcp_early_move(env, early, size, size);
        if (result != TCP_READ_SOME)
            return result;
        *term = enif_make_binary(env, &early->next);
        early->moves = 0;
    }
    early->at += size;
    early->size -= size;
    return TCP_READ_SOME;
}

/* Room behind what is there, for up to `size` bytes in all, which is more. TCP_READ_SLICE: it moves there. */
static inline enum tcp_read tcp_early_room(ErlNifEnv *env, struct tcp_early *early, size_t size)
{
    const size_t room =
        early->size < TCP_SLICE_BYTES && size > TCP_SLICE_BYTES ? TCP_SLICE_BYTES : size;
    enum tcp_read result;

    if (!early->has) {
        early->has = enif_alloc_binary(room, &early->block);
        return early->has ? TCP_READ_SOME : TCP_READ_FAILS;
    }
    if (early->at == 0 ? early->block.size > early->size : early->block.size - early->at >= size)
        return TCP_READ_SOME;
    if (early->at == 0 && early->block.size <= TCP_SLICE_BYTES) { /* realloc copies no more */
        tcp_early_stays(early);
        return enif_realloc_binary(&early->block, room) ? TCP_READ_SOME : TCP_READ_FAILS;
    }
    result = tcp_early_move(env, early, room, early->size);
    if (result != TCP_READ_SOME)
        return result;
    enif_release_binary(&early->block);
    early->block = early->next;
    early->moves = 0;
    early->at = 0;
    return TCP_READ_SLICE;
}

#endif
