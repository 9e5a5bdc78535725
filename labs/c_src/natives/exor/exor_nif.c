/* tame_exor: the exclusive or of two binaries, or of one and a byte, as one job in every placement.
 */
#include <tame.h>

#include "exor.h"

static enum tame_status exor_init(struct tame_call *call, void *state)
{
    struct exor *x = state;
    unsigned int byte;

    if (!tame_input_binary(call, 0, &x->a))
        return tame_badarg(call, 1, "must be a binary");
    x->with_byte = enif_get_uint(call->env, call->argv[1], &byte) && byte <= 255;
    if (x->with_byte)
        x->byte = (unsigned char)byte;
    else if (!tame_input_binary(call, 1, &x->b))
        return tame_badarg(call, 2, "must be a binary, or a byte: 0..255");
    else if (x->a.size != x->b.size)
        return tame_badarg(call, 2, "must be as long as the first argument");
    if (!tame_output_new(&x->out, x->a.size))
        return tame_enomem(call);
    return tame_ok(call, x->a.size);
}

static ERL_NIF_TERM exor_result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct exor *)state)->out);
}

static void exor_cleanup(void *state)
{
    tame_output_free(&((struct exor *)state)->out);
}

static const struct tame_job exor = {
    .state_size = sizeof(struct exor),
    .init = exor_init,
    .step = exor_step,
    .result = exor_result,
    .cleanup = exor_cleanup,
};

#define FUNCTIONS(JOB, NIF)                                    \
    JOB(exor_nif, 2, exor, TAME_AUTO)                          \
    JOB(exor_inline_nif, 2, exor, TAME_INLINE)                 \
    JOB(exor_yielding_nif, 2, exor, TAME_YIELDING)             \
    JOB(exor_dirty_nif, 2, exor, TAME_DIRTY_CPU)               \
    JOB(exor_yielding_dirty_nif, 2, exor, TAME_YIELDING_DIRTY) \
    JOB(exor_thread_nif, 2, exor, TAME_THREAD)                 \
    JOB(exor_pool_nif, 2, exor, TAME_POOL)

TAME_NIF_INIT(tame_exor, FUNCTIONS)
