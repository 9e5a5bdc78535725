/* The NIFs of Tame.JobModel (test/support/job_model.ex): calls that go on until a test lets them end,
 * and a board that shows what has become of each. The board lies in the file that the environment
 * variable TAME_MODEL_BOARD names, so that it outlives the library. */
#include <tame.h>

#include "mapped.h"

/* As test/support/job_model.ex has them. */
#define TICKETS 65536
#define MAX_RUNNING 2
#define MAX_WAITING 3
#define GATES 24 /* each job in each placement */

/* Of one call. */
struct slot {
    uint32_t inits, cleanups;
    uint32_t runs;     /* it is between an init that went well and its cleanup */
    uint32_t released; /* by the test: it may end */
};

struct board {
    uint64_t inits, cleanups;
    uint64_t over;   /* a gate let in more than it may */
    uint64_t shared; /* a context was claimed while another call had it */
    uint64_t loads, unloads;
    struct slot slots[TICKETS];
};

static struct board *board;

__attribute__((constructor)) static void open_board(void)
{
    static struct board nowhere;

    board = mapped("TAME_MODEL_BOARD", &nowhere, sizeof nowhere);
}

static uint32_t add(uint32_t *counter, int count)
{
    return __atomic_add_fetch(counter, (uint32_t)count, __ATOMIC_SEQ_CST);
}

static void count(uint64_t *counter)
{
    __atomic_add_fetch(counter, 1, __ATOMIC_SEQ_CST);
}

struct thing {
    uint32_t holders;
};

static void thing_destroy(struct thing *thing)
{
    (void)thing;
}

TAME_RESOURCE(thing, struct thing, thing_destroy);

/* (Gate, Ticket, Thing | none, Work, Bytes) -> {Ticket, sum of the bytes}. Work: a number of
 * microseconds, or of parts; held: until it is released; fail: that, and then it fails; refuse: init
 * refuses it when it has all that it waits for. */
struct model {
    uint32_t *running; /* of this gate, in this instance; NULL: it does not run yet */
    struct slot *slot;
    struct thing *thing;
    struct tame_input bytes;
    unsigned ticket, left, part, sum;
    int gated, held, fails;
};

static int is_atom(ErlNifEnv *env, ERL_NIF_TERM term, const char *name)
{
    return enif_is_identical(term, enif_make_atom(env, name));
}

static enum tame_status begin(struct tame_call *call, struct model *model, int gated)
{
    unsigned gate;

    count(&board->inits);
    if (!enif_get_uint(call->env, call->argv[0], &gate) || gate >= GATES ||
        !enif_get_uint(call->env, call->argv[1], &model->ticket) || model->ticket >= TICKETS)
        return tame_badarg(call, 1, "must be a gate, and a ticket");
    model->slot = &board->slots[model->ticket];
    add(&model->slot->inits, 1);
    if (!is_atom(call->env, call->argv[2], "none")) {
        model->thing = tame_claim(call, 2, &thing);
        if (model->thing == NULL)
            return TAME_FAILED;
        if (add(&model->thing->holders, 1) > 1)
            count(&board->shared);
    }
    model->gated = gated;
    model->running = (uint32_t *)tame_data(call->env) + gate;
    if (add(model->running, 1) > MAX_RUNNING && gated)
        count(&board->over);
    add(&model->slot->runs, 1);
    model->fails = is_atom(call->env, call->argv[3], "fail");
    model->held = model->fails || is_atom(call->env, call->argv[3], "held");
    model->left = 1; /* of a held stream */
    if (is_atom(call->env, call->argv[3], "refuse"))
        return tame_badarg(call, 4, "is refused");
    if (!model->held && !enif_get_uint(call->env, call->argv[3], &model->left))
        return tame_badarg(call, 4, "must be a number");
    return tame_input_binary(call, 4, &model->bytes) ? tame_ok(call, TAME_UNKNOWN)
                                                     : tame_badarg(call, 5, "must be a binary");
}

static enum tame_status model_init(struct tame_call *call, void *state)
{
    return begin(call, state, 1);
}

static enum tame_status free_init(struct tame_call *call, void *state)
{
    return begin(call, state, 0);
}

