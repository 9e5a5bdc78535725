/* enif_snprintf. */
#include "contract.h"

/* "Similar to snprintf but this format string also accepts "%T", which formats Erlang terms." */
CASE(print_term)
{
    static char buffer[100000];

    int len = enif_snprintf(buffer, sizeof buffer, "%T", IN);
    return enif_make_tuple2(env, enif_make_int(env, len), text(env, buffer));
}

CASE(print_formats)
{
    struct results r = {.len = 0};
    char b[200];

    enif_snprintf(b, sizeof b, "%d %5d|%-5d|%05d %u %lu %ld %x %X %o %c %s %%", -1, 42, 42, 42, 7u,
                  8ul, -9l, 255, 255, 8, 'c', "string");
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%10s|%-10s|%.3s|%*d|%-*d|", "right", "left", "cut off", 6, 1, 6, 2);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%lld %llu", -1ll, 18446744073709551615ull);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "%f %.2f %e", 1.5, 2.555, 1e10);
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "<%T> and <%T>", IN, enif_make_int(env, 3));
    add(&r, text(env, b));
    memset(b, '#', sizeof b);
    add_int(env, &r, enif_snprintf(b, 5, "0123456789"));
    add(&r, bytes(env, b, 8));
    return all(env, &r);
}
