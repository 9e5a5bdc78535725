/* tame/run.h - one call of a job from its start to its result.
 *
 * Part of tame.h. A run lives on the stack as long as the first slice; only when the job really
 * yields does it move into a resource, which every hop carries. So the VM owns a run that waits
 * for its next slice: when the caller is killed, or the library unloaded, the resource's
 * destructor ends the job.
 *
 * The steps may run on any thread. `result` always runs in the caller's own process and
 * environment, on a scheduler: much of what it may call needs one (docs/reference/threads.md). A
 * run that has been off the schedulers therefore ends in a second call of its NIF (tame/again.h).
 */
#ifndef TAME_RUN_H
#define TAME_RUN_H

#include <sched.h>

#include "charge.h"
#include "job.h"
#include "tell.h"

/* A row of the function table. */
struct tame_impl_row {
    const char *name;
    int arity;
    const struct tame_job *job;
    enum tame_placement placement;
    int index; /* of the row */
};

struct tame_impl_pool;
struct tame_impl_gate;
struct tame_impl_learned;

/* One loaded instance of the library; priv_data. Counted: the library holds it, and so does each
 * run, because a run's destructor may come after the unload. Nothing of it is in a static, because
 * an instance that is loaded anew shares those with the old one. */
struct tame_impl_instance {
    int references;
    ErlNifResourceType *run_type;
    ERL_NIF_TERM tag, module_name, type_name; /* atoms, which are valid everywhere */
    struct tame_impl_pool *pool;
    struct tame_impl_gate *gates;      /* one for each row */
    struct tame_impl_learned *learned; /* one for each row */
    const char *module;
    int halting;    /* atomic: the VM is about to end */
    uint32_t crowd; /* atomic: runs of auto that take turns on the regular schedulers */
};

/* What the calls of a row have shown; atomics. */
struct tame_impl_learned {
    uint64_t rate; /* units per ns, as the bits of a double; 0: not measured yet */
    uint64_t told_ns;
    uint32_t looks_failed; /* in a row: the answer was not there while the caller looked for it */
};

/* What has become of a run that its caller waits for. Who makes it THERE or gives it its TURN,
 * gives it away; who makes it TAKEN (the caller, or what learns of the caller's death) owns it
 * then. */
enum tame_impl_answer {
    TAME_IMPL_BY_MESSAGE, /* on a thread, or at the gate; the caller waits for a message */
    TAME_IMPL_LOOKED_FOR, /* on a thread; the caller looks for it, and needs no message */
    TAME_IMPL_THERE,      /* all steps are done; result is not made */
    TAME_IMPL_TURN,       /* has its place at the gate */
    TAME_IMPL_TAKEN
};

struct tame_impl_run {
    const struct tame_impl_row *row;
    struct tame_impl_instance *instance;
    struct tame_call call;
    uint64_t done;       /* units asked of step so far */
    double units_per_ns; /* of the last step; 0: not measured yet */
    double best_slice;   /* units per ns of the fastest slice */
    uint32_t slices;
    uint64_t owed_ns; /* used, but not yet charged to the caller */
    uint64_t told_ns; /* when its progress was told; at first when it began */
    uint64_t way_ns;  /* off the regular schedulers: when to give way next */
    int initialised;  /* cleanup is due */
    int admitted;     /* holds a place at its row's gate */
    int in_crowd;     /* counted in the instance's crowd */
    int stop;         /* atomic: set when nobody wants the result any more */

    /* Off the schedulers only; owned by the run. */
    ErlNifEnv *own_env;
    ErlNifPid caller;
    ErlNifMonitor monitor;
    ERL_NIF_TERM reference; /* in own_env, where the inputs are as well */
    int answer;             /* atomic: enum tame_impl_answer */
    ErlNifTid tid;
    struct tame_impl_run *next; /* in a queue */
};

/* Runs in the order in which they came. */
struct tame_impl_queue {
    struct tame_impl_run *head, *tail;
    uint32_t len;
};

