/* What both directions have in common: iodata goes in chunk by chunk, bytes come out, all at once at
 * the end or in parts on the way. */
#ifndef ZSTD_PIPE_H
#define ZSTD_PIPE_H

#include <tame.h>
#include <zstd.h>

/* A part of a stream is at least this long, but for the last. */
#define PART_BYTES ((size_t)64 * 1024)
/* A unit of work looks at no more chunks than this, so that many short ones, or empty ones, cost no
 * more than a long one: about 20 us. */
#define CHUNKS_MAX 1000

#define ROOT_CHUNK 0 /* and the one behind it */

enum fill { FILLED, EMPTY, LATER, NO_IODATA };

struct pipe {
    struct tame_iodata in;
    size_t done; /* of the chunk */
    int drained; /* there is no chunk after this one */
    struct tame_output out;
    int parts; /* the output is emitted in parts */
};

static inline size_t pipe_left(const struct pipe *pipe)
{
    return pipe->in.size - pipe->done;
}

/* Looks for a chunk with bytes in it. EMPTY: all is read. LATER: not found yet. */
static inline enum fill pipe_fill(struct tame_call *call, struct pipe *pipe)
{
    for (int i = 0; i < CHUNKS_MAX; i++) {
        int more;

        if (pipe_left(pipe) > 0)
            return FILLED;
        if (pipe->drained)
            return EMPTY;
        more = tame_iodata_next(call, &pipe->in);
        if (more < 0)
            return NO_IODATA;
        pipe->drained = !more;
        pipe->done = more ? 0 : pipe->in.size;
    }
    return LATER;
}

/* Where libzstd writes next: room for `least` bytes, and for `most` at most. Returns 0 without memory. */
static inline int pipe_room(struct tame_call *call, struct pipe *pipe, size_t least, size_t most,
                            ZSTD_outBuffer *to)
{
    size_t room;

    to->dst = tame_output_room(call, &pipe->out, least, &room);
    if (to->dst == NULL)
        return 0;
    to->size = room < most ? room : most;
    to->pos = 0;
    return 1;
}

/* Whether a part is due. */
static inline int pipe_emits(const struct pipe *pipe, int at_end)
{
    return pipe->parts && pipe->out.size >= (at_end ? 1 : PART_BYTES);
}

#endif
