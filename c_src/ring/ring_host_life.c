/* ring_host_life.c - the host's end of a ring is created, stopped, closed. Replies are in
 * ring_host_reply.c, workers in ring_host_serve.c. */
#include "ring_host_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../os/os.h"
#include "bell.h"

int ring_host_create(const struct ring_geometry *geometry, struct ring_host **created)
{
    struct ring_host *ring;
    const struct extent area = {(uint32_t)(ring_replies_at(geometry) / RING_PAGE),
                                (uint32_t)(geometry->reply_bytes / RING_PAGE)};

    if (ring_geometry_wrong(geometry) != NULL) {
        errno = EINVAL;
        return -1;
    }
    ring = aligned_alloc(64, sizeof *ring);
    if (ring == NULL)
        return -1;
    memset(ring, 0, sizeof *ring);
    ring->geometry = *geometry;
    ring->fd = -1;
    pthread_mutex_init(&ring->lock, NULL);
    pthread_mutex_init(&ring->gone_lock, NULL);
    pthread_mutex_init(&ring->dirty.lock, NULL);
    ring_host_start_clock();

    ring->fd = os_shared_create(ring_bytes(geometry));
    if (ring->fd < 0)
        goto failed;
    ring->base = os_shared_map(ring->fd, ring_bytes(geometry));
    if (ring->base == NULL)
        goto failed;
    ring->header = (struct ring_header *)(void *)ring->base;
    if (!extents_open(&ring->replies, area))
        goto failed;
    ring->header->version = RING_VERSION;
    ring->header->geometry = *geometry;
    __atomic_store_n(&ring->header->magic, RING_MAGIC, __ATOMIC_RELEASE);
    *created = ring;
    return ring->fd;

failed:;
    const int why = errno;

    ring_host_close(ring);
    errno = why;
    return -1;
}

void ring_host_stop(struct ring_host *ring)
{
    __atomic_store_n(&ring->stopping, 1, __ATOMIC_SEQ_CST);
    bell_ring_all(&ring->header->host_bell);
}

void ring_host_close(struct ring_host *ring)
{
    extents_close(&ring->replies);
    if (ring->base != NULL)
        munmap(ring->base, ring_bytes(&ring->geometry));
    if (ring->fd >= 0)
        close(ring->fd);
    pthread_mutex_destroy(&ring->lock);
    pthread_mutex_destroy(&ring->gone_lock);
    pthread_mutex_destroy(&ring->dirty.lock);
    free(ring->owed);
    free(ring);
}

void ring_host_info(struct ring_host *ring, struct ring_host_info *info)
{
    info->calls = __atomic_load_n(&ring->info.calls, __ATOMIC_RELAXED);
    info->spins = __atomic_load_n(&ring->info.spins, __ATOMIC_RELAXED);
    info->spins_paid = __atomic_load_n(&ring->info.spins_paid, __ATOMIC_RELAXED);
    info->sleeps = __atomic_load_n(&ring->info.sleeps, __ATOMIC_RELAXED);
    info->dropped = __atomic_load_n(&ring->info.dropped, __ATOMIC_RELAXED);
    pthread_mutex_lock(&ring->lock);
    info->reply_bytes = ring->replies.used_pages * RING_PAGE;
    info->reply_bytes_max = ring->replies.used_max * RING_PAGE;
    pthread_mutex_unlock(&ring->lock);
}
