/* The NIFs of Tame.JobOutputs (test/support/job_outputs.ex): outputs that grow, or are made at once and
 * shrink, and what has become of each call. */
#include <tame.h>

#include "placements.h"

#define UNIT_BYTES ((size_t)64 * 1024)

/* Repeats every 251 bytes, a prime, so that no size of a piece hides a shift. */
#define PERIOD 251
static unsigned char pattern[PERIOD + UNIT_BYTES];

__attribute__((constructor)) static void make_pattern(void)
{
    for (size_t i = 0; i < sizeof pattern; i++)
        pattern[i] = (unsigned char)(i % PERIOD);
}

/* Calls whose steps were done, that had a result, and that were cleaned up. */
static int stepped, resulted, cleaned;

/* (Bytes, Made, Us) -> Bytes bytes, of an output that was made with room for Made; 0: of one that
 * grows. The steps last Us microseconds at least. */
struct grow {
    uint64_t bytes, made, until_ns;
    struct tame_output out;
    struct tame_output none; /* one that nobody uses is no trouble */
};

static enum tame_status grow_init(struct tame_call *call, void *state)
{
    struct grow *grow = state;
    ErlNifUInt64 bytes, made, us;

    if (!enif_get_uint64(call->env, call->argv[0], &bytes) ||
        !enif_get_uint64(call->env, call->argv[1], &made) ||
        !enif_get_uint64(call->env, call->argv[2], &us))
        return tame_badarg(call, 1, "must be a number, as the others");
    grow->bytes = bytes;
    grow->made = made;
    grow->until_ns = us == 0 ? 0 : tame_now_ns() + us * 1000;
    if (made > 0) {
        if (!tame_output_new(&grow->out, made))
            return tame_enomem(call);
        tame_output_shrink(call, &grow->out, 0);
    }
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status grow_step(struct tame_call *call, void *state, size_t units)
{
    struct grow *grow = state;

    for (; units > 0; units--) {
        const uint64_t left = grow->bytes - grow->out.size;
        const size_t count = left < UNIT_BYTES ? (size_t)left : UNIT_BYTES;

        if (count > 0 &&
            !tame_output_append(call, &grow->out, pattern + grow->out.size % PERIOD, count))
            return tame_enomem(call);
        if (grow->out.size == grow->bytes && tame_now_ns() >= grow->until_ns) {
            __atomic_add_fetch(&stepped, 1, __ATOMIC_SEQ_CST);
            return TAME_DONE;
        }
    }
    return TAME_MORE;
}

static ERL_NIF_TERM grow_result(struct tame_call *call, void *state)
{
    struct grow *grow = state;

    __atomic_add_fetch(&resulted, 1, __ATOMIC_SEQ_CST);
    if (grow->out.size > 0 && grow->out.data == NULL)
        return tame_fail(call, enif_make_atom(call->env, "not_gathered")), (ERL_NIF_TERM)0;
    return enif_make_tuple2(call->env, tame_output_term(call, &grow->out),
                            tame_output_term(call, &grow->none));
}

static void grow_cleanup(void *state)
{
    tame_output_free(&((struct grow *)state)->out);
    tame_output_free(&((struct grow *)state)->none);
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static const struct tame_job grow = {.state_size = sizeof(struct grow),
                                     .init = grow_init,
                                     .step = grow_step,
                                     .result = grow_result,
                                     .cleanup = grow_cleanup};

/* (Parts, Bytes, Cut): emits parts of that many bytes, each of an output that grew: gathered in steps
 * where Cut is 1, and else by tame_output_term. */
struct parts {
    unsigned left, bytes, cut;
    struct tame_output out;
};

static enum tame_status parts_init(struct tame_call *call, void *state)
{
    struct parts *parts = state;

    if (!enif_get_uint(call->env, call->argv[0], &parts->left) ||
        !enif_get_uint(call->env, call->argv[1], &parts->bytes) ||
        !enif_get_uint(call->env, call->argv[2], &parts->cut))
        return tame_badarg(call, 1, "must be a number, as the others");
    return tame_ok(call, TAME_UNKNOWN);
}

static enum tame_status parts_step(struct tame_call *call, void *state, size_t units)
{
    struct parts *parts = state;
    enum tame_status status;

    for (; parts->left > 0 && units > 0 && parts->out.size < parts->bytes; units--) {
        const size_t left = parts->bytes - parts->out.size;

        if (!tame_output_append(call, &parts->out, pattern + parts->out.size % PERIOD,
                                left < 4096 ? left : 4096))
            return tame_enomem(call);
    }
    if (parts->left == 0)
        return TAME_DONE;
    if (parts->out.size < parts->bytes)
        return TAME_MORE;
    if (parts->cut) {
        status = tame_output_gather(call, &parts->out, &units);
        if (status != TAME_DONE)
            return status;
    }
    parts->left--;
    return tame_emit(call, tame_output_term(call, &parts->out));
}

static ERL_NIF_TERM parts_result(struct tame_call *call, void *state)
{
    (void)state;
    return enif_make_atom(call->env, "end");
}

static void parts_cleanup(void *state)
{
    tame_output_free(&((struct parts *)state)->out);
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}

static const struct tame_job parts = {.state_size = sizeof(struct parts),
                                      .init = parts_init,
                                      .step = parts_step,
                                      .result = parts_result,
                                      .cleanup = parts_cleanup};

/* (): an output that is no part of the state. */
static enum tame_status outside_init(struct tame_call *call, void *state)
{
    struct tame_output outside;

    (void)state;
    memset(&outside, 0, sizeof outside);
    return tame_output_append(call, &outside, "a", 1) ? tame_ok(call, 1) : tame_enomem(call);
}

static enum tame_status outside_step(struct tame_call *call, void *state, size_t units)
{
    (void)call;
    (void)state;
    (void)units;
    return TAME_DONE;
}

static const struct tame_job outside = {
    .state_size = 1, .init = outside_init, .step = outside_step, .result = parts_result};

/* () -> {Stepped, Resulted, Cleaned} */
static ERL_NIF_TERM counts(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_tuple3(env, enif_make_int(env, __atomic_load_n(&stepped, __ATOMIC_SEQ_CST)),
                            enif_make_int(env, __atomic_load_n(&resulted, __ATOMIC_SEQ_CST)),
                            enif_make_int(env, __atomic_load_n(&cleaned, __ATOMIC_SEQ_CST)));
}

#define FUNCTIONS(JOB, NIF)                     \
    PLACEMENTS(JOB, 3, grow)                    \
    JOB(parts_nif, 3, parts, TAME_YIELDING)     \
    JOB(parts_in_pool_nif, 3, parts, TAME_POOL) \
    JOB(outside_nif, 0, outside, TAME_INLINE)   \
    NIF(counts, 0, counts, TAME_INLINE)

TAME_NIF_INIT(Elixir.Tame.JobOutputs, FUNCTIONS)
