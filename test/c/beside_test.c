/* A worker on its caller's CPU leaves it the CPU (waiting.h, "Beside"), and one on another spins. And
 * how a thread goes to another. */
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "check.h"
#include "ring_host.h"
#include "ring_vm.h"
#include "tame/clock.h"

static enum ring_code nothing(void *context, uint32_t function, uint64_t id, const uint8_t *args,
                              size_t size, struct reply_writer *reply)
{
    (void)context, (void)function, (void)id;
    (void)ring_reply_put(reply, args, size);
    return RING_VALUE;
}

struct worker {
    struct ring_host *host;
    unsigned cpu;
};

static void *serve(void *arg)
{
    struct worker *worker = arg;

    CHECK_EQ(os_limit_cpus(&worker->cpu, 1), 0);
    ring_host_serve(worker->host, ring_worker_memory(), &(struct ring_host_ops){.call = nothing},
                    NULL);
    return NULL;
}

enum { CALLS = 300 };

/* How often a worker on worker_cpu spins, whose caller is on caller_cpu. */
static uint64_t spins(unsigned caller_cpu, unsigned worker_cpu)
{
    const struct ring_geometry small = {4, 4096, 1 << 20, 1 << 20};
    struct ring_host_info info;
    struct worker worker = {.cpu = worker_cpu};
    struct ring_vm vm;
    pthread_t thread;
    const int fd = ring_host_create(&small, &worker.host);

    CHECK_EQ(os_limit_cpus(&caller_cpu, 1), 0);
    CHECK_EQ(ring_vm_open(&vm, getpid(), fd) == NULL, 1);
    CHECK_EQ(pthread_create(&thread, NULL, serve, &worker), 0);
    for (uint32_t n = 1; n <= CALLS; n++) {
        struct ring_reply reply = {0};

        (void)ring_vm_submit(
            &vm, 0, n << 8, 0,
            &(struct ring_request){.function = 1, .id = n, .size = 1, .now_ns = tame_now_ns()});
        while (!ring_vm_replied(&vm, 0, n << 8))
            (void)sched_yield();
        CHECK_EQ(ring_vm_reply(&vm, 0, (struct extent){0, 0}, &reply) == NULL, 1);
        ring_vm_release(&vm, 0, n << 8, &reply);
    }
    ring_host_stop(worker.host);
    pthread_join(thread, NULL);
    ring_host_info(worker.host, &info);
    ring_vm_close(&vm);
    ring_host_close(worker.host);
    return info.spins;
}

static unsigned cpus[2];

/* Once before its first call, when it knows of none. */
static void a_worker_beside_its_caller_does_not_spin(void)
{
    CHECK_EQ(spins(cpus[0], cpus[0]) <= 1, 1);
}

static void a_worker_on_another_cpu_spins(void)
{
    CHECK_EQ(spins(cpus[0], cpus[1]) > CALLS / 10, 1);
}

static void a_thread_leaves_its_cpu_for_another(void)
{
    unsigned after[2];
    int left = 0;

    CHECK_EQ(os_limit_cpus(cpus, 2), 0);
    for (int i = 0; i < 10; i++) { /* the system may bring it back at once */
        const unsigned cpu = os_cpu();

        CHECK_EQ(os_leave_cpu(cpu), 0);
        left += os_cpu() != cpu;
    }
    CHECK_EQ(left > 5, 1);
    CHECK_EQ(os_cpus(after, 2), 2); /* it may come back */
}

static void a_thread_that_has_one_cpu_stays(void)
{
    unsigned after[2];

    CHECK_EQ(os_limit_cpus(cpus, 1), 0);
    CHECK_EQ(os_leave_cpu(cpus[0]), -1);
    CHECK_EQ(os_cpus(after, 2), 1);
    CHECK_EQ(os_cpu(), cpus[0]);
}

int main(void)
{
    const int len = os_cpus(cpus, 2);

    if (len >= 1)
        RUN(a_worker_beside_its_caller_does_not_spin);
    if (len >= 2)
        RUN(a_worker_on_another_cpu_spins);
    if (len >= 2)
        RUN(a_thread_leaves_its_cpu_for_another);
    if (len >= 1)
        RUN(a_thread_that_has_one_cpu_stays);
    return check_report();
}
