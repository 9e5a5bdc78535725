/* ring_host_private.h - what the files of the host's end share: the struct, and what the workers
 * (ring_host_serve.c) need of the replies (ring_host_reply.c). */
#ifndef TAME_RING_HOST_PRIVATE_H
#define TAME_RING_HOST_PRIVATE_H

#include <pthread.h>

#include "extents.h"
#include "ring_host.h"
#include "waiting.h"

/* Dirty calls that wait for a worker (ring_host_dirty.c). */
struct dirty_line {
    pthread_mutex_t lock;
    uint32_t running;
    uint32_t len; /* written under the lock, read without */
    uint32_t head;
    uint16_t slots[RING_SLOTS_MAX];
};

struct ring_host {
    int fd;
    uint8_t *base;
    struct ring_header *header;
    struct ring_geometry geometry;
    int stopping;

    struct waiting_host waiting;
    uint32_t workers; /* that there have been, to number them */

    /* The next request; moved by the worker that takes it. */
    RING_LINE uint64_t head;

    /* Guards what follows. */
    RING_LINE pthread_mutex_t lock;
    struct extents replies;
    struct extent held[RING_SLOTS_MAX]; /* the slot's reply region, until the VM has read it */
    uint32_t held_len;
    uint64_t *owed; /* ids of leases whose own reply could not carry them */
    uint32_t owed_len, owed_max;

    /* Who tells what is gone: the last worker that began to, and when others stop waiting for it. */
    pthread_mutex_t gone_lock;
    uint32_t gone_told;    /* a bell */
    uint32_t gone_telling; /* 0: nobody, or one that began before */
    uint64_t gone_until_ns;

    RING_LINE struct dirty_line dirty;

    /* Counted without a lock, by adding. */
    RING_LINE struct ring_host_info info;
};

/* Where a reply is being written: in the arguments' place, or in the slot where they are too large
 * to be moved; and when that is full, in a region. */
struct reply_writer {
    struct ring_host *ring;
    struct ring_slot *slot;
    uint32_t slot_index;
    uint32_t home_region; /* of the request, or 0: the slot */
    uint8_t *home;
    size_t home_capacity;
    struct extent region; /* no pages: at home */
    uint8_t *data;
    size_t capacity;
    size_t size;
    int failed;
    uint64_t *leases; /* the writer's, until the reply is finished */
    size_t leases_len, leases_max;
};

/* ring_host_serve.c; before any worker serves. */
void ring_host_start_clock(void);

static inline void count(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* Puts the request of a dirty function in line. */
void ring_host_dirty_line(struct ring_host *ring, uint32_t slot);

/* The first in line, which the calling worker runs now and says ring_host_dirty_end after; -1: there
 * is none, or all workers but one run such calls. Who puts one in line, and who has ended one, asks. */
int ring_host_dirty_next(struct ring_host *ring);
void ring_host_dirty_end(struct ring_host *ring);

/* Takes the region of a slot's last reply out of what is held, and gives it back; the slot's reply
 * has been read. */
void ring_host_release_slot(struct ring_host *ring, uint32_t slot);

/* Gives back all regions that the VM has read. */
void ring_host_sweep(struct ring_host *ring);

/* Puts the lease ids behind the payload, and the region into what is held. */
void ring_host_finish_reply(struct reply_writer *reply);

#endif
