/* tame_echo: a job that returns its argument, so that what a call costs is what its placement
 * costs. It has no state and one step; the argument is found again in result, wherever that is. */
#include <tame.h>

struct echo {
    char none;
};

static enum tame_status echo_init(struct tame_call *call, void *state)
{
    (void)state;
    return tame_ok(call, 1);
}

static enum tame_status echo_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    return TAME_DONE;
}

static ERL_NIF_TERM echo_result(struct tame_call *call, void *state)
{
    (void)state;
    return call->argv[0];
}

static const struct tame_job echo = {
    .state_size = sizeof(struct echo),
    .init = echo_init,
    .step = echo_step,
    .result = echo_result,
};

#define FUNCTIONS(JOB, NIF)                                    \
    JOB(echo_nif, 1, echo, TAME_AUTO)                          \
    JOB(echo_inline_nif, 1, echo, TAME_INLINE)                 \
    JOB(echo_dirty_nif, 1, echo, TAME_DIRTY_CPU)               \
    JOB(echo_yielding_dirty_nif, 1, echo, TAME_YIELDING_DIRTY) \
    JOB(echo_thread_nif, 1, echo, TAME_THREAD)                 \
    JOB(echo_pool_nif, 1, echo, TAME_POOL)

TAME_NIF_INIT(tame_echo, FUNCTIONS)
