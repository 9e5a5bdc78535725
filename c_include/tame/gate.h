/* tame/gate.h - admission: how many calls of a row run at once, how many wait, and in which order;
 * and the same for a context, which one call has at a time.
 *
 * Part of tame.h. Without it sharing collapses under load: when everything shares the schedulers,
 * everything is always half done. A call that finds the gate full waits in receive, not on a
 * thread. */
#ifndef TAME_GATE_H
#define TAME_GATE_H

#include "context.h"
#include "turn.h"

static inline uint32_t tame_impl_max_waiting(const struct tame_impl_run *run)
{
    const uint32_t limit = run->row->job->max_waiting;

    return limit > 0 ? limit : TAME_MAX_WAITING;
}

/* Whether the run still needs a place before it may begin. */
static inline int tame_impl_needs_place(const struct tame_impl_run *run)
{
    return run->row->job->max_running > 0 && !run->holds.place;
}

static inline int tame_impl_needs_context(const struct tame_impl_run *run)
{
    return run->call.impl_context != NULL && !run->call.impl_holds;
}

/* A place, if there is one. Called with the instance's lock. */
static inline int tame_impl_gate_try_locked(struct tame_impl_run *run)
{
    struct tame_impl_gate *gate = tame_impl_gate_of(run);

    /* Those who wait come first: a place that becomes free is theirs at once. */
    run->holds.place = gate->running < run->row->job->max_running;
    gate->running += (uint32_t)run->holds.place;
    return run->holds.place;
}

static inline int tame_impl_gate_try(struct tame_impl_run *run)
{
    int place;

    enif_mutex_lock(run->instance->lock);
    place = tame_impl_gate_try_locked(run);
    enif_mutex_unlock(run->instance->lock);
    return place;
}

enum tame_impl_entry { TAME_IMPL_ENTERED, TAME_IMPL_WAITS, TAME_IMPL_BUSY };

/* A place at the gate now, or in the queue. The run is a resource that expects its turn. */
static inline enum tame_impl_entry tame_impl_gate_enter(struct tame_impl_run *run)
{
    struct tame_impl_gate *gate = tame_impl_gate_of(run);
    enum tame_impl_entry entry = TAME_IMPL_ENTERED;

    enif_mutex_lock(run->instance->lock);
    if (!tame_impl_gate_try_locked(run)) {
        entry = gate->waiting.len < tame_impl_max_waiting(run) ? TAME_IMPL_WAITS : TAME_IMPL_BUSY;
        if (entry == TAME_IMPL_WAITS)
            tame_impl_turn_wait(run, &gate->waiting, run->instance->lock);
    }
    enif_mutex_unlock(run->instance->lock);
    return entry;
}

/* The context now, or a place in its queue. */
static inline enum tame_impl_entry tame_impl_context_enter(struct tame_impl_run *run)
{
    struct tame_impl_context *context = run->call.impl_context;
    ErlNifMutex *lock = context->instance->lock;
    enum tame_impl_entry entry = TAME_IMPL_ENTERED;

    enif_mutex_lock(lock);
    if (!context->claimed) {
        context->claimed = 1;
        run->call.impl_holds = 1;
    } else {
        entry =
            context->waiting.len < tame_impl_max_waiting(run) ? TAME_IMPL_WAITS : TAME_IMPL_BUSY;
        if (entry == TAME_IMPL_WAITS)
            tame_impl_turn_wait(run, &context->waiting, lock);
    }
    enif_mutex_unlock(lock);
    return entry;
}

/* Gives the place back, to the first who waits. `env` is that of the NIF or the callback that this is
 * called from; NULL on a thread of ours. */
static inline void tame_impl_gate_leave(ErlNifEnv *env, struct tame_impl_run *run)
{
    struct tame_impl_gate *gate = tame_impl_gate_of(run);
    struct tame_impl_message message;
    struct tame_impl_run *next;

    enif_mutex_lock(run->instance->lock);
    next = tame_impl_turn_give(&gate->waiting, 0, &message);
    gate->running -= next == NULL;
    enif_mutex_unlock(run->instance->lock);
    run->holds.place = 0;
    if (next == NULL)
        return;
    tame_impl_send(env, &message);
    enif_release_resource(next); /* the queue's hold */
}

/* The same for the context that the run held, or waited for. */
static inline void tame_impl_context_leave(ErlNifEnv *env, struct tame_impl_run *run)
{
    struct tame_impl_context *context = run->call.impl_context;
    struct tame_impl_message message;
    struct tame_impl_run *next = NULL;

    run->call.impl_context = NULL;
    if (run->call.impl_holds) {
        enif_mutex_lock(context->instance->lock);
        next = tame_impl_turn_give(&context->waiting, 1, &message);
        context->claimed = next != NULL;
        enif_mutex_unlock(context->instance->lock);
    }
    run->call.impl_holds = 0;
    if (next != NULL) {
        tame_impl_send(env, &message);
        enif_release_resource(next); /* the queue's hold */
    }
    enif_release_resource(context); /* the run's hold */
}

#endif
