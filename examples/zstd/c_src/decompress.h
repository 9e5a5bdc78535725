/* The jobs that decompress. */
#ifndef ZSTD_DECOMPRESS_H
#define ZSTD_DECOMPRESS_H

#include "context.h"
#include "pipe.h"

/* A unit: one call of libzstd, with so much input, and ROOM_BYTES for its output. The input may be
 * hostile: 4 KiB hold 1300 blocks without content. libzstd ends a call when a frame ends. */
#define PIECE_BYTES ((size_t)4 * 1024)
#define ROOM_BYTES ((size_t)128 * 1024)

struct decompress {
    struct decompressor *d; /* claimed */
    struct pipe pipe;
    uint64_t limit; /* of the output, since the session began */
    int looked;     /* at the size that the first frame says */
    int sized;      /* and there is room for it, in one piece */
    int full;       /* libzstd had no room left: it has more to say */
    int ends;       /* the input ends with this call */
    int done;
};

/* (Decompressor, Iodata, Limit, ...) */
static inline int decompress_begin(struct tame_call *call, struct decompress *s)
{
    ErlNifUInt64 limit;

    s->d = tame_claim(call, 0, &decompressor);
    if (s->d == NULL)
        return 0;
    if (!tame_input_iodata(call, 1, ROOT_CHUNK, &s->pipe.in)) {
        (void)tame_badarg(call, 2, "must be iodata");
        return 0;
    }
    if (!enif_get_uint64(call->env, call->argv[2], &limit)) {
        (void)tame_badarg(call, 3, "must be the most bytes that may come out");
        return 0;
    }
    s->limit = limit;
    return 1;
}

static inline void decompress_restart(struct decompressor *d)
{
    (void)ZSTD_DCtx_reset(d->dctx, ZSTD_reset_session_only);
    d->read = d->written = 0;
    d->wants = 1; /* no input is no frame */
}

/* (Decompressor, Iodata, Limit) -> binary(): all frames of the input. */
static enum tame_status decompress_init(struct tame_call *call, void *state)
{
    struct decompress *s = state;

    if (!decompress_begin(call, s))
        return TAME_FAILED;
    decompress_restart(s->d);
    s->ends = 1;
    return tame_ok(call, TAME_UNKNOWN);
}

/* (Decompressor, Iodata, Limit, Ends :: 0 | 1) -> parts: from where the call before ended. */
static enum tame_status decompress_parts_init(struct tame_call *call, void *state)
{
    struct decompress *s = state;

    if (!decompress_begin(call, s))
        return TAME_FAILED;
    if (!enif_get_int(call->env, call->argv[3], &s->ends))
        return tame_badarg(call, 4, "must be 0 or 1");
    if (s->d->read == 0)
        decompress_restart(s->d);
    s->pipe.parts = 1;
    return tame_ok(call, TAME_UNKNOWN);
}

/* {What, Position, Sentence} */
static enum tame_status decompress_fail(struct tame_call *call, struct decompress *s,
                                        const char *what, const char *sentence)
{
    ErlNifEnv *env = call->env;

    return tame_fail(call, enif_make_tuple3(env, enif_make_atom(env, what),
                                            enif_make_uint64(env, s->d->read),
                                            enif_make_string(env, sentence, ERL_NIF_LATIN1)));
}

/* A frame that tells its size gets room for all of it at once, and the pages are touched as they are
 * written. What it tells is not believed beyond the limit. */
static inline int decompress_size(struct tame_call *call, struct decompress *s)
{
    const unsigned long long size =
        ZSTD_getFrameContentSize(s->pipe.in.data + s->pipe.done, pipe_left(&s->pipe));

    s->looked = 1;
    if (s->pipe.parts || size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN ||
        size == 0 || size > s->limit || size > SIZE_MAX)
        return 1;
    if (!tame_output_new(&s->pipe.out, (size_t)size))
        return 0;
    tame_output_shrink(call, &s->pipe.out, 0); /* it is room, and nothing is in it yet */
    s->sized = 1;
    return 1;
}

static enum tame_status decompress_end(struct tame_call *call, struct decompress *s)
{
    if (s->ends && s->d->wants != 0)
        return decompress_fail(call, s, "truncated", "the input ends within a frame");
    s->done = 1;
    return TAME_DONE;
}

/* One call of libzstd. */
static enum tame_status decompress_piece(struct tame_call *call, struct decompress *s)
{
    struct pipe *pipe = &s->pipe;
    const enum fill fill = s->full ? FILLED : pipe_fill(call, pipe);
    /* One byte more than may come out tells that there is more. */
    const uint64_t may = s->limit - s->d->written;
    /* A part is no longer than this room, and lies in it as a whole. */
    const size_t left = ROOM_BYTES - (pipe->parts ? pipe->out.size : 0);
    const size_t room = may < left ? (size_t)may + 1 : left;
    size_t wants;
    ZSTD_outBuffer to;
    ZSTD_inBuffer from;

    if (fill == NO_IODATA)
        return tame_badarg(call, 2, "must be iodata");
    if (fill == LATER)
        return TAME_MORE;
    if (fill == EMPTY)
        return decompress_end(call, s);
    if (!s->looked && !decompress_size(call, s))
        return tame_enomem(call);
    if (!pipe_room(call, pipe, s->sized ? 1 : room, room, &to))
        return tame_enomem(call);
    from.size = pipe_left(pipe) < PIECE_BYTES ? pipe_left(pipe) : PIECE_BYTES;
    from.src = from.size > 0 ? pipe->in.data + pipe->done : NULL;
    from.pos = 0;
    wants = ZSTD_decompressStream(s->d->dctx, &to, &from);
    tame_output_wrote(&pipe->out, to.pos);
    if (ZSTD_isError(wants))
        return decompress_fail(call, s, "corrupt", ZSTD_getErrorName(wants));
    pipe->done += from.pos;
    s->d->read += from.pos;
    s->d->written += to.pos;
    s->d->wants = wants;
    s->full = to.pos == to.size && wants != 0;
    if (s->d->written > s->limit)
        return decompress_fail(call, s, "too_large", "more comes out than the limit allows");
    return TAME_MORE;
}

static enum tame_status decompress_step(struct tame_call *call, void *state, size_t units)
{
    struct decompress *s = state;
    enum tame_status status = s->done ? TAME_DONE : TAME_MORE;

    for (; units > 0 && status == TAME_MORE && !pipe_emits(&s->pipe, 0); units--)
        status = decompress_piece(call, s);
    if (status != TAME_FAILED && pipe_emits(&s->pipe, s->done))
        return tame_emit(call, tame_output_term(call, &s->pipe.out));
    return status;
}

static ERL_NIF_TERM decompress_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct decompress *)state)->pipe.out);
}

static void decompress_cleanup(void *state)
{
    tame_output_free(&((struct decompress *)state)->pipe.out);
}

static const struct tame_job decompress = {.state_size = sizeof(struct decompress),
                                           .init = decompress_init,
                                           .step = decompress_step,
                                           .result = decompress_result,
                                           .cleanup = decompress_cleanup,
                                           .terms = 1};
static const struct tame_job decompress_parts = {.state_size = sizeof(struct decompress),
                                                 .init = decompress_parts_init,
                                                 .step = decompress_step,
                                                 .result = decompress_result,
                                                 .cleanup = decompress_cleanup,
                                                 .terms = 1};

#endif
