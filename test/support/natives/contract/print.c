/* enif_snprintf. */
#include "contract.h"

/* "Similar to snprintf but this format string also accepts "%T", which formats Erlang terms." */
CASE(print_term)
{
    static char buffer[100000];

    int len = enif_snprintf(buffer, sizeof buffer, "%T", IN);
    return enif_make_tuple2(env, enif_make_int(env, len), text(env, buffer));
}

/* The VM's own conversions, which the compiler does not know. */
static void print_bits(ErlNifEnv *env, struct results *r, const char *format, ...)
{
    char b[200];
    va_list args;

    va_start(args, format);
    enif_vsnprintf(b, sizeof b, format, args);
    va_end(args);
    add(r, text(env, b));
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
    enif_snprintf(b, sizeof b, "%p|%p|%20p|%-20p|%4p", (void *)0x1234, NULL, (void *)16, (void *)16,
                  (void *)16);
    add(&r, text(env, b));
    print_bits(env, &r, "%bpu|%bpd|%10bpx|%-10b64d|%b32d|%b16d|%b8d", 5ul, -5l, 255ul, -9l, -3, 7,
               8);
    enif_snprintf(b, sizeof b, "%10T|%*T|%-10T|%-10T|%-2T|%2T|", enif_make_int(env, 42), 6,
                  enif_make_int(env, 42), enif_make_atom(env, "abc"), IN,
                  enif_make_atom(env, "abc"), enif_make_int(env, 421));
    add(&r, text(env, b));
    enif_snprintf(b, sizeof b, "<%T> and <%T>", IN, enif_make_int(env, 3));
    add(&r, text(env, b));
    memset(b, '#', sizeof b);
    add_int(env, &r, enif_snprintf(b, 5, "0123456789"));
    add(&r, bytes(env, b, 8));
    return all(env, &r);
}
