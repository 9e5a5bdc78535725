/* Conversions, see format.h: %T is ours, each other one is done by the C library. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "term/format.h"
#include "term/print.h"

/* One conversion by the C library: its text may be of any length. */
#define PUT_BY_C(sink, spec, value)                              \
    do {                                                         \
        __auto_type value_ = (value); /* once: it is a va_arg */ \
        int size_ = snprintf(NULL, 0, spec, value_);             \
        char *text_ = host_malloc((size_t)size_ + 1);            \
        snprintf(text_, (size_t)size_ + 1, spec, value_);        \
        sink_put(sink, text_, (size_t)size_);                    \
        free(text_);                                             \
    } while (0)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

/* size: the letters h, l, L, z, j, t that come before the conversion, two at most. */
static void put_integer(struct sink *sink, const char *spec, const char *size, int is_signed,
                        va_list *args)
{
    if (size[0] == 'l' && size[1] == 'l')
        PUT_BY_C(sink, spec, va_arg(*args, long long));
    else if (size[0] == 'l')
        PUT_BY_C(sink, spec, va_arg(*args, long));
    else if (size[0] == 'z' || size[0] == 't')
        PUT_BY_C(sink, spec, va_arg(*args, size_t));
    else if (size[0] == 'j')
        PUT_BY_C(sink, spec, va_arg(*args, intmax_t));
    else if (is_signed)
        PUT_BY_C(sink, spec, va_arg(*args, int));
    else
        PUT_BY_C(sink, spec, va_arg(*args, unsigned));
}

/* Takes one conversion from format, which stands behind its '%'. Returns what follows it. */
static const char *put_conversion(struct sink *sink, const char *format, va_list *args)
{
    char spec[64] = "%", size[3] = "";
    size_t len = 1;

    for (; *format != '\0' && strchr("-+ #0123456789.*", *format) != NULL; format++) {
        if (*format == '*')
            len += (size_t)snprintf(spec + len, 12, "%d", va_arg(*args, int));
        else if (len < 40)
            spec[len++] = *format;
    }
    for (size_t i = 0; *format != '\0' && strchr("hlLzjt", *format) != NULL && i < 2; i++)
        size[i] = spec[len++] = *format++;
    spec[len++] = *format;
    spec[len] = '\0';

    switch (*format) {
    case '\0':
        return format;
    case 'T':
        print_term(sink, va_arg(*args, term));
        break;
    case 'd':
    case 'i':
        put_integer(sink, spec, size, 1, args);
        break;
    case 'o':
    case 'u':
    case 'x':
    case 'X':
        put_integer(sink, spec, size, 0, args);
        break;
    case 'c':
        PUT_BY_C(sink, spec, va_arg(*args, int));
        break;
    case 's':
        PUT_BY_C(sink, spec, va_arg(*args, const char *));
        break;
    case 'p':
        PUT_BY_C(sink, spec, va_arg(*args, void *));
        break;
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
        if (size[0] == 'L')
            PUT_BY_C(sink, spec, va_arg(*args, long double));
        else
            PUT_BY_C(sink, spec, va_arg(*args, double));
        break;
    default: /* "%%", and what no printf knows: as it is */
        sink_put(sink, format, 1);
    }
    return format + 1;
}

#pragma GCC diagnostic pop

void format_all(struct sink *sink, const char *format, va_list source)
{
    va_list args;

    va_copy(args, source);
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        sink_put(sink, format, plain);
        format += plain;
        if (*format == '%')
            format = put_conversion(sink, format + 1, &args);
    }
    va_end(args);
}
