/* The first of two files of one NIF library; the other is include_two.c. Both include tame.h, and
 * twice; only this one has the function table. */
#include <tame.h>
#include <tame.h>

#include "include_two.h"

static enum tame_status init(struct tame_call *call, void *state)
{
    return include_two_init(call, (struct include_two *)state);
}

static ERL_NIF_TERM result(struct tame_call *call, void *state)
{
    return tame_output_term(call, &((struct include_two *)state)->out);
}

static const struct tame_job zeros = {
    .state_size = sizeof(struct include_two),
    .init = init,
    .step = include_two_step,
    .result = result,
    .cleanup = include_two_cleanup,
};

#define FUNCTIONS(JOB, NIF) JOB(zeros_nif, 1, zeros, TAME_AUTO)
TAME_NIF_INIT(include_test, FUNCTIONS)
