/* The ring without a VM (c_src/ring): regions, what the VM refuses to believe, and calls between
 * two sides that run as threads of one process, each on a mapping of its own: so the thread
 * sanitizer sees races within a side, not between them. */
#include "../../test/c/check.h"

#include <pthread.h>
#include <stdlib.h>

#include "ring_host.h"
#include "ring_vm.h"

static const struct ring_geometry small = {4, 4096, 1 << 20, 1 << 20};

static void regions_come_back_as_one(void)
{
    struct extents extents;
    struct extent regions[64];

    CHECK_EQ(extents_open(&extents, (struct extent){100, 1000}), 1);
    for (int round = 0; round < 200; round++) {
        for (int i = 0; i < 64; i++) {
            regions[i] = extents_take(&extents, (uint64_t)(1 + (i * 7 + round) % 15));
            CHECK_EQ(regions[i].pages > 0, 1);
            for (int j = 0; j < i; j++)
                CHECK_EQ(regions[i].at < regions[j].at + regions[j].pages &&
                             regions[j].at < regions[i].at + regions[i].pages,
                         0);
        }
        extents_trim(&extents, &regions[3], 1);
        for (int i = 0; i < 64; i++)
            extents_give(&extents, regions[(i * 37 + round) % 64]);
        CHECK_EQ(extents.used_pages, 0);
        CHECK_EQ(extents.first->next == NULL, 1);
        CHECK_EQ(extents.first->free.at, 100);
        CHECK_EQ(extents.first->free.pages, 1000);
        CHECK_EQ(extents.spare_len <= 66, 1);
    }
    extents_close(&extents);
}

static void an_area_that_is_full_gives_nothing(void)
{
    struct extents extents;
    struct extent all;

    CHECK_EQ(extents_open(&extents, (struct extent){6, 10}), 1);
    CHECK_EQ(extents_take(&extents, 11).pages, 0);
    CHECK_EQ(extents_take(&extents, 0).pages, 0);
    CHECK_EQ(extents_take(&extents, UINT64_MAX).pages, 0);
    all = extents_take(&extents, 10);
    CHECK_EQ(all.at, 6);
    CHECK_EQ(extents_take(&extents, 1).pages, 0);
    extents_give(&extents, all);
    CHECK_EQ(extents_take(&extents, 10).pages, 10);
    extents_close(&extents);
}

static void a_geometry_has_bounds(void)
{
    struct ring_geometry g = small;

    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 1);
    g.slots = 0;
    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 0);
    g = small, g.slots = 1025;
    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 0);
    g = small, g.slot_bytes = 5000;
    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 0);
    g = small, g.reply_bytes = UINT64_MAX;
    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 0);
    g = small, g.request_bytes = 1;
    CHECK_EQ(ring_geometry_wrong(&g) == NULL, 0);
}

