/* The second of two files of one NIF library; see include_one.c. */
#include "include_two.h"

enum tame_status include_two_init(struct tame_call *call, struct include_two *state)
{
    ErlNifUInt64 size;

    if (!enif_get_uint64(call->env, call->argv[0], &size))
        return tame_badarg(call, 1, "must be a size in bytes");
    return tame_output_new(&state->out, (size_t)size) ? tame_ok(call, size) : tame_enomem(call);
}

enum tame_status include_two_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    struct include_two *x = (struct include_two *)state;
    const size_t left = x->out.size - x->done;
    const size_t count = units < left ? units : left;

    memset(x->out.data + x->done, 0, count);
    x->done += count;
    return x->done == x->out.size ? TAME_DONE : TAME_MORE;
}

void include_two_cleanup(void *state)
{
    tame_output_free(&((struct include_two *)state)->out);
}
