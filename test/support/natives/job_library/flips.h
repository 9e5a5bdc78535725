/* flips.h - iodata in, a growing output. Part of job_library_nif.c. */
#ifndef JOB_LIBRARY_FLIPS_H
#define JOB_LIBRARY_FLIPS_H

/* (Iodata) -> the same bytes, each turned round, in one binary. */
struct flip {
    struct tame_iodata in;
    size_t done; /* of the chunk */
    struct tame_output out;
};

static enum tame_status flip_init(struct tame_call *call, void *state)
{
    struct flip *flip = state;

    return tame_input_iodata(call, 0, 0, &flip->in) ? tame_ok(call, TAME_UNKNOWN)
                                                    : tame_badarg(call, 1, "must be iodata");
}

static enum tame_status flip_step(struct tame_call *call, void *state, size_t units)
{
    struct flip *flip = state;

    while (units > 0) {
        const size_t left = flip->in.size - flip->done;
        size_t count = units < left ? units : left, room;
        unsigned char *to;

        if (left == 0) {
            const int next = tame_iodata_next(call, &flip->in);

            if (next <= 0)
                return next == 0 ? TAME_DONE : tame_badarg(call, 1, "must be iodata");
            flip->done = 0;
            units--; /* a chunk of no bytes is work, too */
            continue;
        }
        to = tame_output_room(call, &flip->out, 1, &room);
        if (to == NULL)
            return tame_enomem(call);
        count = room < count ? room : count;
        for (size_t i = 0; i < count; i++)
            to[i] = flip->in.data[flip->done + i] ^ 0xff;
        tame_output_wrote(&flip->out, count);
        flip->done += count;
        units -= count;
    }
    return TAME_MORE;
}

static ERL_NIF_TERM flip_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct flip *)state)->out);
}

static void flip_cleanup(void *state)
{
    tame_output_free(&((struct flip *)state)->out);
}

static const struct tame_job flip = {.state_size = sizeof(struct flip),
                                     .init = flip_init,
                                     .step = flip_step,
                                     .result = flip_result,
                                     .cleanup = flip_cleanup,
                                     .terms = 1};

#endif
