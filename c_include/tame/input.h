/* tame/input.h - binaries that a job reads.
 *
 * Part of tame.h, which has the manual. */
#ifndef TAME_INPUT_H
#define TAME_INPUT_H

#include "job.h"

/* A binary argument. Its place is looked up again in every slice, so `data` may be another in each
 * step: keep offsets, not pointers. */
struct tame_input {
    const unsigned char *data;
    size_t size;
};

/* Looks at a binary whose bytes lie in memory as they are. Returns 0 for another: the VM copies one
 * whose bytes begin in the middle of a byte as a whole each time that it is looked at. Looking twice at
 * a part of it without bytes tells, and costs nothing, for it may have none. From OTP 27 on the VM
 * copies so short a part at once, to another place; then the first part that it does not copy tells,
 * when the size is known. */
#define TAME_IMPL_NOT_COPIED 65

/* What a term of the VM points to has a header of two words before the bytes of a short binary. Memory
 * of the VM's that holds a copy cannot lie there, so one look is enough: 5 ns of 15. Nothing is read,
 * and where a term is something else it only says no. */
#define TAME_IMPL_OBJECT_BYTES 32

static inline int tame_impl_lies_in(ERL_NIF_TERM term, const unsigned char *data)
{
    return (uintptr_t)data - (uintptr_t)term < TAME_IMPL_OBJECT_BYTES;
}

static inline int tame_impl_inspect_in_place(ErlNifEnv *env, ERL_NIF_TERM term,
                                             ErlNifBinary *binary)
{
    ERL_NIF_TERM first = enif_make_sub_binary(env, term, 0, 0);
    ErlNifBinary one, two;

    if (!enif_inspect_binary(env, first, &one))
        return 0;
    if (tame_impl_lies_in(term, one.data))
        return enif_inspect_binary(env, term, binary);
    if (!enif_inspect_binary(env, first, &two) || one.data != two.data ||
        !enif_inspect_binary(env, term, binary))
        return 0;
    if (one.data == binary->data || binary->size < TAME_IMPL_NOT_COPIED)
        return 1;
    first = enif_make_sub_binary(env, term, 0, TAME_IMPL_NOT_COPIED);
    return enif_inspect_binary(env, first, &one) && one.data == binary->data;
}

/* The library looks the member up anew in each slice: of argument `arg`, or of the root ~arg. */
static inline void tame_impl_input_kept(struct tame_call *call, int arg, size_t offset)
{
    call->impl_inputs[call->impl_inputs_len].arg = arg;
    call->impl_inputs[call->impl_inputs_len].offset = offset;
    call->impl_inputs_len++;
}

static inline int tame_impl_is_argument(struct tame_call *call, int arg)
{
    if (arg >= 0 && arg < call->argc)
        return 1;
    (void)tame_impl_fault(call, "no_such_argument");
    return 0;
}

/* Looks up argument `arg` (counted from 0) as a binary, for as long as the job lives. `input` must
 * lie in the state. Returns 0 when the argument is no binary; when the library needs it in another
 * form, too: the call then begins anew, whatever init says. From init. */
static inline int tame_input_binary(struct tame_call *call, int arg, struct tame_input *input)
{
    size_t offset;
    ErlNifBinary binary;

    if (!tame_impl_in_state(call, input, sizeof *input, "input_outside_state", &offset) ||
        !tame_impl_is_argument(call, arg) || call->impl_inputs_len == TAME_MAX_INPUTS ||
        !enif_is_binary(call->env, call->argv[arg]))
        return 0;
    if (!tame_impl_inspect_in_place(call->env, call->argv[arg], &binary)) {
        (void)tame_impl_fail(call, TAME_IMPL_ALIGN, arg + 1, NULL, 0);
        return 0;
    }
    input->data = binary.data;
    input->size = binary.size;
    tame_impl_input_kept(call, arg, offset);
    return 1;
}

