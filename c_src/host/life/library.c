/* Libraries, see library.h. */
#include <dlfcn.h>
#include <stdlib.h>

#include "life/library.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/env.h"
#include "memory/name.h"

struct unload_task {
    struct task task;
    struct library *library;
};

static void run_unload(struct task *task)
{
    struct library *library = ((struct unload_task *)task)->library;
    ErlNifEnv env;

    if (library->loaded && library->entry->unload != NULL) {
        env_init(&env, ENV_CALLBACK);
        env.library = library;
        library->entry->unload(&env, library->priv_data);
        env_destroy(&env);
    }
    dlclose(library->handle);
    free(library->module);
    free(library);
    free(task);
}

/* As a destructor (object.c), unload never runs inside of a call, nor in the thread that reads the
 * control port. */
static void release(struct shared *shared)
{
    struct unload_task *task = host_malloc(sizeof *task);

    *task = (struct unload_task){{.run = run_unload}, (struct library *)shared};
    worker_do_after_call(&task->task);
}

struct library *library_new(void *handle, ErlNifEntry *entry)
{
    struct library *library = host_calloc(sizeof *library);

    library->shared.refs = 1;
    library->shared.release = release;
    library->handle = handle;
    library->entry = entry;
    library->module = name_of_latin1(entry->name);
    library->function_bytes = entry->minor < 7 ? offsetof(ErlNifFunc, flags) : sizeof(ErlNifFunc);
    return library;
}

const ErlNifFunc *library_function(const struct library *library, int index)
{
    if (index < 0 || index >= library->entry->num_of_funcs)
        return NULL;
    return (const ErlNifFunc *)((const char *)library->entry->funcs +
                                (size_t)index * library->function_bytes);
}

unsigned library_flags(const struct library *library, const ErlNifFunc *function)
{
    return library->function_bytes == sizeof *function ? function->flags : 0;
}
