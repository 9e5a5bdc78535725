/* The VM's monotonic time, see vm_clock.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "memory/vm_clock.h"

static pthread_mutex_t setting = PTHREAD_MUTEX_INITIALIZER;
/* Odd while the two below change: who reads them then, or between two changes, reads them again. */
static _Atomic unsigned changes;
static _Atomic int64_t offset_ns, least_ns = INT64_MIN;

static int64_t machine_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

void vm_clock_set(int64_t new_ns)
{
    pthread_mutex_lock(&setting);
    const int is_first = changes == 0;

    changes++;
    if (!is_first && machine_ns() + offset_ns > least_ns)
        least_ns = machine_ns() + offset_ns;
    offset_ns = new_ns;
    changes++;
    pthread_mutex_unlock(&setting);
}

int64_t vm_clock_ns(void)
{
    unsigned before;
    int64_t ns, least;

    do {
        before = changes;
        least = least_ns;
        ns = machine_ns() + offset_ns;
    } while (before % 2 != 0 || before != changes);
    return ns > least ? ns : least;
}
