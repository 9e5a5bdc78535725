/* What the audit wants of the operating system's process that it calls functions in: where its
 * standard output goes, and how much of malloc's memory is in use. For tame_audit_process.erl. */
#define _GNU_SOURCE
#include <erl_nif.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "../stateless.h"

/* mute() -> Saved: standard output goes nowhere, until unmute(Saved). The caller owns the file
 * descriptor that Saved is; -1 where there is none left. */
static ERL_NIF_TERM mute(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int saved, nowhere;

    (void)argc;
    (void)argv;
    fflush(stdout);
    saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (saved >= 0 && nowhere >= 0)
        dup2(nowhere, STDOUT_FILENO);
    if (nowhere >= 0)
        close(nowhere);
    return enif_make_int(env, saved);
}

/* unmute(Saved) -> ok. What C's library still holds of what was printed goes nowhere too. */
static ERL_NIF_TERM unmute(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    int saved;

    (void)argc;
    if (!enif_get_int(env, argv[0], &saved))
        return enif_make_badarg(env);
    fflush(stdout);
    if (saved >= 0) {
        dup2(saved, STDOUT_FILENO);
        close(saved);
    }
    return enif_make_atom(env, "ok");
}

/* malloced() -> bytes that malloc has given out and not got back, in all arenas and maps; undefined
 * where the C library does not say. */
static ERL_NIF_TERM malloced(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc;
    (void)argv;
#if defined __GLIBC_PREREQ
#if __GLIBC_PREREQ(2, 33)
    struct mallinfo2 info = mallinfo2();

    return enif_make_uint64(env, info.uordblks + info.hblkhd);
#endif
#endif
    return enif_make_atom(env, "undefined");
}

/* mallinfo2 goes through all that is free, under malloc's locks. */
static ErlNifFunc functions[] = {{"mute", 0, mute, 0},
                                 {"unmute", 1, unmute, 0},
                                 {"malloced", 0, malloced, ERL_NIF_DIRTY_JOB_CPU_BOUND}};

ERL_NIF_INIT(tame_audit_process, functions, NULL, NULL, stateless_upgrade, NULL)
