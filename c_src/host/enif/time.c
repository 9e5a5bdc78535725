/* The functions of the API on time. The VM's clocks are this machine's with an offset that it told.
 */
#include <stdatomic.h>
#include <time.h>

#include "life/thread.h"
#include "memory/vm.h"
#include "memory/vm_clock.h"
#include "term/term.h"

static int64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Units in a second; 0: not a unit. */
static int64_t per_second(ErlNifTimeUnit unit)
{
    switch (unit) {
    case ERL_NIF_SEC:
        return 1;
    case ERL_NIF_MSEC:
        return 1000;
    case ERL_NIF_USEC:
        return 1000000;
    case ERL_NIF_NSEC:
        return 1000000000;
    }
    return 0;
}

/* Towards minus infinity, as erlang:convert_time_unit/3. */
static int64_t divide(int64_t value, int64_t by)
{
    return value / by - (value % by < 0);
}

ErlNifTime enif_convert_time_unit(ErlNifTime value, ErlNifTimeUnit from, ErlNifTimeUnit to)
{
    int64_t from_rate = per_second(from), to_rate = per_second(to);

    if (from_rate == 0 || to_rate == 0)
        return ERL_NIF_TIME_ERROR;
    if (to_rate >= from_rate) /* an overflow wraps, as in the VM */
        return (ErlNifTime)((uint64_t)value * (uint64_t)(to_rate / from_rate));
    return divide(value, from_rate / to_rate);
}

ErlNifTime enif_monotonic_time(ErlNifTimeUnit unit)
{
    if (host_thread.type == ERL_NIF_THR_UNDEFINED)
        return ERL_NIF_TIME_ERROR;
    return enif_convert_time_unit(vm_clock_ns(), ERL_NIF_NSEC, unit);
}

ErlNifTime enif_time_offset(ErlNifTimeUnit unit)
{
    if (host_thread.type == ERL_NIF_THR_UNDEFINED)
        return ERL_NIF_TIME_ERROR;
    return enif_convert_time_unit(vm.time_offset_ns, ERL_NIF_NSEC, unit);
}

/* {MegaSeconds, Seconds, MicroSeconds} */
static term timestamp(ErlNifEnv *env, int64_t us)
{
    return term_tuple(env, 3,
                      (term[]){make_small(us / 1000000000000), make_small(us / 1000000 % 1000000),
                               make_small(us % 1000000)});
}

ERL_NIF_TERM enif_now_time(ErlNifEnv *env)
{
    static _Atomic int64_t last_us; /* never gives the same twice */
    int64_t last = last_us, now;

    do {
        now = clock_ns(CLOCK_REALTIME) / 1000;
        if (now <= last)
            now = last + 1;
    } while (!atomic_compare_exchange_weak(&last_us, &last, now));
    return timestamp(env, now);
}

ERL_NIF_TERM enif_cpu_time(ErlNifEnv *env)
{
    return timestamp(env, clock_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000);
}
