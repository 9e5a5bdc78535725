/* The ring without a VM (c_src/ring): regions, what the VM refuses to believe, and calls between
 * two sides that run as threads of one process, each on a mapping of its own: so the thread
 * sanitizer sees races within a side, not between them. */
#include "../../test/c/check.h"

#include <pthread.h>
#include <stdlib.h>

#include "etf_scan.h"
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
    const int fd = ring_host_create(&small, &host);
    struct ring_vm vm;
    struct ring_reply reply;

    CHECK_EQ(fd >= 0, 1);
    CHECK_EQ(ring_vm_open(&vm, getpid(), fd) == NULL, 1);

    struct ring_slot *slot = ring_vm_slot(&vm, 2);
    const uint32_t first = (uint32_t)(ring_replies_at(&small) / RING_PAGE);
    const uint32_t last = (uint32_t)(vm.bytes / RING_PAGE) - 1;
    const struct extent none = {0, 0}, request = {first - 5, 3};
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
    /* In the request's own region, and beside it. */
    const struct {
        uint32_t region, leases;
        uint64_t size;
        int fine;
    } home[] = {
        {first - 5, 0, 3 * RING_PAGE - RING_REQUEST_SKEW, 1},
        {first - 5, 0, 3 * RING_PAGE - RING_REQUEST_SKEW + 1, 0},
        {first - 5, 1, 3 * RING_PAGE - RING_REQUEST_SKEW - 8, 1},
        {first - 5, 1, 3 * RING_PAGE - RING_REQUEST_SKEW - 7, 0},
        {first - 5, 1, UINT64_MAX - 7, 0},
        {first - 4, 0, 1, 0},
        {first - 6, 0, 1, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        slot->code = rows[i].code;
        slot->region = rows[i].region;
        slot->leases = rows[i].leases;
        slot->size = rows[i].size;
        CHECK_EQ(ring_vm_reply(&vm, 2, none, &reply) == NULL, rows[i].fine);
        CHECK_EQ(ring_vm_reply(&vm, 2, request, &reply) == NULL, rows[i].fine);
    }
    slot->code = RING_VALUE;
    for (size_t i = 0; i < sizeof home / sizeof home[0]; i++) {
        slot->region = home[i].region;
        slot->leases = home[i].leases;
        slot->size = home[i].size;
        CHECK_EQ(ring_vm_reply(&vm, 2, none, &reply) == NULL, 0);
        CHECK_EQ(ring_vm_reply(&vm, 2, request, &reply) == NULL, home[i].fine);
    }
    ring_vm_close(&vm);
    ring_host_close(host);
}

/* Neither takes a bit of the other's. */
static void a_call_that_a_worker_has_had_wakes_no_other(void)
{
    const struct {
        uint32_t state;
        int wakes;
    } rows[] = {
        {RING_USE | RING_REQUEST, 1},
        {RING_USE | RING_REQUEST | RING_WAIT | RING_CANCEL, 1},
        {RING_USE | RING_REQUEST | RING_TAKEN, 0},
        {RING_USE | RING_REPLY, 0},
        {RING_USE | RING_REPLY | RING_WAIT, 0},
    };
    struct ring_host *host;
    const int fd = ring_host_create(&small, &host);
    struct ring_vm vm;

    CHECK_EQ(ring_vm_open(&vm, getpid(), fd) == NULL, 1);
    for (uint32_t sleepers = 0; sleepers < 2; sleepers++)
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            const uint32_t before = vm.header->host_bell;

            vm.header->host_sleepers = sleepers;
            ring_vm_slot(&vm, 1)->state = rows[i].state;
            ring_vm_nudge(&vm, 1);
            CHECK_EQ(vm.header->host_bell != before, sleepers > 0 && rows[i].wakes);
        }
    ring_vm_close(&vm);
    ring_host_close(host);
}

static void a_request_has_its_function_and_pause(void)
{
    static const uint32_t functions[] = {0, 1, 65535, 65536, 65537, RING_FUNCTIONS_MAX - 1};
    static const uint64_t pauses[] = {0, 999, 1000, 100000, 4095000, 4096000, UINT64_MAX};

    for (size_t f = 0; f < sizeof functions / sizeof *functions; f++)
        for (size_t p = 0; p < sizeof pauses / sizeof *pauses; p++) {
            const uint32_t code = ring_request_code(functions[f], pauses[p]);
            const uint64_t us = pauses[p] / 1000;

            CHECK_EQ(ring_request_function(code), functions[f]);
            CHECK_EQ(ring_request_pause_ns(code), (us > 4095 ? 4095 : us) * 1000);
        }
}