/* An iodata argument, read chunk by chunk: `data` and `size` are the chunk at hand. Nothing of
 * it is copied; `data` may be another in each step. */
struct tame_iodata {
    const unsigned char *data;
    size_t size;
    int impl_root;  /* the list that is left; the chunk's binary is in the root before it */
    int impl_chunk; /* there is no list, but one chunk, which is: */
};

enum tame_impl_chunk { TAME_IMPL_CHUNKS, TAME_IMPL_CHUNK_LEFT, TAME_IMPL_CHUNK_TAKEN };

/* Begins with argument `arg`, a binary or a list of binaries: the option `iodata` of -tame makes
 * such a list of any iodata that the caller gave. It takes the roots `root` and `root` + 1, so the
 * job says `terms`, else the call raises {tame, iodata_without_terms}. `input` must lie in the state. Returns 0 when the argument is neither; there is
 * no chunk yet. From init. */
static inline int tame_input_iodata(struct tame_call *call, int arg, int root,
                                    struct tame_iodata *input)
{
    size_t offset;

    if (!call->impl_terms) {
        (void)tame_impl_fault(call, "iodata_without_terms");
        return 0;
    }
    if (!tame_impl_in_state(call, input, sizeof *input, "input_outside_state", &offset) ||
        !tame_impl_is_argument(call, arg) || root < 0 || root + 1 >= TAME_MAX_ROOTS ||
        call->impl_inputs_len == TAME_MAX_INPUTS)
        return 0;
    input->impl_chunk =
        enif_is_binary(call->env, call->argv[arg]) ? TAME_IMPL_CHUNK_LEFT : TAME_IMPL_CHUNKS;
    if (input->impl_chunk == TAME_IMPL_CHUNKS && !enif_is_list(call->env, call->argv[arg]))
        return 0;
    call->root[root + 1] = call->argv[arg];
    input->impl_root = root + 1;
    tame_impl_input_kept(call, ~root, offset);
    return 1;
}

/* The next chunk: 1, and it is in `data` and `size`; 0, there is none; -1, the list holds something
 * else than binaries. From step. */
static inline int tame_iodata_next(struct tame_call *call, struct tame_iodata *input)
{
    ERL_NIF_TERM *left = &call->root[input->impl_root];
    ERL_NIF_TERM head, tail;
    ErlNifBinary binary;

    if (input->impl_chunk != TAME_IMPL_CHUNKS) {
        if (input->impl_chunk == TAME_IMPL_CHUNK_TAKEN)
            return 0;
        input->impl_chunk = TAME_IMPL_CHUNK_TAKEN;
        head = tail = *left;
    } else if (!enif_get_list_cell(call->env, *left, &head, &tail)) {
        return enif_is_empty_list(call->env, *left) ? 0 : -1;
    }
    if (!enif_inspect_binary(call->env, head, &binary))
        return -1;
    call->root[input->impl_root - 1] = head;
    *left = tail;
    input->data = binary.data;
    input->size = binary.size;
    return 1;
}

/* Looks all inputs up in the environment, arguments and roots that the call has now. Returns 0 when
 * one is not as long as the job has it: the job wrote its size, or the arguments are not those of
 * init. */
static inline int tame_impl_inputs(struct tame_call *call, const ERL_NIF_TERM argv[])
{
    for (int i = 0; i < call->impl_inputs_len; i++) {
        /* struct tame_iodata begins as struct tame_input does. */
        struct tame_input *input =
            (struct tame_input *)((char *)call->impl_state + call->impl_inputs[i].offset);
        const int arg = call->impl_inputs[i].arg;
        ErlNifBinary binary;

        if (arg < 0 && input->data == NULL) /* no chunk yet */
            continue;
        if (!enif_inspect_binary(call->env, arg < 0 ? call->root[~arg] : argv[arg], &binary) ||
            binary.size != input->size) {
            (void)tame_impl_fault(call, "input_written");
            return 0;
        }
        input->data = binary.data;
    }
    return 1;
}

#endif
