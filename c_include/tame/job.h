/* tame/job.h - what the author of a job writes, and what a job may ask for.
 *
 * Part of tame.h, which has the manual. */
#ifndef TAME_JOB_H
#define TAME_JOB_H

#include <erl_nif.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "slice.h"

/* Where a job runs; see the manual in tame.h. */
enum tame_placement {
    TAME_AUTO,
    TAME_INLINE,
    TAME_YIELDING,
    TAME_DIRTY_CPU,
    TAME_DIRTY_IO,
    TAME_YIELDING_DIRTY,
    TAME_THREAD,
    TAME_POOL
};

/* The most arguments a job takes, and the most binaries it reads. */
#define TAME_MAX_ARGS 8
#define TAME_MAX_INPUTS TAME_MAX_ARGS

/* One call of a job, as init and result see it. `env` is the environment to make terms in, and
 * `argv` the arguments, valid in it; both are others in result than in init. */
struct tame_call {
    ErlNifEnv *env;
    int argc;
    const ERL_NIF_TERM *argv;

    /* Private to tame.h. */
    void *impl_state;
    size_t impl_state_size;
    uint64_t impl_total;
    int impl_inputs_len;
    struct {
        int arg;
        size_t offset; /* of the struct tame_input in the state */
    } impl_inputs[TAME_MAX_INPUTS];
    ERL_NIF_TERM impl_error;
};

/* Whether init went well. Returned by tame_ok, tame_badarg and tame_enomem. */
enum tame_init_status { TAME_INIT_OK, TAME_INIT_FAILED };

/* A job. The state is `state_size` bytes of zeros before init; it may be moved between two slices,
 * so nothing in it may point into it. */
struct tame_job {
    size_t state_size;

    /* Decodes the arguments into the state and returns tame_ok(call, units of work), or an error.
     * Runs on the caller's scheduler (on a dirty one where the placement is dirty_cpu or dirty_io)
     * and must be short. */
    enum tame_init_status (*init)(struct tame_call *call, void *state);

    /* Does at most `units` of the work. Runs on any thread; no ErlNifEnv is at hand. */
    tame_step step;

    /* Makes the result. Called once, after step said TAME_DONE. */
    ERL_NIF_TERM (*result)(struct tame_call *call, void *state);

    /* Frees what init took. Called exactly once after an init that returned, whether well or
     * not, and may run on any thread. NULL when there is nothing to free. */
    void (*cleanup)(void *state);

    uint32_t slice_us;       /* on a normal scheduler; 0: TAME_SLICE_US */
    uint32_t dirty_slice_us; /* on dirty schedulers; 0: TAME_DIRTY_SLICE_US */
    uint32_t max_running;    /* calls of a row that may run at once; 0: any number */
    uint32_t max_waiting; /* calls that may wait, for that or for the pool; 0: TAME_MAX_WAITING */
    uint32_t stack_kib;   /* of a thread of the library's own; 0: the VM's default */
};

#define TAME_MAX_WAITING 10000

/* A binary argument. Its place is looked up again in every slice, so `data` may be another in each
 * step: keep offsets, not pointers. */
struct tame_input {
    const unsigned char *data;
    size_t size;
};

/* The first error stays: what init says after it is a consequence. */
static inline enum tame_init_status tame_impl_fail(struct tame_call *call, const char *kind,
                                                   ERL_NIF_TERM what)
{
    if (call->impl_error == 0)
        call->impl_error = enif_make_tuple3(call->env, enif_make_atom(call->env, "$tame"),
                                            enif_make_atom(call->env, kind), what);
    return TAME_INIT_FAILED;
}

/* Looks up argument `arg` (counted from 0) as a binary, for as long as the job lives. `input` must
 * lie in the state: anywhere else, {tame, input_outside_state} is raised, because each slice would
 * write there. Returns 0 when the argument is no binary. */
static inline int tame_input_binary(struct tame_call *call, int arg, struct tame_input *input)
{
    const size_t offset = (size_t)((uintptr_t)input - (uintptr_t)call->impl_state);
    ErlNifBinary binary;

    if (call->impl_state_size < sizeof *input || offset > call->impl_state_size - sizeof *input) {
        (void)tame_impl_fail(call, "error",
                             enif_make_tuple2(call->env, enif_make_atom(call->env, "tame"),
                                              enif_make_atom(call->env, "input_outside_state")));
        return 0;
    }
    if (arg >= call->argc || call->impl_inputs_len == TAME_MAX_INPUTS ||
        !enif_inspect_binary(call->env, call->argv[arg], &binary))
        return 0;
    input->data = binary.data;
    input->size = binary.size;
    call->impl_inputs[call->impl_inputs_len].arg = arg;
    call->impl_inputs[call->impl_inputs_len].offset = offset;
    call->impl_inputs_len++;
    return 1;
}

/* A binary that the job makes. Its bytes are not zeroed, and not paged in, before the steps write
 * them. Owned by the state until tame_output_term. */
struct tame_output {
    unsigned char *data;
    size_t size;
    ErlNifBinary impl_binary;
    int impl_owned;
};

/* Allocates `size` bytes. Returns 0 when there is no memory. */
static inline int tame_output_new(struct tame_output *output, size_t size)
{
    if (!enif_alloc_binary(size, &output->impl_binary))
        return 0;
    output->data = output->impl_binary.data;
    output->size = size;
    output->impl_owned = 1;
    return 1;
}

/* The output as a term, which owns it from then on. */
static inline ERL_NIF_TERM tame_output_term(struct tame_call *call, struct tame_output *output)
{
    output->impl_owned = 0;
    return enif_make_binary(call->env, &output->impl_binary);
}

/* Frees the output unless it has become a term. For cleanup. */
static inline void tame_output_free(struct tame_output *output)
{
    if (output->impl_owned)
        enif_release_binary(&output->impl_binary);
    output->impl_owned = 0;
}

/* init went well; there are `units` of work, in the unit that step counts in. */
static inline enum tame_init_status tame_ok(struct tame_call *call, uint64_t units)
{
    call->impl_total = units;
    return TAME_INIT_OK;
}

/* Argument `number` (counted from 1, as the shell shows it) is wrong; the sentence goes on after
 * it: "must be a binary". */
static inline enum tame_init_status tame_badarg(struct tame_call *call, int number,
                                                const char *sentence)
{
    return tame_impl_fail(call, "badarg",
                          enif_make_tuple2(call->env, enif_make_int(call->env, number),
                                           enif_make_string(call->env, sentence, ERL_NIF_LATIN1)));
}

/* The system gave no memory. */
static inline enum tame_init_status tame_enomem(struct tame_call *call)
{
    return tame_impl_fail(call, "error", enif_make_atom(call->env, "enomem"));
}

#endif