/* Scans in one go and in single steps; both must agree. */
static struct etf_scan scanned(const uint8_t *bytes, size_t size)
{
    struct etf_scan whole, steps;
    enum etf_scan_end end;

    etf_scan_open(&whole);
    CHECK_EQ(etf_scan_some(&whole, bytes, size, 1 << 24) != ETF_SCAN_MORE, 1);
    etf_scan_open(&steps);
    do
        end = etf_scan_some(&steps, bytes, size, 1);
    while (end == ETF_SCAN_MORE);
    CHECK_EQ(steps.wrong == whole.wrong && steps.at == whole.at && steps.heap == whole.heap &&
                 steps.pairs == whole.pairs && steps.key_bytes == whole.key_bytes,
             1);
    etf_scan_close(&whole);
    etf_scan_close(&steps);
    return whole;
}

static void a_scan_counts_pairs_and_the_bytes_of_keys(void)
{
    /* #{{1, 2} => #{3 => []}, [] => 4} */
    static const uint8_t map[] = {131, 116, 0, 0, 0, 2,  104, 2,   97,  1,  97, 2,
                                  116, 0,   0, 0, 1, 97, 3,   106, 106, 97, 4};
    struct etf_scan scan = scanned(map, sizeof map);

    CHECK_EQ(scan.wrong == NULL, 1);
    CHECK_EQ(scan.pairs, 3);
    CHECK_EQ(scan.key_bytes, 6 + 2 + 1);
    for (size_t size = 2; size < sizeof map; size++) {
        scan = scanned(map, size);
        CHECK_EQ(scan.wrong == NULL, 0);
    }
}

/* The address sanitizer sees a look beyond the end. */
static void a_scan_stays_within_its_bytes(void)
{
    uint64_t seed = 4711;

    for (int round = 0; round < 200000; round++) {
        static const uint8_t tags[] = {70,  77,  80,  88,  89,  90,  97,  98,  99,  100, 101, 102,
                                       103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 114,
                                       115, 116, 118, 119, 120, 121, 0,   1,   2,   3,   255, 64};
        const size_t size = 2 + (size_t)(seed >> 20) % 60;
        uint8_t *bytes = malloc(size);

        for (size_t i = 0; i < size; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            bytes[i] =
                (seed >> 33) % 3 == 0 ? (uint8_t)(seed >> 40) : tags[(seed >> 40) % sizeof tags];
            if ((seed >> 50) % 4 == 0)
                bytes[i] = (uint8_t)((seed >> 52) % 4);
        }
        const struct etf_scan scan = scanned(bytes, size);
        CHECK_EQ(scan.at <= size, 1);
        CHECK_EQ(scan.wrong != NULL || scan.at == size, 1);
        free(bytes);
    }
}

static void a_scan_has_a_depth(void)
{
    const size_t levels = ETF_SCAN_DEPTH_MAX + 10, size = 1 + 3 * levels + 1;
    uint8_t *bytes = malloc(size);

    for (size_t i = 0; i < levels; i++) { /* {{{..., []}, []}, []} */
        bytes[1 + 2 * i] = 104;
        bytes[2 + 2 * i] = 2;
    }
    memset(bytes + 1 + 2 * levels, 106, levels + 1);
    CHECK_EQ(strcmp(scanned(bytes, size).wrong, "depth"), 0);
    for (size_t i = 0; i < levels; i++) /* the last element each: flat */
        bytes[2 + 2 * i] = 1;
    CHECK_EQ(scanned(bytes, 1 + 2 * levels + 1).wrong == NULL, 1);
    free(bytes);
}

