/* file.h - files to be sent: a descriptor of our own, closed with its last term. */
#ifndef TAME_TCP_FILE_H
#define TAME_TCP_FILE_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"

struct tcp_file {
    int number; /* -1: not yet */
};

/* Set by each loading; a library that takes over gets the same type. */
static ErlNifResourceType *tcp_files;

static void tcp_file_destroy(ErlNifEnv *env, void *object)
{
    const int number = ((struct tcp_file *)object)->number;

    (void)env;
    if (number >= 0)
        (void)close(number);
}

static int tcp_file_load(ErlNifEnv *env)
{
    tcp_files = enif_open_resource_type(
        env, NULL, "tcp_file", tcp_file_destroy,
        (ErlNifResourceFlags)(ERL_NIF_RT_CREATE | ERL_NIF_RT_TAKEOVER), NULL);
    return tcp_files == NULL;
}

static const struct tcp_file *tcp_file_get(ErlNifEnv *env, ERL_NIF_TERM term)
{
    void *object;

    return enif_get_resource(env, term, tcp_files, &object) ? (struct tcp_file *)object : NULL;
}

/* A file without a number. Its one hold is the caller's; NULL without memory. */
static struct tcp_file *tcp_file_new(void)
{
    struct tcp_file *file = (struct tcp_file *)enif_alloc_resource(tcp_files, sizeof *file);

    if (file != NULL)
        file->number = -1;
    return file;
}

/* The file has the number from now on, or there is none: errno says why. */
static ERL_NIF_TERM tcp_file_has(ErlNifEnv *env, struct tcp_file *file, ERL_NIF_TERM term,
                                 int number)
{
    if (number < 0)
        return tcp_errno(env, errno);
    file->number = number;
    return tcp_ok(env, term);
}

/* (File, Path), on a dirty scheduler. Never waits for a fifo's other end. */
static ERL_NIF_TERM tcp_file_open_it(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary path;
    char name[4096];
    void *object;

    (void)argc;
    if (!enif_get_resource(env, argv[0], tcp_files, &object) ||
        !enif_inspect_binary(env, argv[1], &path) || memchr(path.data, 0, path.size) != NULL)
        return enif_make_badarg(env);
    if (path.size >= sizeof name)
        return tcp_error(env, "enametoolong");
    memcpy(name, path.data, path.size);
    name[path.size] = 0;
    return tcp_file_has(env, (struct tcp_file *)object, argv[0],
                        open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* (Path) -> {ok, File} | {error, Reason}. The file is made here: on a dirty scheduler its type may be
 * gone, when the caller was killed and this code purged. */
static ERL_NIF_TERM tcp_file_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct tcp_file *file = tcp_file_new();
    ERL_NIF_TERM next[2];

    (void)argc;
    if (file == NULL)
        return tcp_error(env, "enomem");
    next[0] = enif_make_resource(env, file);
    next[1] = argv[0];
    enif_release_resource(file);
    return enif_schedule_nif(env, "file_open", ERL_NIF_DIRTY_JOB_IO_BOUND, tcp_file_open_it, 2,
                             next);
}

/* (Handle) -> {ok, File} | {error, Reason}: of what prim_file:get_handle/1 gives. */
static ERL_NIF_TERM tcp_file_dup(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary handle;
    struct tcp_file *file;
    ERL_NIF_TERM term;
    int number;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &handle) || handle.size != sizeof number)
        return enif_make_badarg(env);
    memcpy(&number, handle.data, sizeof number);
    file = tcp_file_new();
    if (file == NULL)
        return tcp_error(env, "enomem");
    term =
        tcp_file_has(env, file, enif_make_resource(env, file), fcntl(number, F_DUPFD_CLOEXEC, 0));
    enif_release_resource(file);
    return term;
}

#endif
