/* ring_host_dirty.c - calls of dirty functions leave one worker to the others.
 *
 * In the VM a dirty NIF keeps no normal one waiting: a call that stops it, or for which it waits, begins at
 * once. Here the same workers run both, so as many as all workers but one run dirty calls, and the
 * others stand in line here, in order. */
#include "ring_host_private.h"

/* A worker alone runs everything. */
static uint32_t most(struct ring_host *ring)
{
    const uint32_t workers = __atomic_load_n(&ring->workers, __ATOMIC_RELAXED);

    return workers > 1 ? workers - 1 : 1;
}

void ring_host_dirty_line(struct ring_host *ring, uint32_t slot)
{
    struct dirty_line *line = &ring->dirty;

    pthread_mutex_lock(&line->lock);
    line->slots[(line->head + line->len) % RING_SLOTS_MAX] = (uint16_t)slot; /* each slot once */
    __atomic_store_n(&line->len, line->len + 1, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&line->lock);
}

int ring_host_dirty_next(struct ring_host *ring)
{
    struct dirty_line *line = &ring->dirty;
    int slot = -1;

    if (__atomic_load_n(&line->len, __ATOMIC_RELAXED) == 0)
        return -1; /* who puts one in line meanwhile asks as well */
    pthread_mutex_lock(&line->lock);
    if (line->len > 0 && line->running < most(ring)) {
        slot = line->slots[line->head];
        line->head = (line->head + 1) % RING_SLOTS_MAX;
        __atomic_store_n(&line->len, line->len - 1, __ATOMIC_RELAXED);
        line->running++;
    }
    pthread_mutex_unlock(&line->lock);
    return slot;
}

void ring_host_dirty_end(struct ring_host *ring)
{
    pthread_mutex_lock(&ring->dirty.lock);
    ring->dirty.running--;
    pthread_mutex_unlock(&ring->dirty.lock);
}