static inline void tame_impl_queue_push(struct tame_impl_queue *queue, struct tame_impl_run *run)
{
    run->next = NULL;
    if (queue->head == NULL)
        queue->head = run;
    else
        queue->tail->next = run;
    queue->tail = run;
    __atomic_store_n(&queue->len, queue->len + 1,
                     __ATOMIC_RELAXED); /* read without the lock, too */
}

static inline struct tame_impl_run *tame_impl_queue_pop(struct tame_impl_queue *queue)
{
    struct tame_impl_run *run = queue->head;

    if (run != NULL) {
        queue->head = run->next;
        __atomic_store_n(&queue->len, queue->len - 1, __ATOMIC_RELAXED);
    }
    return run;
}

/* Takes a run out from wherever it is. Returns 0 when it is not there. */
static inline int tame_impl_queue_remove(struct tame_impl_queue *queue, struct tame_impl_run *run)
{
    struct tame_impl_run *before = NULL;

    for (struct tame_impl_run *at = queue->head; at != NULL; before = at, at = at->next) {
        if (at != run)
            continue;
        if (before == NULL)
            queue->head = run->next;
        else
            before->next = run->next;
        if (queue->tail == run)
            queue->tail = before;
        __atomic_store_n(&queue->len, queue->len - 1, __ATOMIC_RELAXED);
        return 1;
    }
    return 0;
}

/* A state larger than this is allocated before the first slice. */
#define TAME_IMPL_STACK_STATE 1024

static inline void tame_impl_gates_close(struct tame_impl_instance *instance);
static inline void tame_impl_gate_leave(ErlNifEnv *env, struct tame_impl_run *run);
static inline void tame_impl_gate_free(ErlNifEnv *env, struct tame_impl_instance *instance,
                                       const struct tame_impl_row *row);
static inline void tame_impl_gate_forget(struct tame_impl_run *run);
static inline void tame_impl_pool_forget(struct tame_impl_run *run);

static inline struct tame_impl_instance *
tame_impl_instance_keep(struct tame_impl_instance *instance)
{
    __atomic_fetch_add(&instance->references, 1, __ATOMIC_RELAXED);
    return instance;
}

static inline void tame_impl_instance_release(struct tame_impl_instance *instance)
{
    if (__atomic_sub_fetch(&instance->references, 1, __ATOMIC_ACQ_REL) == 0) {
        tame_impl_gates_close(instance);
        if (instance->learned != NULL)
            enif_free(instance->learned);
        enif_free(instance);
    }
}

static inline double tame_impl_rate(const struct tame_impl_run *run)
{
    uint64_t bits =
        __atomic_load_n(&run->instance->learned[run->row->index].rate, __ATOMIC_RELAXED);
    double rate;

    memcpy(&rate, &bits, sizeof rate);
    return rate;
}

static inline void tame_impl_rate_store(const struct tame_impl_run *run)
{
    uint64_t bits;

    memcpy(&bits, &run->units_per_ns, sizeof bits);
    __atomic_store_n(&run->instance->learned[run->row->index].rate, bits, __ATOMIC_RELAXED);
}

static inline void tame_impl_crowd_leave(struct tame_impl_run *run)
{
    if (run->in_crowd)
        __atomic_fetch_sub(&run->instance->crowd, 1, __ATOMIC_RELAXED);
    run->in_crowd = 0;
}

/* The one place where cleanup is called, and where the run's place becomes free. `env` is that of
 * the NIF or the callback that this is called from; NULL on a thread of ours. */
static inline void tame_impl_cleanup(ErlNifEnv *env, struct tame_impl_run *run)
{
    if (run->initialised && run->row->job->cleanup != NULL)
        run->row->job->cleanup(run->call.impl_state);
    run->initialised = 0;
    tame_impl_crowd_leave(run);
    if (run->admitted)
        tame_impl_gate_leave(env, run);
    run->admitted = 0;
}

