/* tame/run.h - one call of a job, from its start to its result: what it is, and where it lies.
 *
 * Part of tame.h. A run lives on the stack as long as the first slice; only when the job really
 * yields does it move into a resource, which every hop carries. So the VM owns a run that waits
 * for its next slice: when the caller is killed, or the library unloaded, the resource's
 * destructor ends the job.
 *
 * The steps may run on any thread. `result` always runs in the caller's own process and
 * environment, on a scheduler: much of what it may call needs one (docs/reference/threads.md). A
 * run that has been off the schedulers therefore ends in a second call of its NIF (tame/again.h).
 *
 * The floors above: wait.h (a caller that waits), work.h (slices), pay.h; gate.h (admission);
 * finish.h (result and cleanup); pool.h and submit.h (threads of our own); place.h (where a run
 * goes), hop.h (slices on schedulers), enter.h and again.h (the two calls of a NIF); nif.h. */
#ifndef TAME_RUN_H
#define TAME_RUN_H

#include "job.h"
#include "queue.h"

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

/* What the calls of a row have shown; atomics. */
struct tame_impl_row_stats {
    uint64_t rate; /* units per ns, as the bits of a double; 0: not measured yet */
    uint64_t rate_told_ns;
    uint32_t spins_failed; /* in a row: the result was not there while the caller spun for it */
};

/* One loaded instance of the library; priv_data. Counted: the library holds it, and so does each
 * run that is a resource. Nothing of it is in a static, because an instance that is loaded anew
 * shares those with the old one. */
struct tame_impl_instance {
    int references;
    ErlNifResourceType *run_type;
    ERL_NIF_TERM tag, module_name, type_name; /* atoms, which are valid everywhere */
    struct tame_impl_pool *pool;
    struct tame_impl_gate *gates;          /* one for each row */
    struct tame_impl_row_stats *row_stats; /* one for each row */
    const char *module;
    int halting;            /* atomic: the VM is about to end */
    uint32_t auto_yielding; /* atomic: runs of `auto` that share the normal schedulers */
};

/* What the steps have done so far, and when something is due between them. */
struct tame_impl_pace {
    uint64_t done;       /* units asked of step */
    double units_per_ns; /* of the last step; 0: not measured yet */
    double best_slice;   /* units per ns of the fastest slice */
    uint32_t slices;
    uint64_t owed_ns;          /* used, but not yet charged to the caller */
    uint64_t progress_told_ns; /* when its progress was told; at first when it began */
    uint64_t yield_at_ns;      /* off the normal schedulers: when to yield the core next */
};

/* What the end of the run gives back. */
struct tame_impl_holds {
    int initialised;   /* cleanup is due */
    int admitted;      /* a place at its row's gate */
    int auto_yielding; /* counted in the instance's auto_yielding */
};

/* The caller, who waits in receive. */
struct tame_impl_waiter {
    ErlNifEnv *own_env; /* the run's; inputs and reference are in it */
    ErlNifPid caller;
    ErlNifMonitor monitor;
    ERL_NIF_TERM reference;
    int answer; /* atomic: enum tame_impl_answer */
};

struct tame_impl_run {
    struct tame_impl_link link; /* first: an entry of a queue is the run */
    const struct tame_impl_row *row;
    struct tame_impl_instance *instance;
    struct tame_call call;
    struct tame_impl_pace pace;
    struct tame_impl_holds holds;
    struct tame_impl_waiter waiter;
    int stop;      /* atomic: set when nobody wants the result any more */
    ErlNifTid tid; /* of a thread of its own */
};

static inline struct tame_impl_run *tame_impl_queue_pop_run(struct tame_impl_queue *queue)
{
    return (struct tame_impl_run *)tame_impl_queue_pop(queue);
}

static inline struct tame_impl_instance *
tame_impl_instance_keep(struct tame_impl_instance *instance)
{
    __atomic_fetch_add(&instance->references, 1, __ATOMIC_RELAXED);
    return instance;
}

static inline double tame_impl_rate(const struct tame_impl_run *run)
{
    uint64_t bits =
        __atomic_load_n(&run->instance->row_stats[run->row->index].rate, __ATOMIC_RELAXED);
    double rate;

    memcpy(&rate, &bits, sizeof rate);
    return rate;
}

static inline void tame_impl_rate_store(const struct tame_impl_run *run)
{
    uint64_t bits;

    memcpy(&bits, &run->pace.units_per_ns, sizeof bits);
    __atomic_store_n(&run->instance->row_stats[run->row->index].rate, bits, __ATOMIC_RELAXED);
}

/* The run as it begins; its state is `state`, zeroed. */
static inline void tame_impl_run_begin(struct tame_impl_run *run, const struct tame_impl_row *row,
                                       ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                       void *state, uint64_t start_ns)
{
    memset(run, 0, sizeof *run);
    run->pace.progress_told_ns = start_ns;
    run->row = row;
    run->instance = (struct tame_impl_instance *)enif_priv_data(env);
    run->call.env = env;
    run->call.argc = argc;
    run->call.argv = argv;
    run->call.impl_state = state;
    run->call.impl_state_size = row->job->state_size;
    run->pace.units_per_ns = tame_impl_rate(run);
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

/* Inspects the inputs anew, in the environment and arguments that the call has now. An input that
 * is not aligned to bytes is copied whole each time that it is inspected; the second pointer gives
 * it away. Such an argument is replaced in `argv` by a copy that is aligned, once. Returns 0
 * without memory. */
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

static inline ERL_NIF_TERM tame_impl_raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* Nobody wants the result any more, or the VM is about to end: then no slice follows. */
static inline int tame_impl_stopped(const struct tame_impl_run *run)
{
    return __atomic_load_n(&run->stop, __ATOMIC_RELAXED) ||
           __atomic_load_n(&run->instance->halting, __ATOMIC_RELAXED);
}

#endif
