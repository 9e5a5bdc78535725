/* The jobs that compress. */
#ifndef ZSTD_COMPRESS_H
#define ZSTD_COMPRESS_H

#include "context.h"
#include "pipe.h"

/* A unit: so much input becomes a block of its own, in one call of libzstd. Left alone, libzstd
 * gathers 128 KiB and compresses them at once, in half a millisecond at level 3 and a tenth of a
 * second at level 19 on the machine of the README; this takes a quarter of that. */
#define BLOCK_BYTES ((size_t)32 * 1024)

struct compress {
    struct compressor *c; /* claimed */
    struct pipe pipe;
    int ends; /* the frame ends with the input */
    int done;
};

/* Reads what all rows have: (Compressor, Iodata, ...). */
static inline int compress_begin(struct tame_call *call, struct compress *s)
{
    s->c = tame_claim(call, 0, &compressor);
    if (s->c == NULL)
        return 0;
    if (tame_input_iodata(call, 1, ROOT_CHUNK, &s->pipe.in))
        return 1;
    (void)tame_badarg(call, 2, "must be iodata");
    return 0;
}

/* (Compressor, Iodata, Size) -> binary(): one frame, which says its size. */
static enum tame_status compress_init(struct tame_call *call, void *state)
{
    struct compress *s = state;
    ErlNifUInt64 size;

    if (!compress_begin(call, s))
        return TAME_FAILED;
    if (!enif_get_uint64(call->env, call->argv[2], &size))
        return tame_badarg(call, 3, "must be the size of the second");
    (void)ZSTD_CCtx_reset(s->c->cctx, ZSTD_reset_session_only);
    s->c->block = 0;
    (void)ZSTD_CCtx_setPledgedSrcSize(s->c->cctx, size);
    s->ends = 1;
    return tame_ok(call, size / BLOCK_BYTES + 1);
}

/* (Compressor, Iodata, Ends :: 0 | 1) -> parts: the frame goes on from the call before. */
static enum tame_status compress_parts_init(struct tame_call *call, void *state)
{
    struct compress *s = state;

    if (!compress_begin(call, s))
        return TAME_FAILED;
    if (!enif_get_int(call->env, call->argv[2], &s->ends))
        return tame_badarg(call, 3, "must be 0 or 1");
    s->pipe.parts = 1;
    return tame_ok(call, TAME_UNKNOWN);
}

/* One call of libzstd, with no more than the block can take. */
static enum tame_status compress_block(struct tame_call *call, struct compress *s)
{
    struct pipe *pipe = &s->pipe;
    const enum fill fill = pipe_fill(call, pipe);
    ZSTD_EndDirective directive;
    ZSTD_outBuffer to;
    ZSTD_inBuffer from;
    size_t take, least, left;

    if (fill == NO_IODATA)
        return tame_badarg(call, 2, "must be iodata");
    if (fill == LATER)
        return TAME_MORE;
    take =
        pipe_left(pipe) < BLOCK_BYTES - s->c->block ? pipe_left(pipe) : BLOCK_BYTES - s->c->block;
    directive = fill == EMPTY                       ? ZSTD_e_end
                : s->c->block + take == BLOCK_BYTES ? ZSTD_e_flush
                                                    : ZSTD_e_continue;
    if (fill == EMPTY && !s->ends) {
        s->done = 1; /* what is gathered stays in the context */
        return TAME_DONE;
    }
    from.src = take > 0 ? pipe->in.data + pipe->done : NULL;
    from.size = take;
    from.pos = 0;
    least = ZSTD_compressBound(s->c->block + take); /* so the block is flushed at once */
    if (!pipe_room(call, pipe, least, SIZE_MAX, &to))
        return tame_enomem(call);
    left = ZSTD_compressStream2(s->c->cctx, &to, &from, directive);
    tame_output_wrote(&pipe->out, to.pos);
    if (ZSTD_isError(left))
        return tame_fail(call, enif_make_tuple2(call->env, enif_make_atom(call->env, "zstd"),
                                                enif_make_string(call->env, ZSTD_getErrorName(left),
                                                                 ERL_NIF_LATIN1)));
    pipe->done += from.pos;
    /* With a flush asked for and not done, the block is full still, and the next call takes nothing. */
    s->c->block = directive == ZSTD_e_flush && left == 0 ? 0 : s->c->block + from.pos;
    s->done = directive == ZSTD_e_end && left == 0;
    return s->done ? TAME_DONE : TAME_MORE;
}

static enum tame_status compress_step(struct tame_call *call, void *state, size_t units)
{
    struct compress *s = state;
    enum tame_status status = s->done ? TAME_DONE : TAME_MORE;

    for (; units > 0 && status == TAME_MORE && !pipe_emits(&s->pipe, 0); units--)
        status = compress_block(call, s);
    if (status != TAME_FAILED && pipe_emits(&s->pipe, s->done))
        return tame_emit(call, tame_output_term(call, &s->pipe.out));
    return status;
}

static ERL_NIF_TERM compress_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct compress *)state)->pipe.out);
}

static void compress_cleanup(void *state)
{
    tame_output_free(&((struct compress *)state)->pipe.out);
}

static const struct tame_job compress = {.state_size = sizeof(struct compress),
                                         .init = compress_init,
                                         .step = compress_step,
                                         .result = compress_result,
                                         .cleanup = compress_cleanup,
                                         .terms = 1};
static const struct tame_job compress_parts = {.state_size = sizeof(struct compress),
                                               .init = compress_parts_init,
                                               .step = compress_step,
                                               .result = compress_result,
                                               .cleanup = compress_cleanup,
                                               .terms = 1};

#endif