static void model_cleanup(void *state)
{
    struct model *model = state;

    count(&board->cleanups); /* the slot's own comes last: then all the others are counted */
    if (model->thing != NULL)
        add(&model->thing->holders, -1);
    if (model->running != NULL) {
        add(model->running, -1);
        add(&model->slot->runs, -1);
    }
    if (model->slot != NULL)
        add(&model->slot->cleanups, 1);
}

/* Working beside the others, and not for as long as they do. */
static void pause_ns(uint64_t ns)
{
    const uint64_t until_ns = tame_now_ns() + ns;

    while (tame_now_ns() < until_ns) {
    }
}

static void add_bytes(struct model *model)
{
    for (size_t i = 0; i < model->bytes.size; i++)
        model->sum += model->bytes.data[i];
}

static enum tame_status model_step(struct tame_call *call, void *state, size_t units)
{
    struct model *model = state;

    if (model->held) {
        usleep(20); /* so that a test that waits leaves the machine to others */
        if (!__atomic_load_n(&model->slot->released, __ATOMIC_SEQ_CST))
            return TAME_MORE;
        if (model->fails)
            return tame_fail(call, enif_make_tuple2(call->env, enif_make_atom(call->env, "failed"),
                                                    enif_make_uint(call->env, model->ticket)));
    }
    for (; units > 0 && model->left > 0; units--, model->left--)
        pause_ns(1000);
    if (model->left > 0)
        return TAME_MORE;
    add_bytes(model);
    return TAME_DONE;
}

static ERL_NIF_TERM model_result(struct tame_call *call, void *state)
{
    struct model *model = state;

    return enif_make_tuple2(call->env, enif_make_uint(call->env, model->ticket),
                            enif_make_uint(call->env, model->sum));
}

static void await_release(const struct slot *slot)
{
    while (!__atomic_load_n(&slot->released, __ATOMIC_SEQ_CST))
        usleep(20);
}

/* The same as a stream: as many parts as Work says, {Ticket, Number, sum of the bytes}. A held one has
 * one part, and its step does not return before it is released. */
static enum tame_status parts_step(struct tame_call *call, void *state, size_t units)
{
    struct model *model = state;

    (void)units;
    if (model->part == model->left)
        return TAME_DONE;
    if (model->held)
        await_release(model->slot);
    pause_ns(5000);
    model->sum = 0;
    add_bytes(model);
    return tame_emit(call, enif_make_tuple3(call->env, enif_make_uint(call->env, model->ticket),
                                            enif_make_uint(call->env, ++model->part),
                                            enif_make_uint(call->env, model->sum)));
}

static const struct tame_job model = {.state_size = sizeof(struct model),
                                      .init = model_init,
                                      .step = model_step,
                                      .result = model_result,
                                      .cleanup = model_cleanup,
                                      .max_running = MAX_RUNNING,
                                      .max_waiting = MAX_WAITING};

static const struct tame_job free_model = {.state_size = sizeof(struct model),
                                           .init = free_init,
                                           .step = model_step,
                                           .result = model_result,
                                           .cleanup = model_cleanup};

static const struct tame_job parts = {.state_size = sizeof(struct model),
                                      .init = model_init,
                                      .step = parts_step,
                                      .result = model_result,
                                      .cleanup = model_cleanup,
                                      .max_running = MAX_RUNNING,
                                      .max_waiting = MAX_WAITING};

/* ---- what the test asks and says ---- */

static ERL_NIF_TERM new_thing(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    void *made = tame_resource_new(env, &thing);

    (void)argc;
    (void)argv;
    return made == NULL ? enif_make_badarg(env) : tame_resource_term(env, made);
}

static struct slot *slot_of(ErlNifEnv *env, ERL_NIF_TERM term)
{
    unsigned ticket;

    return enif_get_uint(env, term, &ticket) && ticket < TICKETS ? &board->slots[ticket] : NULL;
}

/* (Ticket) -> a thing, made when the ticket is released. */
static ERL_NIF_TERM late_thing(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct slot *slot = slot_of(env, argv[0]);

    if (slot == NULL)
        return enif_make_badarg(env);
    add(&slot->inits, 1);
    await_release(slot);
    return new_thing(env, argc - 1, argv + 1);
}

