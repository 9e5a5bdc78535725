/* Counting who keeps what, see shared.h. */
#include <stdatomic.h>
#include <stddef.h>

#include "memory/shared.h"

void shared_keep(struct shared *shared)
{
    if (shared != NULL)
        shared->refs++;
}

void shared_drop(struct shared *shared)
{
    if (shared != NULL && --shared->refs == 0)
        shared->release(shared);
}

int shared_keep_live(struct shared *shared)
{
    long refs = shared->refs;

    while (refs > 0) {
        if (atomic_compare_exchange_weak(&shared->refs, &refs, refs + 1))
            return 1;
    }
    return 0;
}
