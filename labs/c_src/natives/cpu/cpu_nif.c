/* tame_cpu: the CPU time that an OS process has used, all its threads together, those that have ended
 * included. It is a clock that the kernel has for each process, exact to the nanosecond, where
 * /proc/PID/stat counts hundredths of a second. */
#include <erl_nif.h>
#include <errno.h>
#include <time.h>

#include "../stateless.h"

#define NS_PER_S 1000000000U

/* 0, or an error number. */
static int clock_of(int os_pid, clockid_t *clock)
{
#ifdef __APPLE__ /* has no such clock */
    (void)os_pid;
    (void)clock;
    return ENOSYS;
#else
    return clock_getcpuclockid(os_pid, clock);
#endif
}

static ERL_NIF_TERM process_ns(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (OsPid) -> Ns | unknown */
    int os_pid;
    clockid_t clock;
    struct timespec used;
    (void)argc;
    if (!enif_get_int(env, argv[0], &os_pid) || os_pid <= 0)
        return enif_make_badarg(env);
    if (clock_of(os_pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return enif_make_atom(env, "unknown");
    return enif_make_uint64(env, (ErlNifUInt64)used.tv_sec * NS_PER_S + (ErlNifUInt64)used.tv_nsec);
}

static ErlNifFunc functions[] = {{"process_ns", 1, process_ns, 0}};

ERL_NIF_INIT(tame_cpu, functions, NULL, NULL, stateless_upgrade, NULL)
