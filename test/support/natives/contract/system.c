/* What surrounds the library: system information, environment variables, memory, private data,
 * other libraries, standard output and OS processes. */
#include "contract.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* "Same as the driver function driver_system_info." */
CASE(system_info)
{
    ErlNifSysInfo info;

    memset(&info, 0xff, sizeof info);
    enif_system_info(&info, sizeof info);
    return enif_make_list9(
        env, text(env, info.erts_version), text(env, info.otp_release),
        enif_make_int(env, info.thread_support), enif_make_int(env, info.smp_support),
        enif_make_int(env, info.async_threads), enif_make_int(env, info.scheduler_threads),
        enif_make_int(env, info.nif_major_version), enif_make_int(env, info.nif_minor_version),
        enif_make_int(env, info.dirty_scheduler_support));
}

/* "Returns 0 on success; < 0 if key is not found; > 0 if the buffer is too small, and *value_size
 * is then the size needed." */
CASE(getenv_)
{
    struct results r = {.len = 0};
    char value[100] = "";
    size_t size = sizeof value;

    add_int(env, &r, enif_getenv("TAME_CONTRACT", value, &size));
    add_int(env, &r, (long)size);
    add(&r, text(env, value));
    size = 3;
    int small = enif_getenv("TAME_CONTRACT", value, &size);
    add_int(env, &r, small > 0);
    size = sizeof value;
    add_int(env, &r, enif_getenv("TAME_NO_SUCH_NAME", value, &size) < 0);
    return all(env, &r);
}

/* The locale's type of characters is that of the environment. */
CASE(multibyte)
{
    return enif_make_long(env, (long)mbstowcs(NULL, "\xc3\xa9", 0));
}

/* Memory: "Returns NULL if the allocation fails"; sizes of 0. */
CASE(memory)
{
    char *p = enif_alloc(10);

    memcpy(p, "012345678", 10);
    p = enif_realloc(p, 100000);
    int same = strcmp(p, "012345678") == 0;
    enif_free(p);
    enif_free(NULL);
    p = enif_realloc(NULL, 5);
    enif_free(p);
    return boolean(env, same && enif_alloc(SIZE_MAX / 2) == NULL);
}

/* "Returns the pointer to the private data that was set by load." */
CASE(private_data)
{
    const struct private_data *data = enif_priv_data(env);

    return enif_make_copy(env, data->load_info);
}

static void note_error(void *arg, const char *message)
{
    *(int *)arg = message != NULL;
}

/* A library that does not exist: enif_dlopen returns NULL and calls the handler with the reason. */
CASE(dynamic_libraries)
{
    int reported = 0;
    void *none = enif_dlopen("/no/such/library", note_error, &reported);

    return enif_make_tuple2(env, enif_make_int(env, none == NULL), enif_make_int(env, reported));
}

/* IN: what to say on standard output and on standard error, without an end of line. */
CASE(say)
{
    ErlNifBinary bin;

    if (!enif_inspect_binary(env, IN, &bin))
        return enif_make_badarg(env);
    printf("out %.*s\n", (int)bin.size, (char *)bin.data);
    fprintf(stderr, "err %.*s\n", (int)bin.size, (char *)bin.data);
    return enif_make_atom(env, "ok");
}

/* Two processes that outlive this one if nobody ends them: an ordinary one and a daemon. */
CASE(start_children)
{
    term pids[2];

    for (int i = 0; i < 2; i++) {
        pid_t child = fork();
        if (child == 0) {
            if (i == 1)
                setsid();
            execlp("sleep", "sleep", "1000", NULL);
            _exit(1);
        }
        pids[i] = enif_make_int(env, child);
    }
    return enif_make_list_from_array(env, pids, 2);
}

/* Of the emulator, and in no manual: the names of errors as Erlang has them. */
extern char *erl_errno_id(int error);

CASE(errno_ids)
{
    ERL_NIF_TERM ids = enif_make_list(env, 0);

    for (int error = 140; error >= -1; error--)
        ids = enif_make_list_cell(env, text(env, erl_errno_id(error)), ids);
    return ids;
}
