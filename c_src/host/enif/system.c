/* The functions of the API on memory, dynamic libraries, the environment and the VM itself. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "life/library.h"
#include "memory/env.h"
#include "memory/otp.h"
#include "memory/vm.h"

/* Memory that was given back before begins with links of the allocator's, in the VM as here; memory
 * that is new is 0 here, as a rule. Debian's ets_cache reads the first word before it writes it, and
 * takes 0 for no room: so that word is never 0. */
#define FIRST_WORD UINT64_C(0x0101010101010101)

void *enif_alloc(size_t size)
{
    const uint64_t first = FIRST_WORD;
    void *memory = malloc(size == 0 ? 1 : size);

    if (memory != NULL && size >= sizeof first)
        memcpy(memory, &first, sizeof first);
    return memory;
}

void *enif_realloc(void *old, size_t size)
{
    return realloc(old, size == 0 ? 1 : size);
}

void enif_free(void *memory)
{
    free(memory);
}

static void *report(void *result, void (*handler)(void *, const char *), void *arg)
{
    if (result == NULL && handler != NULL)
        handler(arg, dlerror());
    return result;
}

/* The name comes without ".so" (the manual does not say so, crypto relies on it). NULL: this
 * program. */
void *enif_dlopen(const char *library, void (*handler)(void *, const char *), void *arg)
{
    char path[PATH_MAX];

    if (library == NULL)
        return report(dlopen(NULL, RTLD_NOW), handler, arg);
    if (snprintf(path, sizeof path, "%s.so", library) >= (int)sizeof path) {
        if (handler != NULL)
            handler(arg, "the name is too long");
        return NULL;
    }
    return report(dlopen(path, RTLD_NOW), handler, arg);
}

void *enif_dlsym(void *handle, const char *symbol, void (*handler)(void *, const char *), void *arg)
{
    return report(dlsym(handle, symbol), handler, arg);
}

int enif_getenv(const char *key, char *value, size_t *size)
{
    const char *found = getenv(key);
    size_t len;

    if (found == NULL)
        return -1;
    len = strlen(found);
    if (len >= *size) {
        *size = len + 1;
        return 1;
    }
    memcpy(value, found, len + 1);
    *size = len;
    return 0;
}

void enif_system_info(ErlNifSysInfo *info, size_t size)
{
    ErlNifSysInfo ours = {
        .driver_major_version = 3,
        .driver_minor_version = 3,
        .erts_version = vm.erts_text,
        .otp_release = vm.otp_release_text,
        .thread_support = 1,
        .smp_support = 1,
        .async_threads = vm.async_threads,
        .scheduler_threads = vm.schedulers,
        .nif_major_version = ERL_NIF_MAJOR_VERSION,
        .nif_minor_version = ERL_NIF_MINOR_VERSION,
        .dirty_scheduler_support = 1,
    };

    /* A library built with an older header has a shorter struct. */
    memcpy(info, &ours, size < sizeof ours ? size : sizeof ours);
}

#if HAS_NIF_2_17
/* A variadic function, whose third argument depends on the option: nothing of it is needed. */
int enif_set_option(ErlNifEnv *env, ErlNifOption option, ...)
{
    if (env->library == NULL || !env->library->loading)
        return EINVAL;
    return option == ERL_NIF_OPT_DELAY_HALT || option == ERL_NIF_OPT_ON_HALT ||
                   option == ERL_NIF_OPT_ON_UNLOAD_THREAD
               ? 0
               : EINVAL;
}
#endif
