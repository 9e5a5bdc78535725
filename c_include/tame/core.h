/* tame/core.h - what there is of a library, of a row of its table, and of a run.
 *
 * Part of tame.h. A run lives on the stack of its NIF as long as that is enough. When it has to go on
 * later or elsewhere it moves into a resource, which every hop and every term that names it carries.
 * So the VM owns a run that waits for its next slice: when the caller is killed, or the library
 * unloaded, the resource's destructor ends the job. tame/run.h says who owns it else. */
#ifndef TAME_CORE_H
#define TAME_CORE_H

#include "input.h"
#include "output.h"
#include "place.h"
#include "queue.h"
#include "run.h"
#include "watch.h"

/* A row of the function table. */
struct tame_impl_row {
    const char *name;
    int arity;
    const struct tame_job *job;
    enum tame_placement placement;
    int index; /* of the row */
};

struct tame_impl_pool;
struct tame_impl_run;
struct tame_resource;

/* What the calls of a row have shown; atomics. */
struct tame_impl_row_stats {
    uint64_t rate;        /* units per ns, as the bits of a double; 0: not measured yet */
    uint64_t first_units; /* what the first step is asked for, by the rate */
    uint64_t short_ns; /* tame/short.h: what a call that is done in one step takes; 0: not known */
    uint64_t rate_told_ns;
    uint32_t spins_failed; /* in a row: the result was not there while the caller spun for it */
    int slow_unit_told;
};

/* How many calls of a row run at once, and who waits. Its lock is the instance's. */
struct tame_impl_gate {
    uint32_t running;
    struct tame_impl_queue waiting; /* each entry is a hold on its run */
    uint32_t
        pooled; /* runs of the row that wait for a worker to begin; guarded by the pool's lock */
};

/* Shared by an instance and those that replace it; each holds it. */
struct tame_impl_lineage {
    int references;
    uint32_t contexts; /* atomic: resources of the author's that live, by all of them */
};

/* One loaded instance of the library; priv_data. Counted: the library holds it, and so does each
 * run or context that is a resource. Nothing of it is in a static, because an instance that is
 * loaded anew shares those with the old one. */
struct tame_impl_instance {
    int references;
    int layout; /* TAME_IMPL_LAYOUT of the build that made it; from 5 on lineage follows it */
    struct tame_impl_lineage *lineage;
    void *data; /* the author's, from its load hook */
    void (*unload)(ErlNifEnv *env, void *data);
    ErlNifResourceType *run_type, *watch_type;
    /* Shared with the instances before and after it, of the same layout. */
    struct tame_impl_watches *watches;
    /* Of this build: a run is told by the code that it was made by. */
    void (*caller_ended)(ErlNifEnv *env, struct tame_impl_run *run);
    const struct tame_resource *const *listed; /* the author's types of resource */
    ErlNifResourceType **types;                /* each of them as it was opened */
    int types_len;
    /* One resource of each of them, and a watch, while runs hold the instance (hold.h). */
    void **kept, *kept_watch;
    uint32_t runs; /* atomic: that hold it; 0 and 1 follow each other with the lock */
    const struct tame_impl_row *rows;
    int rows_len;
    ERL_NIF_TERM nil, tag, module_name, type_name, *names; /* valid in any environment */
    struct tame_impl_pool *pool;
    ErlNifMutex *lock;                     /* guards the gates and what waits for contexts */
    struct tame_impl_gate *gates;          /* one for each row */
    struct tame_impl_row_stats *row_stats; /* one for each row */
    const char *module;
    int halting;               /* atomic: the VM is about to end */
    uint32_t crowd;            /* atomic: runs that take turns on the regular schedulers */
    uint32_t schedulers, cpus; /* as the VM was made, and as the container allows; 0: not known */
    uint32_t online;           /* atomic: schedulers that are online; 0: not told yet */
    uint64_t online_told_ns;   /* atomic */
};

/* Changes with struct tame_impl_instance, tame_impl_run and tame_impl_context: what two builds of a
 * library may see of each other. */
#define TAME_IMPL_LAYOUT 8

