/* tame/output.h - binaries that a job makes.
 *
 * Part of tame.h, which has the manual. An output grows by pieces, and nothing is copied meanwhile:
 * to make a binary larger or smaller is to copy it, in one go. When the steps are done the library
 * gathers the pieces into one binary, in slices. */
#ifndef TAME_OUTPUT_H
#define TAME_OUTPUT_H

#include "clock.h"
#include "job.h"
#include "os.h"

/* A piece that is full, or had too little room left. */
struct tame_impl_piece {
    struct tame_impl_piece *before;
    ErlNifBinary binary; /* owned */
    size_t size;         /* bytes of it that are not gathered yet */
};

/* A binary that the job makes. Its bytes are not zeroed, and not paged in, before the steps write
 * them. Owned by the state until tame_output_term. Zeros are an output of no bytes. */
struct tame_output {
    unsigned char *data; /* all of it; NULL while it lies in several pieces */
    size_t size;
    ErlNifBinary impl_binary; /* the last piece; its size is the room in it */
    int impl_owned;
    int impl_gathers;                    /* impl_binary is what the pieces are gathered into */
    struct tame_impl_piece *impl_pieces; /* those before it, the last first; owned */
    size_t impl_before;                  /* the bytes in them */
};

/* The sizes of pieces: one has as much room as there was before it, within these bounds. */
#define TAME_IMPL_PIECE_MIN ((size_t)4 * 1024)
#define TAME_IMPL_PIECE_MAX ((size_t)1024 * 1024)

/* A unit of gathering: a page, which is fresh. */
#define TAME_IMPL_GATHER_BYTES ((size_t)4 * 1024)

/* A binary of no more bytes lies on the heap of its process, as the VM's own do: a binary besides it,
 * and the collection that frees that, costs more than the copy. */
#define TAME_IMPL_HEAP_BYTES ((size_t)64)

/* A binary with no more room than this may be copied at once: that takes some microseconds. */
#define TAME_IMPL_SMALL_BYTES ((size_t)64 * 1024)

static inline int tame_impl_output_alloc(ErlNifBinary *binary, size_t size)
{
    if (!enif_alloc_binary(size, binary))
        return 0;
    if (size >= TAME_IMPL_LARGE_BYTES)
        tame_impl_os_large_pages(binary->data, size, tame_now_ns());
    return 1;
}

/* Allocates `size` bytes, in one piece. Returns 0 when there is no memory. */
static inline int tame_output_new(struct tame_output *output, size_t size)
{
    memset(output, 0, sizeof *output);
    if (!tame_impl_output_alloc(&output->impl_binary, size))
        return 0;
    output->data = output->impl_binary.data;
    output->size = size;
    output->impl_owned = 1;
    return 1;
}

/* Whether there is anything to gather: pieces, or one with much room that was not used. Little room
 * is left as it is, because pages that nobody wrote take no memory. */
static inline int tame_impl_output_scattered(const struct tame_output *output)
{
    const size_t room = output->impl_binary.size;

    return output->impl_pieces != NULL ||
           (output->impl_owned && room > TAME_IMPL_SMALL_BYTES && room - output->size >= room / 8);
}

/* Puts the last piece with those before it; then there is none. Returns 0 without memory. */
static inline int tame_impl_output_push(struct tame_output *output)
{
    struct tame_impl_piece *piece = (struct tame_impl_piece *)enif_alloc(sizeof *piece);

    if (piece == NULL)
        return 0;
    piece->before = output->impl_pieces;
    piece->binary = output->impl_binary;
    piece->size = output->size - output->impl_before;
    output->impl_pieces = piece; /* the output's */
    output->impl_before = output->size;
    return 1;
}

/* Drops the last piece; the one before it is the last then. */
static inline void tame_impl_output_pop(struct tame_output *output)
{
    struct tame_impl_piece *piece = output->impl_pieces;

    enif_release_binary(&output->impl_binary);
    output->impl_binary = piece->binary;
    output->impl_before -= piece->size;
    output->impl_pieces = piece->before;
    enif_free(piece);
    output->data = output->impl_pieces == NULL ? output->impl_binary.data : NULL;
}