/* Ends a run that has an environment of its own, whose result nobody wants. */
static inline void tame_impl_drop(ErlNifEnv *env, struct tame_impl_run *run)
{
    tame_impl_cleanup(env, run);
    if (run->own_env != NULL)
        enif_free_env(run->own_env);
    run->own_env = NULL;
}

/* The run as it begins; its state is `state`, zeroed. */
static inline void tame_impl_run_begin(struct tame_impl_run *run, const struct tame_impl_row *row,
                                       ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                       void *state, uint64_t start_ns)
{
    memset(run, 0, sizeof *run);
    run->told_ns = start_ns;
    run->row = row;
    run->instance = (struct tame_impl_instance *)enif_priv_data(env);
    run->call.env = env;
    run->call.argc = argc;
    run->call.argv = argv;
    run->call.impl_state = state;
    run->call.impl_state_size = row->job->state_size;
    run->units_per_ns = tame_impl_rate(run);
}

/* What enif_alloc and enif_alloc_resource give is aligned to 8 bytes; a state may hold anything. */
#define TAME_IMPL_ALIGN 16

static inline void *tame_impl_align(void *memory)
{
    return (void *)(((uintptr_t)memory + TAME_IMPL_ALIGN - 1) & ~(uintptr_t)(TAME_IMPL_ALIGN - 1));
}

/* A resource that holds the run and its state. The one on the stack is spent: the resource owns
 * what it owned. NULL when there is no memory. */
static inline struct tame_impl_run *tame_impl_run_move(struct tame_impl_run *from)
{
    const size_t state_size = from->call.impl_state_size;
    struct tame_impl_run *run = (struct tame_impl_run *)enif_alloc_resource(
        from->instance->run_type, sizeof *from + TAME_IMPL_ALIGN + state_size);

    if (run == NULL)
        return NULL;
    *run = *from;
    run->call.impl_state = tame_impl_align(run + 1); /* the state follows the run */
    memcpy(run->call.impl_state, from->call.impl_state, state_size);
    tame_impl_instance_keep(run->instance);
    return run;
}

/* Looks the inputs up anew, in the environment and arguments that the call has now. An input that
 * is not aligned to bytes is copied by every look, whole; the second pointer gives it away. Such an
 * argument is replaced in `argv` by a copy that is aligned, once. Returns 0 without memory. */
static inline int tame_impl_inputs(struct tame_impl_run *run, ERL_NIF_TERM argv[], int may_copy)
{
    struct tame_call *call = &run->call;

    for (int i = 0; i < call->impl_inputs_len; i++) {
        struct tame_input *input =
            (struct tame_input *)((char *)call->impl_state + call->impl_inputs[i].offset);
        const int arg = call->impl_inputs[i].arg;
        ErlNifBinary binary, again;

        if (!enif_inspect_binary(call->env, argv[arg], &binary))
            return 0;
        if (may_copy && enif_inspect_binary(call->env, argv[arg], &again) &&
            again.data != binary.data) {
            unsigned char *copy = enif_make_new_binary(call->env, binary.size, &argv[arg]);

            memcpy(copy, binary.data, binary.size);
            binary.data = copy;
        }
        input->data = binary.data;
    }
    return 1;
}

static inline ERL_NIF_TERM tame_impl_error(ErlNifEnv *env, const char *reason)
{
    return enif_make_tuple3(
        env, enif_make_atom(env, "$tame"), enif_make_atom(env, "error"),
        enif_make_tuple2(env, enif_make_atom(env, "tame"), enif_make_atom(env, reason)));
}

/* Runs init. Returns 1, or 0 with the error to return in call.impl_error. */
static inline int tame_impl_init(struct tame_impl_run *run)
{
    struct tame_call *call = &run->call;

    run->initialised = 1;
    if (run->row->job->init(call, call->impl_state) == TAME_INIT_OK)
        return 1;
    tame_impl_cleanup(call->env, run);
    /* No term at all would let the caller wait for ever. With an exception it is what a NIF
     * returns. */
    if (call->impl_error == 0 && !enif_has_pending_exception(call->env, NULL))
        call->impl_error = tame_impl_error(call->env, "init_failed");
    return 0;
}

