/* Time. */
#include "contract.h"

/* "Converts the val value of time unit from to the corresponding value of time unit to. The result
 * is rounded using the floor function." */
CASE(convert_time)
{
    struct results r = {.len = 0};
    const ErlNifTime values[] = {0,    1,     -1,    999,           1000,
                                 -999, -1000, -1001, 1234567890123, -1234567890123};
    const ErlNifTimeUnit units[] = {ERL_NIF_SEC, ERL_NIF_MSEC, ERL_NIF_USEC, ERL_NIF_NSEC};

    for (size_t v = 0; v < sizeof values / sizeof *values; v++) {
        for (int from = 0; from < 4; from++) {
            for (int to = 0; to <= from; to++)
                add_int(env, &r, enif_convert_time_unit(values[v], units[from], units[to]));
        }
    }
    add_int(env, &r, enif_convert_time_unit(5, ERL_NIF_SEC, ERL_NIF_NSEC));
    add_int(env, &r,
            enif_convert_time_unit(5, (ErlNifTimeUnit)77, ERL_NIF_NSEC) == ERL_NIF_TIME_ERROR);
    return all(env, &r);
}

/* Monotonic time, and its offset to system time, in milliseconds: for the test to hold against the
 * VM's own. */
CASE(clocks)
{
    return enif_make_tuple3(
        env, enif_make_long(env, enif_monotonic_time(ERL_NIF_MSEC)),
        enif_make_long(env, enif_time_offset(ERL_NIF_MSEC)),
        enif_make_int(env, enif_monotonic_time((ErlNifTimeUnit)77) == ERL_NIF_TIME_ERROR));
}

static void *time_main(void *arg)
{
    *(int *)arg = enif_monotonic_time(ERL_NIF_SEC) == ERL_NIF_TIME_ERROR;
    return arg;
}

/* "Returns ERL_NIF_TIME_ERROR if called with an invalid time unit argument, or if called from a
 * thread that is not a scheduler thread." */
CASE(clock_of_other_thread)
{
    int error = -1;
    char name[] = "time";
    ErlNifTid tid;

    enif_thread_create(name, &tid, time_main, &error, NULL);
    enif_thread_join(tid, NULL);
    return enif_make_int(env, error);
}
