/* file.h - files to be sent: a descriptor of our own, closed with its last term. */
#ifndef TAME_TCP_FILE_H
#define TAME_TCP_FILE_H

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "answer.h"

struct tcp_file {
    int number;
};

/* Set by each loading; a library that takes over gets the same type. */
static ErlNifResourceType *tcp_files;

static void tcp_file_destroy(ErlNifEnv *env, void *object)
{
    (void)env;
    (void)close(((struct tcp_file *)object)->number);
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

static ERL_NIF_TERM tcp_file_new(ErlNifEnv *env, int number)
{
    struct tcp_file *file;
    ERL_NIF_TERM term;

    if (number < 0)
        return tcp_errno(env, errno);
    file = (struct tcp_file *)enif_alloc_resource(tcp_files, sizeof *file);
    if (file == NULL) {
        (void)close(number);
        return tcp_error(env, "enomem");
    }
    file->number = number;
    term = enif_make_resource(env, file);
    enif_release_resource(file);
    return tcp_ok(env, term);
}

/* (Path) -> {ok, File} | {error, Reason}. On a dirty scheduler. Never waits for a fifo's other end. */
static ERL_NIF_TERM tcp_file_open(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary path;
    char name[4096];

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &path) || memchr(path.data, 0, path.size) != NULL)
        return enif_make_badarg(env);
    if (path.size >= sizeof name)
        return tcp_error(env, "enametoolong");
    memcpy(name, path.data, path.size);
    name[path.size] = 0;
    return tcp_file_new(env, open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

/* (Handle) -> {ok, File} | {error, Reason}: of what prim_file:get_handle/1 gives. */
static ERL_NIF_TERM tcp_file_dup(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    ErlNifBinary handle;
    int number;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &handle) || handle.size != sizeof number)
        return enif_make_badarg(env);
    memcpy(&number, handle.data, sizeof number);
    return tcp_file_new(env, fcntl(number, F_DUPFD_CLOEXEC, 0));
}

#endif