static inline int tame_impl_turn(struct tame_impl_run *run, enum tame_impl_answer from,
                                 enum tame_impl_answer to)
{
    int expected = from;

    return __atomic_compare_exchange_n(&run->answer, &expected, to, 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

/* Nobody wants the result any more, or the VM is about to end: then no slice follows. */
static inline int tame_impl_stopped(const struct tame_impl_run *run)
{
    return __atomic_load_n(&run->stop, __ATOMIC_RELAXED) ||
           __atomic_load_n(&run->instance->halting, __ATOMIC_RELAXED);
}

/* After a slice that ended at now_ns: tells what is due. A slice shorter than a look says too
 * little of the rate. */
static inline void tame_impl_tell_slice(struct tame_impl_run *run, uint64_t now_ns,
                                        uint64_t used_ns)
{
    uint64_t *rate_told_ns = &run->instance->learned[run->row->index].told_ns;
    ErlNifEnv *env = run->own_env == NULL ? run->call.env : NULL; /* NULL: on a thread of ours */

    /* Two threads may both find it due; then it is told twice. */
    if (used_ns >= TAME_LOOK_NS && run->units_per_ns > 0 &&
        now_ns - __atomic_load_n(rate_told_ns, __ATOMIC_RELAXED) >= TAME_IMPL_TELL_NS) {
        __atomic_store_n(rate_told_ns, now_ns, __ATOMIC_RELAXED);
        tame_impl_tell_rate(env, run->instance->module, run->row->name, run->row->arity,
                            run->units_per_ns);
    }
    if (now_ns - run->told_ns >= TAME_IMPL_TELL_NS) {
        const uint64_t total = run->call.impl_total;
        ErlNifPid self;

        run->told_ns = now_ns;
        tame_impl_tell_progress(env, env != NULL ? enif_self(env, &self) : &run->caller,
                                total > 0 && run->done > total ? total : run->done, total);
    }
}

/* One slice, from start_ns on. */
static inline struct tame_slice tame_impl_slice(struct tame_impl_run *run, uint64_t start_ns,
                                                uint64_t slice_ns)
{
    struct tame_slice slice = tame_slice_run(run->row->job->step, run->call.impl_state, start_ns,
                                             slice_ns, run->units_per_ns, &run->stop, tame_now_ns);

    run->done += slice.units;
    run->slices++;
    if (slice.used_ns > 0 && (double)slice.units / (double)slice.used_ns > run->best_slice)
        run->best_slice = (double)slice.units / (double)slice.used_ns;
    if (slice.units_per_ns != run->units_per_ns) {
        run->units_per_ns = slice.units_per_ns;
        tame_impl_rate_store(run);
    }
    tame_impl_tell_slice(run, start_ns + slice.used_ns, slice.used_ns);
    return slice;
}

/* On a scheduler of the caller's, with call.env and call.argv as they are there. */
static inline ERL_NIF_TERM tame_impl_result(struct tame_impl_run *run)
{
    ERL_NIF_TERM result = run->row->job->result(&run->call, run->call.impl_state);

    tame_impl_cleanup(run->call.env, run);
    return result;
}

static inline uint64_t tame_impl_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->slice_us;
    return (us > 0 ? us : TAME_SLICE_US) * UINT64_C(1000);
}

static inline uint64_t tame_impl_dirty_slice_ns(const struct tame_impl_run *run)
{
    const uint32_t us = run->row->job->dirty_slice_us;
    return (us > 0 ? us : TAME_DIRTY_SLICE_US) * UINT64_C(1000);
}

static inline ERL_NIF_TERM tame_impl_raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* ---- on a regular scheduler ------------------------------------------------------------- */

/* (Result, OwedNs, Hold) -> Result, after as many turns as it takes to pay for a call that took
 * longer than its timeslice: the neighbours get theirs meanwhile. */
static inline ERL_NIF_TERM tame_impl_settle(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifUInt64 owed_ns;

    if (!enif_get_uint64(env, argv[1], &owed_ns))
        return enif_make_badarg(env);
    owed_ns = tame_charge(env, owed_ns);
    if (owed_ns == 0)
        return argv[0];

    const ERL_NIF_TERM next[] = {argv[0], enif_make_uint64(env, owed_ns), argv[2]};
    return enif_schedule_nif(env, "tame_settle", 0, tame_impl_settle, argc, next);
}

/* The result, once it is paid for. The hops carry a run that does nothing but hold the library: a
 * purge can miss a process that is parked in a hop, and the VM keeps only a library that has
 * resources. */
static inline ERL_NIF_TERM tame_impl_pay(ErlNifEnv *env, ERL_NIF_TERM result, uint64_t used_ns)
{
    const uint64_t owed_ns = tame_charge(env, used_ns);
    struct tame_impl_instance *instance;
    struct tame_impl_run *hold;
    ERL_NIF_TERM next[3];

    if (owed_ns == 0 || enif_has_pending_exception(env, NULL))
        return result;
    instance = (struct tame_impl_instance *)enif_priv_data(env);
    hold = (struct tame_impl_run *)enif_alloc_resource(instance->run_type, sizeof *hold);
    if (hold == NULL)
        return result;
    memset(hold, 0, sizeof *hold);
    hold->instance = tame_impl_instance_keep(instance);
    next[0] = result;
    next[1] = enif_make_uint64(env, owed_ns);
    next[2] = enif_make_resource(env, hold);
    enif_release_resource(hold); /* the term owns it now */
    return enif_schedule_nif(env, "tame_settle", 0, tame_impl_settle, 3, next);
}

static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);
static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[]);