/* (Ticket) -> ok: a new call may have it. */
static ERL_NIF_TERM new_ticket(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct slot *slot = slot_of(env, argv[0]);

    (void)argc;
    if (slot == NULL)
        return enif_make_badarg(env);
    memset(slot, 0, sizeof *slot);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM release(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct slot *slot = slot_of(env, argv[0]);

    (void)argc;
    if (slot == NULL)
        return enif_make_badarg(env);
    __atomic_store_n(&slot->released, 1, __ATOMIC_SEQ_CST);
    return enif_make_atom(env, "ok");
}

/* (Ticket) -> {Inits, Cleanups, Runs} */
static ERL_NIF_TERM seen(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct slot *slot = slot_of(env, argv[0]);

    (void)argc;
    if (slot == NULL)
        return enif_make_badarg(env);
    return enif_make_tuple3(env,
                            enif_make_uint(env, __atomic_load_n(&slot->inits, __ATOMIC_SEQ_CST)),
                            enif_make_uint(env, __atomic_load_n(&slot->cleanups, __ATOMIC_SEQ_CST)),
                            enif_make_uint(env, __atomic_load_n(&slot->runs, __ATOMIC_SEQ_CST)));
}

/* () -> {Inits, Cleanups, Over, Shared} since the file was made */
static ERL_NIF_TERM totals(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
    return enif_make_tuple4(
        env, enif_make_uint64(env, __atomic_load_n(&board->inits, __ATOMIC_SEQ_CST)),
        enif_make_uint64(env, __atomic_load_n(&board->cleanups, __ATOMIC_SEQ_CST)),
        enif_make_uint64(env, __atomic_load_n(&board->over, __ATOMIC_SEQ_CST)),
        enif_make_uint64(env, __atomic_load_n(&board->shared, __ATOMIC_SEQ_CST)));
}

/* How many runs there are at each gate. */
static int load(ErlNifEnv *env, void **data, ERL_NIF_TERM load_info)
{
    const size_t size = sizeof(uint32_t) * GATES;

    (void)env;
    (void)load_info;
    *data = enif_alloc(size); /* owned by the instance, until unload */
    if (*data == NULL)
        return 1;
    memset(*data, 0, size);
    count(&board->loads);
    return 0;
}

static void unload(ErlNifEnv *env, void *data)
{
    (void)env;
    count(&board->unloads);
    memset(data, 0xff, sizeof(uint32_t) * GATES); /* a run that still counts there is over */
    enif_free(data);
}

static const struct tame_resource *const resources[] = {&thing, NULL};

#define EVERYWHERE(JOB, name, job)                              \
    JOB(name##_auto_nif, 5, job, TAME_AUTO)                     \
    JOB(name##_inline_nif, 5, job, TAME_INLINE)                 \
    JOB(name##_yielding_nif, 5, job, TAME_YIELDING)             \
    JOB(name##_dirty_cpu_nif, 5, job, TAME_DIRTY_CPU)           \
    JOB(name##_dirty_io_nif, 5, job, TAME_DIRTY_IO)             \
    JOB(name##_yielding_dirty_nif, 5, job, TAME_YIELDING_DIRTY) \
    JOB(name##_thread_nif, 5, job, TAME_THREAD)                 \
    JOB(name##_pool_nif, 5, job, TAME_POOL)

#define FUNCTIONS(JOB, NIF)                       \
    EVERYWHERE(JOB, gated, model)                 \
    EVERYWHERE(JOB, free, free_model)             \
    EVERYWHERE(JOB, parts, parts)                 \
    NIF(new_thing, 0, new_thing, TAME_INLINE)     \
    NIF(late_thing, 1, late_thing, TAME_DIRTY_IO) \
    NIF(new_ticket, 1, new_ticket, TAME_INLINE)   \
    NIF(release, 1, release, TAME_INLINE)         \
    NIF(seen, 1, seen, TAME_INLINE)               \
    NIF(totals, 0, totals, TAME_INLINE)

TAME_NIF_INIT(Elixir.Tame.JobModel, FUNCTIONS, .resources = resources,
              .upgrade = TAME_UPGRADE_KEEPS, .load = load, .unload = unload)