static inline int tame_impl_gather_begin(struct tame_output *output)
{
    ErlNifBinary whole;

    while (output->impl_pieces != NULL && output->impl_before == output->size)
        tame_impl_output_pop(output); /* nothing is in it */
    if (!tame_impl_output_scattered(output))
        return 1;
    if (!tame_impl_output_alloc(&whole, output->size))
        return 0;
    if (!tame_impl_output_push(output)) {
        enif_release_binary(&whole);
        return 0;
    }
    output->impl_binary = whole;
    output->data = NULL;
    output->impl_gathers = 1;
    return 1;
}

/* Gathers the end of the last piece that is left, and frees the piece when it was all. */
static inline void tame_impl_gather_unit(struct tame_output *output)
{
    struct tame_impl_piece *piece = output->impl_pieces;
    const size_t size = piece->size < TAME_IMPL_GATHER_BYTES ? piece->size : TAME_IMPL_GATHER_BYTES;

    piece->size -= size;
    output->impl_before -= size;
    memcpy(output->impl_binary.data + output->impl_before, piece->binary.data + piece->size, size);
    if (piece->size > 0)
        return;
    output->impl_pieces = piece->before;
    enif_release_binary(&piece->binary);
    enif_free(piece);
}

/* Gathers what was written so far into one piece of the right size: at most *units, of 4 KiB, and
 * counts them down. TAME_DONE: it is `data`. The library does so when the steps are done; a step may,
 * with what it wants to emit. Until it is done nothing else may be done with the output but to free it.
 * TAME_FAILED: there is no memory; return it. */
static inline enum tame_status tame_output_gather(struct tame_call *call,
                                                  struct tame_output *output, size_t *units)
{
    if (!output->impl_gathers && tame_impl_output_scattered(output) &&
        !tame_impl_gather_begin(output))
        return tame_enomem(call);
    if (!output->impl_gathers)
        return TAME_DONE;
    for (; *units > 0 && output->impl_pieces != NULL; --*units)
        tame_impl_gather_unit(output);
    if (output->impl_pieces != NULL)
        return TAME_MORE;
    output->impl_gathers = 0;
    output->data = output->impl_binary.data;
    return TAME_DONE;
}

/* The library gathers it when the steps are done. In a test without a VM `call` is NULL. */
static inline int tame_impl_output_kept(struct tame_call *call, const struct tame_output *output)
{
    size_t offset;

    if (call == NULL)
        return 1;
    if (!tame_impl_in_state(call, output, sizeof *output, "output_outside_state", &offset))
        return 0;
    for (int i = 0; i < call->impl_outputs_len; i++)
        if (call->impl_outputs[i] == offset)
            return 1;
    if (call->impl_outputs_len == TAME_MAX_OUTPUTS) {
        (void)tame_impl_fault(call, "too_many_outputs");
        return 0;
    }
    call->impl_outputs[call->impl_outputs_len++] = offset;
    return 1;
}

/* Begins a piece with room for `least` bytes, or, without memory for more, for just that. */
static inline int tame_impl_output_more(struct tame_output *output, size_t least)
{
    const int first = !output->impl_owned;
    const size_t wanted = output->size < TAME_IMPL_PIECE_MIN   ? TAME_IMPL_PIECE_MIN
                          : output->size < TAME_IMPL_PIECE_MAX ? output->size
                                                               : TAME_IMPL_PIECE_MAX;
    ErlNifBinary binary;

    if (least > SIZE_MAX - output->size)
        return 0;
    if (!(least < wanted && tame_impl_output_alloc(&binary, wanted)) &&
        !tame_impl_output_alloc(&binary, least))
        return 0;
    if (!first && output->size == output->impl_before) {
        enif_release_binary(&output->impl_binary); /* nothing is in it */
    } else if (!first && !tame_impl_output_push(output)) {
        enif_release_binary(&binary);
        return 0;
    }
    output->impl_binary = binary;
    output->impl_owned = 1;
    output->data = output->impl_pieces == NULL ? binary.data : NULL;
    return 1;
}

/* How much room is left in the last piece. */
static inline size_t tame_impl_output_left(const struct tame_output *output)
{
    return output->impl_owned ? output->impl_binary.size - (output->size - output->impl_before) : 0;
}

