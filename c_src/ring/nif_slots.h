/* nif_slots.h - slots, the line before them, their callers, and the regions of requests. */
#ifndef TAME_RING_NIF_SLOTS_H
#define TAME_RING_NIF_SLOTS_H

#include "nif_ring.h"

static inline uint32_t use_of(uint64_t id)
{
    return (uint32_t)id << 8; /* RING_USE times the lower 24 bits */
}

static inline uint64_t word_of(uint64_t id, enum phase phase)
{
    return id << 3 | phase;
}

static inline int claim(struct slot *slot, uint64_t id, enum phase from, enum phase to)
{
    uint64_t word = word_of(id, from);

    return __atomic_compare_exchange_n(&slot->word, &word, word_of(id, to), 0, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
}

static inline void set_phase(struct slot *slot, uint64_t id, enum phase phase)
{
    __atomic_store_n(&slot->word, word_of(id, phase), __ATOMIC_SEQ_CST);
}

static inline uint64_t new_id(struct ring *ring)
{
    return __atomic_add_fetch(&ring->next_id, 1, __ATOMIC_RELAXED);
}

/* The calling process is the waiter. */
void waiter_open(ErlNifEnv *env, struct waiter *waiter);

/* If the calling process, the waiter, ends from here on, process_down finds its call. */
void waiter_watch(ErlNifEnv *env, struct ring *ring, struct waiter *waiter);

void waiter_unwatch(struct ring *ring, struct waiter *waiter);

/* Makes the message, so that its sender has nothing to make. The environment is a new one: the
 * waiter's, until it is sent or closed. */
ErlNifEnv *waiter_message(struct ring *ring, ERL_NIF_TERM ref, ERL_NIF_TERM *message);

/* The waiter is back, or dead. */
void waiter_close(struct ring *ring, struct waiter *waiter);

struct extent take_request_region(struct ring *ring, size_t bytes);

void give_request_region(struct ring *ring, struct extent region);

/* A free slot, now BUSY with this call, or -1: also where others are in line before it. */
int claim_slot(struct ring *ring, uint64_t id);

/* Puts an entry behind the others. The lock is held. */
void line_add(struct line *line, struct line_entry *entry);

/* The lock is held. */
void line_remove(struct line *line, struct line_entry *entry);

/* By id, or, with a pid, of that process; NULL when it is not there. Youngest first, as a
 * caller that asks for its own call has mostly just come. The lock is held. */
struct line_entry *line_find(struct line *line, uint64_t id, const ErlNifPid *pid);

/* Takes a call out of the line of those that wait for a slot. The lock is held. */
void leave_line(struct ring *ring, struct line_entry *entry);

/* The entry is in no line any more. */
void free_line_entry(struct ring *ring, struct line_entry *entry);

/* Moves calls from the line into free slots. */
void pump(struct ring *ring);

/* The slot, which is ours, and its request's region are free again. */
void free_slot(struct ring *ring, uint32_t index);

/* The reply in a slot of ours has been read, and what it is known by is not needed any more. */
void finish_slot(struct ring *ring, uint32_t index, uint64_t id, const struct ring_reply *reply);

/* Nobody wants the reply of a slot of ours: the reader frees it when it is there. */
void abandon_slot(struct ring *ring, uint32_t index, uint64_t id);

/* While calls wait for a slot it is looked this often which callers that polled have died. */
#define LINE_LOOK_NS 10000000

/* Abandons the slots of callers that have died while they polled. Takes 20 us for 1024 slots. */
void abandon_left(struct ring *ring);

/* How many calls are in slots, and in line. */
uint64_t calls_under_way(struct ring *ring);

#endif
