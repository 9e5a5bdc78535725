/* The types of terms, and numbers. */
#include "contract.h"
#include <limits.h>
#include <math.h>

/* "Returns true if term is a ..." for each of enif_is_*; and enif_term_type. */
CASE(types)
{
    struct results r = {.len = 0};

    add_int(env, &r, enif_is_atom(env, IN));
    add_int(env, &r, enif_is_binary(env, IN));
    add_int(env, &r, enif_is_empty_list(env, IN));
    add_int(env, &r, enif_is_fun(env, IN));
    add_int(env, &r, enif_is_list(env, IN));
    add_int(env, &r, enif_is_map(env, IN));
    add_int(env, &r, enif_is_number(env, IN));
    add_int(env, &r, enif_is_pid(env, IN));
    add_int(env, &r, enif_is_port(env, IN));
    add_int(env, &r, enif_is_ref(env, IN));
    add_int(env, &r, enif_is_tuple(env, IN));
    add_int(env, &r, enif_is_exception(env, IN));
    add_int(env, &r, enif_term_type(env, IN));
    return all(env, &r);
}

/* "Sets *ip to the integer value of term. Returns true on success, or false if term is not an
 * integer or if the integer is outside the bounds of the type." */
CASE(numbers)
{
    struct results r = {.len = 0};
    term no = enif_make_atom(env, "no");
    int i = -7;
    unsigned u = 7;
    long l = -7;
    unsigned long ul = 7;
    ErlNifSInt64 i64 = -7;
    ErlNifUInt64 u64 = 7;
    double d = 7.5;

    /* What a variable holds after a failure is nobody's business. */
    add(&r, enif_get_int(env, IN, &i) ? enif_make_int(env, i) : no);
    add(&r, enif_get_uint(env, IN, &u) ? enif_make_uint(env, u) : no);
    add(&r, enif_get_long(env, IN, &l) ? enif_make_long(env, l) : no);
    add(&r, enif_get_ulong(env, IN, &ul) ? enif_make_ulong(env, ul) : no);
    add(&r, enif_get_int64(env, IN, &i64) ? enif_make_int64(env, i64) : no);
    add(&r, enif_get_uint64(env, IN, &u64) ? enif_make_uint64(env, u64) : no);
    add(&r, enif_get_double(env, IN, &d) ? enif_make_double(env, d) : no);
    return all(env, &r);
}

/* "Creates an integer term from ..." at every bound of the types. */
CASE(make_numbers)
{
    struct results r = {.len = 0};
    const long longs[] = {0,
                          1,
                          -1,
                          INT_MAX,
                          INT_MIN,
                          LONG_MAX,
                          LONG_MIN,
                          1L << 59,
                          (1L << 59) - 1,
                          -(1L << 59),
                          -(1L << 59) - 1,
                          1L << 60,
                          -(1L << 60) - 1,
                          1L << 62};

    for (size_t i = 0; i < sizeof longs / sizeof *longs; i++) {
        add(&r, enif_make_long(env, longs[i]));
        add(&r, enif_make_ulong(env, (unsigned long)longs[i]));
        add(&r, enif_make_int64(env, longs[i]));
        add(&r, enif_make_uint64(env, (unsigned long)longs[i]));
        add(&r, enif_make_int(env, (int)longs[i]));
        add(&r, enif_make_uint(env, (unsigned)longs[i]));
    }
    add(&r, enif_make_double(env, 0.1));
    add(&r, enif_make_double(env, -1.7976931348623157e308));
    add(&r, enif_make_double(env, 5e-324));
    return all(env, &r);
}

/* "If double argument is not finite or is NaN, enif_make_double invokes enif_make_badarg." */
CASE(make_double_infinite)
{
    return enif_make_double(env, HUGE_VAL);
}

CASE(make_double_nan)
{
    return enif_make_double(env, nan(""));
}
