/* tame/job.h - what the author of a job writes, and how init, step and build say what has become of
 * it.
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

/* The most arguments a job takes, the most binaries it reads, the most outputs that grow, and the
 * terms that it carries from step to step. */
#define TAME_MAX_ARGS 8
#define TAME_MAX_INPUTS TAME_MAX_ARGS
#define TAME_MAX_OUTPUTS 8
#define TAME_MAX_ROOTS 4

struct tame_impl_context;

enum tame_impl_failure {
    TAME_IMPL_NO_FAILURE,
    TAME_IMPL_BADARG,
    TAME_IMPL_REASON,
    TAME_IMPL_ALIGN, /* an argument is needed in another form */
    TAME_IMPL_CLAIM  /* the call waits for a context */
};

/* One call of a job, as its functions see it. */
struct tame_call {
    ErlNifEnv *env; /* to make terms in; another one in each slice */
    int argc;
    const ERL_NIF_TERM *argv; /* valid in env; NULL in the steps of a thread of the library's own */
    ERL_NIF_TERM
    root[TAME_MAX_ROOTS]; /* terms that are kept from one slice to the next; at first [] */

    /* Private to tame.h. */
    void *impl_state;
    size_t impl_state_size;
    int impl_terms;      /* the job says `terms`: roots go on from step to step */
    uint64_t impl_total; /* 0: not known */
    int impl_inputs_len;
    struct {
        int arg;
        size_t offset; /* of the struct tame_input in the state */
    } impl_inputs[TAME_MAX_INPUTS];
    int impl_outputs_len;
    size_t impl_outputs[TAME_MAX_OUTPUTS];  /* offsets in the state, as of inputs */
    struct tame_impl_context *impl_context; /* that is held by claim, or waited for */
    int impl_holds;                         /* it is held */

    enum tame_impl_failure impl_failure;
    int impl_number;
    const char *impl_sentence;
    ERL_NIF_TERM impl_term; /* the reason of the failure, or the part; in env */
};

/* A job. The state is `state_size` bytes of zeros before init; it may be moved between two slices,
 * so nothing in it may point into it. */
struct tame_job {
    size_t state_size;

    /* Decodes the arguments into the state and returns tame_ok(call, units of work), or an error.
     * Runs on the caller's scheduler (on a dirty one where the placement is dirty_cpu or dirty_io)
     * and must be short. */
    enum tame_status (*init)(struct tame_call *call, void *state);

    /* Does at most `units` of the work. */
    tame_step step;

    /* Makes the result in steps of its own, after the last step, in call->root; NULL when `result`
     * is short. Always on a scheduler, in the caller's process. */
    tame_step build;

    /* The result. Called once, at the end, on a scheduler, in the caller's process. */
    ERL_NIF_TERM (*result)(struct tame_call *call, void *state);

    /* Frees what init took. Called exactly once after an init that returned, whether well or
     * not, and may run on any thread. NULL when there is nothing to free. */
    void (*cleanup)(void *state);

    /* Moves the state to other memory, and ends what is left of it at `from`. NULL: memcpy does. */
    void (*move)(void *to, void *from);

    int terms; /* 1: the steps use call->env, argv or root, so they stay on the VM's schedulers */
    uint32_t slice_us;       /* on a normal scheduler; 0: TAME_SLICE_US */
    uint32_t dirty_slice_us; /* on dirty schedulers; 0: TAME_DIRTY_SLICE_US */
    uint32_t max_running;    /* calls of a row that may run at once; 0: any number */
    uint32_t max_waiting; /* calls that may wait, for that or for the pool; 0: TAME_MAX_WAITING */
    uint32_t stack_kib;   /* of a thread of the library's own; 0: the VM's default */
};

#define TAME_MAX_WAITING 10000

/* For tame_ok: nobody knows how much work there is. */
#define TAME_UNKNOWN UINT64_MAX

/* init went well; there are `units` of work, in the unit that step counts in. */
static inline enum tame_status tame_ok(struct tame_call *call, uint64_t units)
{
    call->impl_total = units == TAME_UNKNOWN ? 0 : units > 0 ? units : 1;
    return TAME_MORE;
}

/* The first failure stays: what is said after it is a consequence. */
static inline enum tame_status tame_impl_fail(struct tame_call *call,
                                              enum tame_impl_failure failure, int number,
                                              const char *sentence, ERL_NIF_TERM term)
{
    if (call->impl_failure == TAME_IMPL_NO_FAILURE) {
        call->impl_failure = failure;
        call->impl_number = number;
        call->impl_sentence = sentence;
        call->impl_term = term;
    }
    return TAME_FAILED;
}

/* The call raises badarg: argument `number` (counted from 1, as the shell shows it) is wrong; the
 * sentence goes on after it: "must be a binary". It is read once more before cleanup, so it is a
 * literal, or lies in what cleanup frees. From init, step, build and result, which then returns 0. */
static inline enum tame_status tame_badarg(struct tame_call *call, int number, const char *sentence)
{
    return tame_impl_fail(call, TAME_IMPL_BADARG, number, sentence, 0);
}

/* {tame, Reason}, as tame.h itself says that a call went wrong. */
static inline enum tame_status tame_impl_fault(struct tame_call *call, const char *reason)
{
    return tame_impl_fail(call, TAME_IMPL_REASON, 0, NULL,
                          enif_make_tuple2(call->env, enif_make_atom(call->env, "tame"),
                                           enif_make_atom(call->env, reason)));
}

/* The call raises the error `reason`, a term of call->env. From init, step, build and result, which
 * then returns 0. Of 0, which is no term (enif_make_atom of a name that is too long returns it), {tame,
 * bad_reason}. */
static inline enum tame_status tame_fail(struct tame_call *call, ERL_NIF_TERM reason)
{
    return reason != 0 ? tame_impl_fail(call, TAME_IMPL_REASON, 0, NULL, reason)
                       : tame_impl_fault(call, "bad_reason");
}

/* The system gave no memory. From init, step, build and result, which then returns 0. */
static inline enum tame_status tame_enomem(struct tame_call *call)
{
    return tame_fail(call, enif_make_atom(call->env, "enomem"));
}

/* The offset of `member` in the state. The library finds it there in a later slice, so elsewhere it
 * must not be: then the call raises {tame, `fault`}. */
static inline int tame_impl_in_state(struct tame_call *call, const void *member, size_t size,
                                     const char *fault, size_t *offset)
{
    *offset = (size_t)((uintptr_t)member - (uintptr_t)call->impl_state);
    if (call->impl_state_size >= size && *offset <= call->impl_state_size - size)
        return 1;
    (void)tame_impl_fault(call, fault);
    return 0;
}

/* Gives a part of the result, a term of call->env, to who reads the stream (tame:stream/2), and
 * waits until the next is wanted: return what it returns. From step. 0 is no term, and a failure: {tame,
 * bad_part}. */
static inline enum tame_status tame_emit(struct tame_call *call, ERL_NIF_TERM part)
{
    if (part == 0)
        return tame_impl_fault(call, "bad_part");
    call->impl_term = part;
    return TAME_PART;
}

/* What a step returned, with what it said besides: TAME_PART that is not from tame_emit has no part. */
static inline enum tame_status tame_impl_stepped(struct tame_call *call, enum tame_status status)
{
    if (status == TAME_PART && call->impl_term == 0)
        (void)tame_impl_fault(call, "bad_part");
    return call->impl_failure != TAME_IMPL_NO_FAILURE ? TAME_FAILED : status;
}

#endif