static void the_vm_believes_no_reply_out_of_bounds(void)
{
    struct ring_host *host;
    const int fd = ring_host_create(&small, BELL_DEFAULT, &host);
    struct ring_vm vm;
    struct ring_reply reply;

    CHECK_EQ(fd >= 0, 1);
    CHECK_EQ(ring_vm_open(&vm, getpid(), fd) == NULL, 1);

    struct ring_slot *slot = ring_vm_slot(&vm, 2);
    const uint32_t first = (uint32_t)(ring_replies_at(&small) / RING_PAGE);
    const uint32_t last = (uint32_t)(vm.bytes / RING_PAGE) - 1;
    const struct {
        uint32_t code, region, leases;
        uint64_t size;
        int fine;
    } rows[] = {
        {RING_VALUE, 0, 0, 4064, 1},
        {RING_VALUE, 0, 0, 4065, 0},
        {RING_VALUE, 0, 1, 4056, 1},
        {RING_VALUE, 0, 1, 4057, 0},
        {RING_VALUE, 0, 0, UINT64_MAX, 0},
        {RING_VALUE, 0, 1, UINT64_MAX - 7, 0},
        {RING_VALUE, 0, UINT32_MAX, 0, 0},
        {0, 0, 0, 1, 0},
        {6, 0, 0, 1, 0},
        {RING_VALUE, first - 1, 0, 1, 0},
        {RING_VALUE, first, 0, (1 << 20) - RING_REPLY_SKEW, 1},
        {RING_VALUE, first, 0, (1 << 20) - RING_REPLY_SKEW + 1, 0},
        {RING_VALUE, last, 0, RING_PAGE - RING_REPLY_SKEW, 1},
        {RING_VALUE, last + 1, 0, 0, 0},
        {RING_VALUE, UINT32_MAX, 0, 0, 0},
        {RING_VALUE, 1, 0, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        slot->code = rows[i].code;
        slot->region = rows[i].region;
        slot->leases = rows[i].leases;
        slot->size = rows[i].size;
        CHECK_EQ(ring_vm_reply(&vm, 2, &reply) == NULL, rows[i].fine);
    }
    ring_vm_close(&vm);
    ring_host_close(host);
}

/* ---- two sides in one process ------------------------------------------------------------------
 */

#define CALLERS 4
#define CALLS 3000

struct pair {
    struct ring_host *host;
    struct ring_vm vm;
    pthread_mutex_t lock; /* of vm.requests */
    int bad;
};

static enum ring_code echo(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                           size_t size, struct reply_writer *reply)
{
    (void)context;
    (void)id;
    for (size_t at = 0; at < size; at += function) /* grows as it goes */
        (void)ring_reply_put(reply, args + at, at + function > size ? size - at : function);
    (void)ring_reply_lease(reply, id);
    return RING_VALUE;
}

static void *serve(void *arg)
{
    struct pair *pair = arg;

    ring_host_serve(pair->host, &(struct ring_host_ops){.call = echo}, pair);
    return NULL;
}

struct caller {
    struct pair *pair;
    uint32_t slot;
};

/* Each has its slot, and regions from the common area. */
static void *call_many(void *arg)
{
    struct caller *caller = arg;
    struct pair *pair = caller->pair;
    struct ring_vm *vm = &pair->vm;

    for (uint32_t n = 1; n <= CALLS; n++) {
        const uint64_t id = (uint64_t)n * CALLERS + caller->slot;
        const uint32_t use = (uint32_t)id << 8;
        const size_t size = n % 16 == 0 ? 20000 + n : n % 4000;
        struct extent region = {0, 0};
        struct ring_reply reply = {0};
        uint8_t *payload = ring_vm_slot(vm, caller->slot)->payload;
        uint64_t lease = 0;
        int same = 1;

        if (size > ring_payload_max(&vm->geometry)) {
            pthread_mutex_lock(&pair->lock);
            region = extents_take(&vm->requests, (size + RING_REQUEST_SKEW) / RING_PAGE + 1);
            pthread_mutex_unlock(&pair->lock);
            payload = ring_vm_region(vm, region);
        }
        memset(payload, (int)n, size);
        ring_vm_submit(vm, caller->slot, use, 0, 1000, id, size, region);
        while (!ring_vm_replied(vm, caller->slot, use))
            ring_pause();
        if (ring_vm_reply(vm, caller->slot, &reply) != NULL || reply.size != size ||
            reply.leases != 1) {
            same = 0;
        } else {
            for (size_t i = 0; i < size; i++)
                same &= reply.data[i] == (uint8_t)n;
            memcpy(&lease, reply.data + size, sizeof lease);
        }
        if (!same || lease != id)
            __atomic_fetch_add(&pair->bad, 1, __ATOMIC_RELAXED);
        ring_vm_release(vm, caller->slot, use, &reply);
        pthread_mutex_lock(&pair->lock);
        extents_give(&vm->requests, region);
        pthread_mutex_unlock(&pair->lock);
    }
    return NULL;
}

static void calls_come_back(enum bell_kind bell)
{
    struct pair pair = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const int fd = ring_host_create(&small, bell, &pair.host);
    pthread_t workers[2], threads[CALLERS];
    struct caller callers[CALLERS];
    struct ring_host_info info;
    void *base = mmap(NULL, ring_bytes(&small), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK_EQ(ring_vm_attach(&pair.vm, base, ring_bytes(&small)) == NULL, 1);
    CHECK_EQ(ring_vm_open_bells(&pair.vm, getpid()) == NULL, 1);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(pthread_create(&workers[i], NULL, serve, &pair), 0);
    for (uint32_t i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){&pair, i};
        CHECK_EQ(pthread_create(&threads[i], NULL, call_many, &callers[i]), 0);
    }
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    ring_host_stop(pair.host);
    for (int i = 0; i < 2; i++)
        pthread_join(workers[i], NULL);
    ring_host_info(pair.host, &info);
    CHECK_EQ(pair.bad, 0);
    CHECK_EQ(info.calls, CALLERS * CALLS);
    CHECK_EQ(pair.vm.requests.used_pages, 0);
    ring_vm_close(&pair.vm);
    ring_host_close(pair.host);
}

static void calls_come_back_with_a_futex(void)
{
    calls_come_back(BELL_DEFAULT);
}

static void calls_come_back_with_a_pipe(void)
{
    calls_come_back(BELL_PIPE);
}

int main(void)
{
    RUN(regions_come_back_as_one);
    RUN(an_area_that_is_full_gives_nothing);
    RUN(a_geometry_has_bounds);
    RUN(the_vm_believes_no_reply_out_of_bounds);
    RUN(calls_come_back_with_a_futex);
    RUN(calls_come_back_with_a_pipe);
    return check_report();
}