/* ---- two sides in one process ---- */

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

    ring_host_serve(pair->host, ring_worker_memory(), &(struct ring_host_ops){.call = echo}, pair);
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
        const size_t size = n % 64 == 0 && caller->slot == 0 ? RING_MOVED_BYTES - 1000 + n
                            : n % 16 == 0                    ? 20000 + n
                                                             : n % 4000;
        struct extent region = {0, 0};
        struct ring_reply reply = {0};
        uint8_t *payload = ring_vm_slot(vm, caller->slot)->payload;
        uint64_t lease = 0;
        int same = 1;

        if (size > ring_payload_max(&vm->geometry)) {
            pthread_mutex_lock(&pair->lock);
            region = extents_take(&vm->requests, ring_request_pages(size));
            pthread_mutex_unlock(&pair->lock);
            payload = ring_vm_region(vm, region);
        }
        memset(payload, (int)n, size);
        (void)ring_vm_submit(vm, caller->slot, use, 0,
                             &(struct ring_request){.function = 1000,
                                                    .id = id,
                                                    .size = size,
                                                    .region = region,
                                                    .now_ns = tame_now_ns()});
        while (!ring_vm_replied(vm, caller->slot, use))
            tame_impl_pause();
        if (ring_vm_reply(vm, caller->slot, region, &reply) != NULL || reply.size != size ||
            reply.leases != 1) {
            same = 0;
        } else {
            const uint64_t room = region.pages > 0 ? ring_request_room(region.pages)
                                                   : ring_payload_max(&vm->geometry);

            /* Where it fits it has taken the place of the arguments. */
            same = (reply.data == payload) == (size <= RING_MOVED_BYTES && size + 8 <= room);
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

static void calls_come_back(void)
{
    struct pair pair = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const int fd = ring_host_create(&small, &pair.host);
    pthread_t workers[2], threads[CALLERS];
    struct caller callers[CALLERS];
    struct ring_host_info info;
    void *base = mmap(NULL, ring_bytes(&small), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK_EQ(ring_vm_attach(&pair.vm, base, ring_bytes(&small)) == NULL, 1);
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

/* ---- leases
 * --------------------------------------------------------------------------------------------- */

enum { MANY_LEASES = 200000 };

/* Function 1 names them all. */
static enum ring_code many_leases(void *context, uint32_t function, uint64_t id,
                                  const uint8_t *args, size_t size, struct reply_writer *reply)
{
    (void)context;
    (void)id;
    (void)ring_reply_put(reply, args, size);
    for (uint64_t lease = 1; function == 1 && lease <= MANY_LEASES; lease++)
        (void)ring_reply_lease(reply, lease);
    return RING_VALUE;
}

static void *serve_leases(void *arg)
{
    ring_host_serve(arg, ring_worker_memory(), &(struct ring_host_ops){.call = many_leases}, NULL);
    return NULL;
}

/* 200,000 ids do not fit into the reply area of 1 MiB: the reply is refused, and the ids come by
 * and by, each once. */
static void leases_that_find_no_room_come_later(void)
{
    struct ring_host *host;
    const int fd = ring_host_create(&small, &host);
    uint8_t *seen = calloc(MANY_LEASES + 1, 1);
    size_t listed = 0;
    struct ring_vm vm;
    pthread_t worker;

    CHECK_EQ(ring_vm_open(&vm, getpid(), fd) == NULL, 1);
    CHECK_EQ(pthread_create(&worker, NULL, serve_leases, host), 0);
    for (uint32_t n = 1; n <= 1000 && listed < MANY_LEASES; n++) {
        struct ring_reply reply = {0};

        ring_vm_slot(&vm, 0)->payload[0] = 131;
        (void)ring_vm_submit(&vm, 0, n << 8, 0,
                             &(struct ring_request){.function = n == 1, .id = n, .size = 1});
        while (!ring_vm_replied(&vm, 0, n << 8))
            tame_impl_pause();
        CHECK_EQ(ring_vm_reply(&vm, 0, (struct extent){0, 0}, &reply) == NULL, 1);
        CHECK_EQ(reply.code, n == 1 ? RING_TOO_LARGE : RING_VALUE);
        for (uint32_t i = 0; i < reply.leases; i++) {
            uint64_t id = 0;

            memcpy(&id, reply.data + reply.size + i * sizeof id, sizeof id);
            CHECK_EQ(id >= 1 && id <= MANY_LEASES && !seen[id], 1);
            if (id <= MANY_LEASES)
                seen[id] = 1;
            listed++;
        }
        ring_vm_release(&vm, 0, n << 8, &reply);
    }
    CHECK_EQ(listed, MANY_LEASES);
    ring_host_stop(host);
    pthread_join(worker, NULL);
    ring_vm_close(&vm);
    ring_host_close(host);
    free(seen);
}

int main(void)
{
    RUN(regions_come_back_as_one);
    RUN(an_area_that_is_full_gives_nothing);
    RUN(a_geometry_has_bounds);
    RUN(the_vm_believes_no_reply_out_of_bounds);
    RUN(a_call_that_a_worker_has_had_wakes_no_other);
    RUN(a_request_has_its_function_and_pause);
    RUN(a_scan_counts_pairs_and_the_bytes_of_keys);
    RUN(a_scan_stays_within_its_bytes);
    RUN(a_scan_has_a_depth);
    RUN(leases_that_find_no_room_come_later);
    RUN(calls_come_back);
    return check_report();
}
