/* Objects of resources, see object.h. */
#include <stdlib.h>

#include "life/monitor.h"
#include "life/object.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/otp.h"
#include "memory/vm.h"
#include "term/lease.h"

struct release_task {
    struct task task;
    struct resource *resource;
};

static void run_release(struct task *task)
{
    struct resource *resource = ((struct release_task *)task)->resource;
    struct resource_callbacks callbacks;
    ErlNifEnv env;

    monitor_forget(resource);
    callbacks = resource_callbacks(resource->type);
    if (callbacks.init.dtor != NULL) {
        env_init(&env, ENV_CALLBACK);
        env.library = callbacks.owner;
        callbacks.init.dtor(&env, resource->data);
        env_destroy(&env);
    }
    resource_callbacks_done(&callbacks);
    shared_drop(&resource->type->shared);
    free(resource);
    free(task);
}

/* A destructor never runs inside of the call that let go of its object, in the VM neither; and
 * not in the thread that reads the control port, which must not block. */
static void release(struct shared *shared)
{
    struct resource *resource = (struct resource *)shared;
    struct resource_callbacks callbacks = resource_callbacks(resource->type);

    lease_resource_ends(resource);
    resource_callbacks_done(&callbacks);
    if (callbacks.init.dtor == NULL && !callbacks.is_watching) {
        shared_drop(&resource->type->shared);
        free(resource);
        return;
    }
    struct release_task *release_task = host_malloc(sizeof *release_task);
    release_task->task.run = run_release;
    release_task->resource = resource;
    worker_do_after_call(&release_task->task);
}

struct resource *object_new(struct resource_type *type, size_t size)
{
    struct resource *resource = size > PTRDIFF_MAX / 2 ? NULL : malloc(sizeof *resource + size);

    if (resource != NULL) {
        shared_keep(&type->shared);
        *resource =
            (struct resource){.shared = {1, release}, .kept = 1, .type = type, .size = size};
    }
    return resource;
}

struct resource *object_named_by(term t)
{
    if (is_kind(t, BOX_RESOURCE))
        return ((struct box_resource *)box_of(t))->resource;
    if (!is_kind(t, BOX_BINARY))
        return NULL;
    struct box_binary *binary = box_of(t);
    if (binary->owner == NULL || binary->owner->release != release ||
        (box_size(t) == BINARY_PART &&
         (!otp_has_binary_parts() || binary->size <= BINARY_SHARE_BYTES)))
        return NULL;
    return (struct resource *)binary->owner;
}