/* Leaves the scheduler to others and comes back for the next slice: argv is the run's resource and
 * the caller's arguments. */
static inline ERL_NIF_TERM tame_impl_schedule(ErlNifEnv *env, struct tame_impl_run *run, int argc,
                                              const ERL_NIF_TERM argv[])
{
    if (run->row->placement == TAME_YIELDING_DIRTY)
        return enif_schedule_nif(env, run->row->name, ERL_NIF_DIRTY_JOB_CPU_BOUND,
                                 tame_impl_dirty_hop, argc, argv);
    /* A hop that has not used up its timeslice would stay. */
    (void)enif_consume_timeslice(env, 100);
    return enif_schedule_nif(env, run->row->name, 0, tame_impl_hop, argc, argv);
}

/* Moves the run off the stack and schedules its next slice. */
static inline ERL_NIF_TERM tame_impl_park(ErlNifEnv *env, struct tame_impl_run *on_stack)
{
    const int argc = on_stack->call.argc;
    struct tame_impl_run *run = tame_impl_run_move(on_stack);
    ERL_NIF_TERM argv[TAME_MAX_ARGS + 1];

    if (run == NULL) {
        tame_impl_cleanup(env, on_stack);
        return tame_impl_raise_enomem(env);
    }
    if (run->row->placement == TAME_AUTO) {
        run->in_crowd = 1;
        __atomic_fetch_add(&run->instance->crowd, 1, __ATOMIC_RELAXED);
    }
    argv[0] = enif_make_resource(env, run);
    enif_release_resource(run); /* the term owns it now */
    memcpy(argv + 1, run->call.argv, sizeof *argv * (size_t)argc);
    if (!tame_impl_inputs(run, argv + 1, 1))
        return tame_impl_raise_enomem(env);
    return tame_impl_schedule(env, run, argc + 1, argv);
}

/* What is left takes longer than this: `auto` moves it off the regular schedulers. */
#define TAME_IMPL_MOVE_NS UINT64_C(100000000)

