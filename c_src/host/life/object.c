/* Objects of resources, see object.h. */
#include <stdlib.h>

#include "life/monitor.h"
#include "life/object.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/otp.h"
#include "memory/vm.h"

struct release_task {
    struct task task;
    struct resource *resource;
};

static void run_release(struct task *task)
{
    struct resource *resource = ((struct release_task *)task)->resource;
    ErlNifEnv env;

    monitor_forget(resource);
    if (resource->type->init.dtor == NULL) {
        free(resource);
        free(task);
        return;
    }
    env_init(&env, ENV_CALLBACK);
    resource->type->init.dtor(&env, resource->data);
    env_destroy(&env);
    free(resource);
    free(task);
}

/* A destructor never runs inside of the call that let go of its object, in the VM neither; and
 * not in the thread that reads the control port, which must not block. */
static void release(struct shared *shared)
{
    struct resource *resource = (struct resource *)shared;

    if (resource->type->init.dtor == NULL && resource->type->init.down == NULL) {
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

    if (resource != NULL)
        *resource = (struct resource){.shared = {1, release}, .type = type, .size = size};
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