/* Where the next bytes go: room for `least`, 1 or more; *room says for how many. Tell with
 * tame_output_wrote how many were written. It does not move what is there. `output` must lie in the
 * state. NULL, when there is no memory: the output is as it was then. */
static inline unsigned char *tame_output_room(struct tame_call *call, struct tame_output *output,
                                              size_t least, size_t *room)
{
    if (tame_impl_output_left(output) < least &&
        (!tame_impl_output_kept(call, output) || !tame_impl_output_more(output, least)))
        return NULL;
    *room = tame_impl_output_left(output);
    return output->impl_binary.data + (output->size - output->impl_before);
}

/* So many bytes were written to the room. */
static inline void tame_output_wrote(struct tame_output *output, size_t size)
{
    output->size += size;
}

/* Puts bytes behind what is there. Returns 0 when there is no memory. */
static inline int tame_output_append(struct tame_call *call, struct tame_output *output,
                                     const void *bytes, size_t size)
{
    const unsigned char *from = (const unsigned char *)bytes;

    while (size > 0) {
        const size_t left = tame_impl_output_left(output);
        size_t room;
        unsigned char *to = tame_output_room(call, output, left > 0 ? 1 : size, &room);

        if (to == NULL)
            return 0;
        room = room < size ? room : size;
        memcpy(to, from, room);
        tame_output_wrote(output, room);
        from += room;
        size -= room;
    }
    return 1;
}

/* Lowers the size; what is behind it is room again. `output` must lie in the state. */
static inline void tame_output_shrink(struct tame_call *call, struct tame_output *output,
                                      size_t size)
{
    if (size >= output->size || !tame_impl_output_kept(call, output))
        return;
    output->size = size;
    while (output->impl_pieces != NULL && size <= output->impl_before)
        tame_impl_output_pop(output);
}

/* The output as a term, which owns it from then on; the output is one of no bytes again. One that is
 * not gathered yet, within a step, is gathered at once: see tame_output_gather. */
static inline ERL_NIF_TERM tame_output_term(struct tame_call *call, struct tame_output *output)
{
    size_t all = SIZE_MAX, size;
    const int whole = output->impl_owned ? tame_output_gather(call, output, &all) == TAME_DONE
                                         : tame_output_new(output, 0);
    ErlNifBinary binary;
    ERL_NIF_TERM term;

    if (!whole) {
        (void)tame_enomem(call);
        return enif_make_atom(call->env, "enomem"); /* nobody sees it: the call has failed */
    }
    binary = output->impl_binary;
    size = output->size;
    memset(output, 0, sizeof *output);
    if (size <= TAME_IMPL_HEAP_BYTES) {
        memcpy(enif_make_new_binary(call->env, size, &term), binary.data, size);
        enif_release_binary(&binary);
        return term;
    }
    if (size < binary.size && binary.size <= TAME_IMPL_SMALL_BYTES)
        (void)enif_realloc_binary(&binary, size);
    term = enif_make_binary(call->env, &binary);
    return size < binary.size ? enif_make_sub_binary(call->env, term, 0, size) : term;
}

/* Frees the output unless it has become a term. For cleanup. */
static inline void tame_output_free(struct tame_output *output)
{
    while (output->impl_pieces != NULL)
        tame_impl_output_pop(output);
    if (!output->impl_owned)
        return;
    enif_release_binary(&output->impl_binary);
    memset(output, 0, sizeof *output);
}

/* ---- for the library ---- */

static inline struct tame_output *tame_impl_output(const struct tame_call *call, int index)
{
    return (struct tame_output *)((char *)call->impl_state + call->impl_outputs[index]);
}

/* Whether one of the run's outputs is to be gathered. */
static inline int tame_impl_scattered(const struct tame_call *call)
{
    for (int i = 0; i < call->impl_outputs_len; i++)
        if (tame_impl_output_scattered(tame_impl_output(call, i)))
            return 1;
    return 0;
}

/* A step that gathers all of them. */
static inline enum tame_status tame_impl_gather(struct tame_call *call, void *state, size_t units)
{
    enum tame_status status = TAME_DONE;

    (void)state;
    for (int i = 0; i < call->impl_outputs_len && status == TAME_DONE; i++)
        status = tame_output_gather(call, tame_impl_output(call, i), &units);
    return status;
}

#endif