/* So many slices are looked at before that. The fastest of them counts: one in which the thread
 * lost its core looks slow, and says nothing of the job. */
#define TAME_IMPL_MOVE_SLICES 4

static inline int tame_impl_takes_long(const struct tame_impl_run *run)
{
    return run->row->placement == TAME_AUTO && run->slices >= TAME_IMPL_MOVE_SLICES &&
           run->call.impl_total > run->done &&
           (double)(run->call.impl_total - run->done) > run->best_slice * TAME_IMPL_MOVE_NS;
}

/* So many runs of auto for each scheduler take turns there; their slices add up to 10 ms, for which
 * everybody else waits. One that comes on top gets a tenth of a slice, which is enough for a short
 * one, and goes on in the pool; it goes there at once when the rate of its row says that a tenth is
 * not enough. */
#define TAME_IMPL_CROWD 100
#define TAME_IMPL_CROWD_SLICES 10

static inline int tame_impl_pool_size(const struct tame_impl_instance *instance);

static inline int tame_impl_crowded(const struct tame_impl_run *run)
{
    return run->row->placement == TAME_AUTO && run->call.impl_total > 0 &&
           __atomic_load_n(&run->instance->crowd, __ATOMIC_RELAXED) >=
               TAME_IMPL_CROWD * (uint32_t)tame_impl_pool_size(run->instance);
}

/* Whether all of the run is known to take longer; of a row that was never measured nothing is. */
static inline int tame_impl_exceeds(const struct tame_impl_run *run, uint64_t ns)
{
    return run->units_per_ns > 0 && (double)run->call.impl_total > run->units_per_ns * (double)ns;
}

static inline ERL_NIF_TERM tame_impl_submit(ErlNifEnv *env, struct tame_impl_run *run);
static inline ERL_NIF_TERM tame_impl_gate_enter(struct tame_impl_run *run);

/* The run that argv[0] holds, ready for a slice here; NULL when it is none. */
static inline struct tame_impl_run *tame_impl_resume(ErlNifEnv *env, int argc,
                                                     const ERL_NIF_TERM argv[])
{
    const struct tame_impl_instance *instance =
        (const struct tame_impl_instance *)enif_priv_data(env);
    void *object;
    struct tame_impl_run *run;

    if (!enif_get_resource(env, argv[0], instance->run_type, &object))
        return NULL;
    run = (struct tame_impl_run *)object;
    run->call.env = env;
    run->call.argc = argc - 1;
    run->call.argv = argv + 1;
    return tame_impl_inputs(run, (ERL_NIF_TERM *)(argv + 1), 0) ? run : NULL;
}

/* A slice on a regular scheduler. */
static inline ERL_NIF_TERM tame_impl_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run *run = tame_impl_resume(env, argc, argv);
    struct tame_slice slice;

    if (run == NULL)
        return enif_make_badarg(env);
    slice = tame_impl_slice(run, start_ns, tame_impl_slice_ns(run));
    if (slice.status == TAME_DONE) {
        const uint64_t owed_ns = run->owed_ns;
        const ERL_NIF_TERM result = tame_impl_result(run);

        return tame_impl_pay(env, result, owed_ns + tame_now_ns() - start_ns);
    }
    run->owed_ns = tame_charge(env, run->owed_ns + slice.used_ns);
    if (tame_impl_takes_long(run)) {
        tame_impl_crowd_leave(run);
        enif_keep_resource(run); /* for the pool; the caller's term goes with its frame */
        return tame_impl_submit(env, run);
    }
    return tame_impl_schedule(env, run, argc, argv);
}

/* ---- off the regular schedulers ------------------------------------------------------------- */

/* How often a thread that works beside the schedulers lets them by.
 *
 * The operating system shares a core among threads in turns of some milliseconds. A regular
 * scheduler with nothing to do spins a while and yields its turn with each round, and Linux lets
 * it wait for whole turns of ours each time: neighbours woke 130 ms late beside work in the pool
 * (Linux 6.18), and 10 ms since that yields its turns too. */
