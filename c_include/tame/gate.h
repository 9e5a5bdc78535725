/* tame/gate.h - admission: how many calls of a row run at once, how many wait, and in which order.
 *
 * Part of tame.h. Without it sharing collapses under load: when everything shares the schedulers,
 * everything is always half done. A call that finds the gate full waits in receive, not on a thread
 * (tame/wait.h), for {Ref, admitted}. Its run is a resource and cannot be forged; it holds the
 * place that was kept for it, so nobody overtakes. */
#ifndef TAME_GATE_H
#define TAME_GATE_H

#include "wait.h"

struct tame_impl_gate {
    ErlNifMutex *lock;
    uint32_t running;
    struct tame_impl_queue waiting; /* each entry is a hold on its run */
    /* Runs of the row that wait for a worker of the pool; guarded by the pool's lock. */
    uint32_t pooled;
};

/* NULL without memory; then the library does not load. */
static inline struct tame_impl_gate *tame_impl_gates_open(int rows_len)
{
    struct tame_impl_gate *gates =
        (struct tame_impl_gate *)enif_alloc(sizeof *gates * (size_t)rows_len);

    if (gates == NULL)
        return NULL;
    memset(gates, 0, sizeof *gates * (size_t)rows_len);
    gates[0].lock = enif_mutex_create((char *)"tame_gates");
    if (gates[0].lock == NULL) {
        enif_free(gates);
        return NULL;
    }
    /* One lock will do: it is held for a few instructions, and only by rows that have a limit. */
    for (int i = 1; i < rows_len; i++)
        gates[i].lock = gates[0].lock;
    return gates;
}

static inline void tame_impl_gates_close(struct tame_impl_gate *gates)
{
    if (gates == NULL)
        return;
    enif_mutex_destroy(gates[0].lock);
    enif_free(gates);
}

static inline struct tame_impl_gate *tame_impl_gate(const struct tame_impl_run *run)
{
    return &run->instance->gates[run->row->index];
}

/* Passes a place of the row on to the first who waits, or gives it back. `env` is that
 * of the NIF or the callback that this is called from; NULL on a thread of ours. */
static inline void tame_impl_gate_free(ErlNifEnv *env, struct tame_impl_instance *instance,
                                       const struct tame_impl_row *row)
{
    struct tame_impl_gate *gate = &instance->gates[row->index];
    struct tame_impl_run *next;

    enif_mutex_lock(gate->lock);
    next = tame_impl_queue_pop_run(&gate->waiting);
    if (next == NULL)
        gate->running--;
    else
        next->holds.admitted = 1;
    if (next != NULL) /* with the lock: tame_impl_gate_forget comes before or after, not between */
        (void)tame_impl_claim(next, TAME_IMPL_BY_MESSAGE, TAME_IMPL_ADMITTED);
    enif_mutex_unlock(gate->lock);
    if (next == NULL)
        return;

    /* The queue's hold is ours now. A caller that has died meanwhile gave the place back. */
    (void)enif_send(env, &next->waiter.caller, next->waiter.own_env,
                    enif_make_tuple2(next->waiter.own_env, next->waiter.reference,
                                     enif_make_atom(next->waiter.own_env, "admitted")));
    enif_release_resource(next);
}

static inline void tame_impl_gate_leave(ErlNifEnv *env, struct tame_impl_run *run)
{
    tame_impl_gate_free(env, run->instance, run->row);
}

/* The caller of a run is dead; it may be waiting here. */
static inline void tame_impl_gate_forget(struct tame_impl_run *run)
{
    struct tame_impl_gate *gate = tame_impl_gate(run);
    int waited;

    enif_mutex_lock(gate->lock);
    waited = tame_impl_queue_remove(&gate->waiting, &run->link);
    enif_mutex_unlock(gate->lock);
    if (waited)
        enif_release_resource(run);
}

/* A place for the run: then run->holds.admitted is set. Else what to return: that it waits, or
 * that too many wait already. */
static inline ERL_NIF_TERM tame_impl_gate_enter(struct tame_impl_run *run)
{
    ErlNifEnv *env = run->call.env;
    struct tame_impl_gate *gate = tame_impl_gate(run);
    const struct tame_job *job = run->row->job;
    const uint32_t max_waiting = job->max_waiting > 0 ? job->max_waiting : TAME_MAX_WAITING;
    struct tame_impl_run *waiting;
    ERL_NIF_TERM reference, wait;
    int busy = 0;

    enif_mutex_lock(gate->lock);
    if (gate->running < job->max_running) {
        gate->running++;
        run->holds.admitted = 1;
    } else {
        busy = gate->waiting.len >= max_waiting;
    }
    enif_mutex_unlock(gate->lock);
    if (run->holds.admitted)
        return 0;
    if (busy)
        return tame_impl_error(env, "busy");

    waiting = tame_impl_run_move(run); /* the term in `wait` owns it, and the queue */
    if (waiting == NULL)
        return tame_impl_raise_enomem(env);
    reference = enif_make_ref(env);
    wait = tame_impl_wait(env, waiting, reference, run->call.argv);
    waiting->waiter.own_env = enif_alloc_env();
    enif_self(env, &waiting->waiter.caller);
    if (waiting->waiter.own_env == NULL ||
        enif_monitor_process(env, waiting, &waiting->waiter.caller, &waiting->waiter.monitor) !=
            0) {
        enif_release_resource(waiting);
        return tame_impl_raise_enomem(env);
    }
    waiting->waiter.reference = enif_make_copy(waiting->waiter.own_env, reference);

    /* A place may have become free meanwhile; then it is ours. */
    enif_mutex_lock(gate->lock);
    if (gate->running < job->max_running) {
        gate->running++;
        run->holds.admitted = 1;
    } else {
        tame_impl_queue_push(&gate->waiting, &waiting->link); /* our hold is the queue's now */
    }
    enif_mutex_unlock(gate->lock);
    if (run->holds.admitted) {
        enif_release_resource(waiting);
        return 0;
    }
    return wait;
}

#endif
