/* tame/turn.h - a run that waits for its turn, and how its caller is told.
 *
 * Part of tame.h. The caller made the reference, and waits in receive for {Ref, go}; then it calls
 * '$tame'/3 again. A place, or a context, is kept for it meanwhile, so nobody overtakes. */
#ifndef TAME_TURN_H
#define TAME_TURN_H

#include "core.h"

/* {Ref, go}, ready to be sent. It is made as long as the run is the sender's, because afterwards
 * what it is made of may be the caller's again. */
struct tame_impl_message {
    ErlNifPid to;
    ErlNifEnv *env; /* owned by the sender, until tame_impl_send */
    ERL_NIF_TERM term;
};

static inline struct tame_impl_message tame_impl_go_message(const struct tame_impl_run *run)
{
    struct tame_impl_message message;

    message.to = run->caller;
    message.env = enif_alloc_env();
    message.term = enif_make_tuple2(message.env, enif_make_copy(message.env, run->reference),
                                    enif_make_atom(message.env, "go"));
    return message;
}

/* `env` is that of the NIF or the callback that this is called from; NULL on a thread of ours. */
static inline void tame_impl_send(ErlNifEnv *env, struct tame_impl_message *message)
{
    /* A caller that has died meanwhile is no error. But on a dirty scheduler the VM sends nothing in the
     * name of a process that has died itself, and a turn that nobody is told of is lost: then it is
     * sent in nobody's name. */
    if (!enif_send(env, &message->to, message->env, message->term) && env != NULL &&
        enif_thread_type() != ERL_NIF_THR_NORMAL_SCHEDULER)
        (void)enif_send(NULL, &message->to, message->env, message->term);
    enif_free_env(message->env);
}

/* Makes the run ready to be waited for: an environment of its own with the reference in it, and the
 * caller's death told. Returns 0 when the caller is dead already. */
static inline int tame_impl_expect(ErlNifEnv *env, struct tame_impl_run *run,
                                   ERL_NIF_TERM reference)
{
    if (run->own_env == NULL)
        run->own_env = enif_alloc_env(); /* owned by the run */
    else
        enif_clear_env(run->own_env);
    run->reference = enif_make_copy(run->own_env, reference);
    enif_keep_resource(run); /* the watch's hold */
    if (tame_impl_watch_enter(env, run->instance->watches, run->instance->watch_type, &run->caller,
                              &run->watched, run))
        return 1;
    enif_release_resource(run);
    return 0;
}

/* The run is waited for no more. By who owns it, and has a hold on it besides. */
static inline void tame_impl_unexpect(struct tame_impl_run *run)
{
    if (tame_impl_unwatch(&run->watched))
        enif_release_resource(run); /* the watch's hold */
}

/* The run waits in this queue, which the lock guards and which has a hold on it. Called with the
 * lock. */
static inline void tame_impl_turn_wait(struct tame_impl_run *run, struct tame_impl_queue *waiting,
                                       ErlNifMutex *lock)
{
    run->queue_lock = lock;
    enif_keep_resource(run);
    tame_impl_queue_push(waiting, &run->link);
    (void)tame_impl_move(&run->state, TAME_IMPL_CALLER, TAME_IMPL_QUEUED);
}

/* The first who waits has its turn; NULL when nobody waits. Called with the lock. What the turn is
 * for is noted before the run is given away: a context, or a place at the gate. The queue's hold is
 * now that of who calls this, with a message to be sent. */
static inline struct tame_impl_run *tame_impl_turn_give(struct tame_impl_queue *waiting,
                                                        int is_context,
                                                        struct tame_impl_message *message)
{
    struct tame_impl_run *next = tame_impl_queue_pop_run(waiting);

    if (next == NULL)
        return NULL;
    *message = tame_impl_go_message(next);
    if (is_context)
        next->call.impl_holds = 1;
    else
        next->holds.place = 1;
    (void)tame_impl_move(&next->state, TAME_IMPL_QUEUED, TAME_IMPL_TURN);
    return next;
}

/* Takes a run whose caller does not want it any more out of the queue. Returns 0 when it has its turn
 * by now. */
static inline int tame_impl_turn_forget(struct tame_impl_run *run)
{
    int ended;

    enif_mutex_lock(run->queue_lock);
    ended = tame_impl_move(&run->state, TAME_IMPL_QUEUED, TAME_IMPL_ENDED);
    if (ended)
        (void)tame_impl_queue_remove(run->link.queue, &run->link);
    enif_mutex_unlock(run->queue_lock);
    if (ended)
        enif_release_resource(run); /* the queue's hold; the caller of this has another */
    return ended;
}

#endif