#define TAME_IMPL_WAY_NS 100000

/* The core to others, if it is time. What they take counts: so long we then keep it, so that work
 * here goes on at half speed at least where all schedulers are busy. */
static inline uint64_t tame_impl_give_way(struct tame_impl_run *run)
{
    const uint64_t now_ns = tame_now_ns();
    uint64_t back_ns, away_ns;

    if (now_ns < run->way_ns)
        return now_ns;
    (void)sched_yield();
    back_ns = tame_now_ns();
    away_ns = back_ns - now_ns;
    run->way_ns = back_ns + (away_ns > TAME_IMPL_WAY_NS ? away_ns : TAME_IMPL_WAY_NS);
    return back_ns;
}

/* A long slice from start_ns on, in pieces after each of which it gives way. Ends sooner when the
 * run is stopped. */
static inline enum tame_status tame_impl_long_slice(struct tame_impl_run *run, uint64_t start_ns)
{
    const uint64_t slice_ns = tame_impl_dirty_slice_ns(run);
    const uint64_t piece_ns = slice_ns < TAME_IMPL_WAY_NS ? slice_ns : TAME_IMPL_WAY_NS;
    uint64_t now_ns = start_ns;

    do {
        if (tame_impl_slice(run, now_ns, piece_ns).status == TAME_DONE)
            return TAME_DONE;
        now_ns = tame_impl_give_way(run);
    } while (now_ns - start_ns < slice_ns && !tame_impl_stopped(run));
    return TAME_MORE;
}

/* ---- on a dirty scheduler ----------------------------------------------------------------- */

/* One slice on a dirty CPU scheduler; other dirty work gets its turn after it. */
static inline ERL_NIF_TERM tame_impl_dirty_hop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run *run = tame_impl_resume(env, argc, argv);

    if (run == NULL)
        return enif_make_badarg(env);
    if (tame_impl_long_slice(run, start_ns) == TAME_DONE)
        return tame_impl_result(run);
    return tame_impl_schedule(env, run, argc, argv);
}

/* All slices in one go. Between them the caller may turn out to be dead, or the VM about to end:
 * then the result is dropped. */
static inline ERL_NIF_TERM tame_impl_dirty(ErlNifEnv *env, struct tame_impl_run *run)
{
    while (tame_impl_long_slice(run, tame_now_ns()) != TAME_DONE) {
        if (!enif_is_current_process_alive(env) || tame_impl_stopped(run)) {
            tame_impl_cleanup(env, run);
            return enif_make_atom(env, "killed");
        }
    }
    return tame_impl_result(run);
}

/* ---- off the schedulers ------------------------------------------------------------------- */

/* Moves the run off the stack and gives it to a thread. */
static inline ERL_NIF_TERM tame_impl_move_off(ErlNifEnv *env, struct tame_impl_run *on_stack)
{
    struct tame_impl_run *run = tame_impl_run_move(on_stack);

    if (run == NULL) {
        tame_impl_cleanup(env, on_stack);
        return tame_impl_raise_enomem(env);
    }
    return tame_impl_submit(env, run);
}

/* ---- the entry of every NIF --------------------------------------------------------------- */