enum tame_impl_phase {
    TAME_IMPL_BEGIN, /* init is not called, or said TAME_WAIT */
    TAME_IMPL_STEPS,
    TAME_IMPL_GATHER, /* all steps are done; outputs lie in pieces */
    TAME_IMPL_BUILD,  /* all outputs lie in one piece each */
    TAME_IMPL_FAILS   /* a step failed, on a thread of ours */
};

/* What the end of the run gives back. */
struct tame_impl_holds {
    int initialised; /* cleanup is due */
    int place;       /* at its row's gate */
    int crowd;       /* counted in the instance's crowd */
};

struct tame_impl_run {
    struct tame_impl_link link; /* first: an entry of a queue is the run */
    const struct tame_impl_row *row;
    struct tame_impl_instance *instance;
    int state; /* atomic; enum tame_impl_state */
    enum tame_impl_phase phase;
    struct tame_impl_holds holds;
    int is_resource; /* it is one, and not on the stack */
    int leaves;      /* its next steps are made off the regular schedulers */
    int part;        /* call.impl_term is a part, made on a thread of ours */
    int owned;       /* the inputs are in own_env */
    int dirty;       /* `auto` moved it to the dirty schedulers */
    int uncut;       /* its module was loaded anew: it ends in one go */
    int old;         /* it gave way in the pool */
    int unread;      /* nobody measured its first step: tame/short.h */

    struct tame_impl_pace pace;
    uint64_t deadline_ns; /* by tame_now_ns; UINT64_MAX: none */
    uint64_t done, steps; /* units asked of step, and steps */
    uint64_t used_ns;     /* by the steps */
    uint64_t owed_ns;     /* used, but not yet charged to the caller */
    uint64_t parts_ns;    /* used for parts since the reader last left the scheduler for them */
    uint64_t progress_told_ns; /* when its progress was told; at first when it began */
    uint64_t yield_at_ns;      /* off the normal schedulers: when to yield the core next */

    /* The caller, who waits in receive. */
    ErlNifEnv *own_env; /* the run's; inputs and reference are in it */
    ErlNifPid caller;
    struct tame_impl_watched
        watched;             /* of the caller's end; it holds the run while it is in a watch */
    ErlNifMutex *queue_lock; /* guards the queue that it waits in for its turn */
    ERL_NIF_TERM reference;
    int quiet;      /* atomic; see tame/submit.h */
    uint32_t pulls; /* parts that were given away */

    struct tame_call call; /* last: it is set before all else, and for a short call alone */
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

static inline void tame_impl_lineage_release(struct tame_impl_lineage *lineage)
{
    if (lineage != NULL && __atomic_sub_fetch(&lineage->references, 1, __ATOMIC_ACQ_REL) == 0)
        enif_free(lineage);
}

static inline void tame_impl_instance_release(struct tame_impl_instance *instance)
{
    if (__atomic_sub_fetch(&instance->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    tame_impl_lineage_release(instance->lineage);
    tame_impl_watches_release(instance->watches);
    if (instance->lock != NULL)
        enif_mutex_destroy(instance->lock);
    enif_free(instance->gates); /* NULL is nothing to free */
    enif_free(instance->row_stats);
    enif_free(instance->types);
    enif_free(instance->kept);
    enif_free(instance->names);
    enif_free(instance);
}

static inline struct tame_impl_gate *tame_impl_gate_of(const struct tame_impl_run *run)
{
    return &run->instance->gates[run->row->index];
}

static inline struct tame_impl_row_stats *tame_impl_stats(const struct tame_impl_run *run)
{
    return &run->instance->row_stats[run->row->index];
}

/* Schedulers that take turns with each other's processes now. */
static inline uint32_t tame_impl_schedulers(struct tame_impl_instance *instance)
{
    return tame_impl_place_workers(
        instance->schedulers, __atomic_load_n(&instance->online, __ATOMIC_RELAXED), instance->cpus);
}

static inline double tame_impl_rate(const struct tame_impl_run *run)
{
    uint64_t bits = __atomic_load_n(&tame_impl_stats(run)->rate, __ATOMIC_RELAXED);
    double rate;

    memcpy(&rate, &bits, sizeof rate);
    return rate;
}

static inline void tame_impl_rate_store(const struct tame_impl_run *run)
{
    struct tame_impl_pace first;
    uint64_t bits;

    memcpy(&bits, &run->pace.units_per_ns, sizeof bits);
    __atomic_store_n(&tame_impl_stats(run)->rate, bits, __ATOMIC_RELAXED);
    first.units_per_ns = run->pace.units_per_ns;
    first.last_units = 0;
    __atomic_store_n(&tame_impl_stats(run)->first_units, tame_impl_next_units(&first, 0),
                     __ATOMIC_RELAXED);
}

/* The run's call as it begins; its state is `state`, zeroed. The arrays are of as many as their
 * lengths say. */
static inline void tame_impl_call_begin(struct tame_impl_run *run, const struct tame_impl_row *row,
                                        ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[],
                                        void *state)
{
    struct tame_call *call = &run->call;

    run->row = row;
    run->instance = (struct tame_impl_instance *)enif_priv_data(env);
    call->env = env;
    call->argc = argc;
    call->argv = argv;
    for (int i = 0; i < TAME_MAX_ROOTS; i++)
        call->root[i] = run->instance->nil;
    call->impl_state = state;
    call->impl_state_size = row->job->state_size;
    call->impl_terms = row->job->terms;
    call->impl_total = 0;
    call->impl_inputs_len = 0;
    call->impl_outputs_len = 0;
    call->impl_context = NULL;
    call->impl_holds = 0;
    call->impl_failure = TAME_IMPL_NO_FAILURE;
    call->impl_number = 0;
    call->impl_sentence = NULL;
    call->impl_term = 0;
}

/* The rest of the run, whose call has begun. */
static inline void tame_impl_run_begin(struct tame_impl_run *run, uint64_t start_ns,
                                       uint64_t deadline_ns)
{
    const struct tame_impl_row *row = run->row;
    struct tame_impl_instance *instance = run->instance;
    size_t size = offsetof(struct tame_impl_run, call);

    __asm__(""
            : "+r"(size)); /* not known: else gcc writes an instruction that takes 15 ns to begin */
    memset(run, 0, size);
    run->row = row;
    run->instance = instance;
    run->progress_told_ns = start_ns;
    run->deadline_ns = deadline_ns;
    run->leaves = row->placement == TAME_THREAD || row->placement == TAME_POOL;
    run->pace.units_per_ns = tame_impl_rate(run);
}

/* What enif_alloc and enif_alloc_resource give is aligned to 8 bytes; a state may hold anything. */
#define TAME_IMPL_ALIGNMENT 16

static inline void *tame_impl_align(void *memory)
{
    return (void *)(((uintptr_t)memory + TAME_IMPL_ALIGNMENT - 1) &
                    ~(uintptr_t)(TAME_IMPL_ALIGNMENT - 1));
}

static inline ERL_NIF_TERM tame_impl_error_term(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    return enif_make_tuple3(env, enif_make_atom(env, "$tame"), enif_make_atom(env, "error"),
                            reason);
}

/* {'$tame', error, {tame, Reason}}. */
static inline ERL_NIF_TERM tame_impl_error(ErlNifEnv *env, const char *reason)
{
    return tame_impl_error_term(
        env, enif_make_tuple2(env, enif_make_atom(env, "tame"), enif_make_atom(env, reason)));
}

static inline ERL_NIF_TERM tame_impl_raise_enomem(ErlNifEnv *env)
{
    return enif_raise_exception(env, enif_make_atom(env, "enomem"));
}

/* {'$tame', Kind, {Nif, Type, Run, Pulls, Roots}}: a run that its caller hands back to '$tame'/3; the
 * term holds it. With a part, {Part, _}. */
static inline ERL_NIF_TERM tame_impl_run_term(ErlNifEnv *env, struct tame_impl_run *run)
{
    const struct tame_impl_instance *instance = run->instance;

    return enif_make_tuple5(
        env, instance->names[run->row->index], instance->type_name, enif_make_resource(env, run),
        enif_make_uint(env, run->pulls),
        enif_make_tuple_from_array(env, run->call.root, run->row->job->terms ? TAME_MAX_ROOTS : 0));
}

static inline ERL_NIF_TERM tame_impl_tagged(ErlNifEnv *env, struct tame_impl_run *run,
                                            const char *kind, ERL_NIF_TERM term)
{
    return enif_make_tuple3(env, run->instance->tag, enif_make_atom(env, kind), term);
}

#endif