static inline ERL_NIF_TERM tame_impl_begin(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                           const struct tame_impl_row *row, void *state,
                                           int admitted)
{
    const uint64_t start_ns = tame_now_ns();
    struct tame_impl_run run;
    struct tame_slice slice;
    ERL_NIF_TERM result;
    int crowded = 0;

    tame_impl_run_begin(&run, row, env, argc, argv, state, start_ns);
    run.admitted = admitted;
    if (row->job->max_running > 0 && !admitted) {
        const ERL_NIF_TERM refused = tame_impl_gate_enter(&run);

        if (!run.admitted)
            return refused;
    }
    if (!tame_impl_init(&run))
        return run.call.impl_error;

    switch (row->placement) {
    case TAME_DIRTY_CPU:
    case TAME_DIRTY_IO:
        return tame_impl_dirty(env, &run);
    case TAME_YIELDING_DIRTY:
        (void)tame_charge(env, tame_now_ns() - start_ns);
        return tame_impl_park(env, &run);
    case TAME_THREAD:
    case TAME_POOL:
        (void)tame_charge(env, tame_now_ns() - start_ns);
        return tame_impl_move_off(env, &run);
    case TAME_INLINE:
        slice = tame_impl_slice(&run, start_ns, UINT64_MAX / 2);
        break;
    case TAME_AUTO:
        crowded = tame_impl_crowded(&run);
        if (crowded && tame_impl_exceeds(&run, tame_impl_slice_ns(&run) / TAME_IMPL_CROWD_SLICES)) {
            (void)tame_charge(env, tame_now_ns() - start_ns);
            return tame_impl_move_off(env, &run);
        }
        slice = tame_impl_slice(&run, start_ns,
                                tame_impl_slice_ns(&run) / (crowded ? TAME_IMPL_CROWD_SLICES : 1));
        break;
    case TAME_YIELDING:
    default:
        slice = tame_impl_slice(&run, start_ns, tame_impl_slice_ns(&run));
    }
    if (slice.status == TAME_DONE) {
        result = tame_impl_result(&run);
        return tame_impl_pay(env, result, tame_now_ns() - start_ns);
    }
    run.owed_ns = tame_charge(env, slice.used_ns);
    return crowded ? tame_impl_move_off(env, &run) : tame_impl_park(env, &run);
}

/* A call with these arguments; `admitted`: it has its place at the gate already. */
static inline ERL_NIF_TERM tame_impl_call(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                          const struct tame_impl_row *row, int admitted)
{
    const size_t size = row->job->state_size;

    if (size <= TAME_IMPL_STACK_STATE) {
        union {
            long double align;
            void *pointer;
            unsigned char bytes[TAME_IMPL_STACK_STATE];
        } state;

        memset(state.bytes, 0, size);
        return tame_impl_begin(env, argc, argv, row, state.bytes, admitted);
    } else {
        /* Freed below: a run that goes on has moved out of it. */
        void *memory = enif_alloc(size + TAME_IMPL_ALIGN);
        ERL_NIF_TERM term;

        if (memory == NULL) {
            if (admitted)
                tame_impl_gate_free(env, (struct tame_impl_instance *)enif_priv_data(env), row);
            return tame_impl_raise_enomem(env);
        }
        memset(memory, 0, size + TAME_IMPL_ALIGN);
        term = tame_impl_begin(env, argc, argv, row, tame_impl_align(memory), admitted);
        enif_free(memory);
        return term;
    }
}

/* ---- the resource -------------------------------------------------------------------------- */

static inline void tame_impl_run_destroy(ErlNifEnv *env, void *object)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    tame_impl_drop(env, run);
    tame_impl_instance_release(run->instance);
}

/* The caller of a run that is off the schedulers, or waits for them or at the gate, is dead. A run
 * whose steps are done ends here, because somebody else may still hold the term that names it. */
static inline void tame_impl_run_down(ErlNifEnv *env, void *object, ErlNifPid *pid,
                                      ErlNifMonitor *monitor)
{
    struct tame_impl_run *run = (struct tame_impl_run *)object;

    (void)pid;
    (void)monitor;
    /* The thread makes it THERE and then reads stop; this writes stop and then looks whether it is
     * THERE. In one order for all, at least one of them sees what the other did. */
    __atomic_store_n(&run->stop, 1, __ATOMIC_SEQ_CST);
    tame_impl_gate_forget(run);
    tame_impl_pool_forget(run);
    if (tame_impl_turn(run, TAME_IMPL_THERE, TAME_IMPL_TAKEN) ||
        tame_impl_turn(run, TAME_IMPL_TURN, TAME_IMPL_TAKEN))
        tame_impl_drop(env, run);
}

#endif
