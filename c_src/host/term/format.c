/* Conversions, see format.h: %T is ours, each other one is done by the C library. */
#include <ctype.h>
#include <inttypes.h>
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

/* What stands in a field of the width that spec begins with. */
struct field {
    int width, is_left;
};

static struct field field_of(const char *spec)
{
    const char *width = spec + strspn(spec, "%-+ #0");

    return (struct field){(int)strtol(width, NULL, 10),
                          memchr(spec, '-', (size_t)(width - spec)) != NULL};
}

static void put_blanks(struct sink *sink, size_t size, int width)
{
    for (size_t i = size; width > 0 && i < (size_t)width; i++)
        sink_put(sink, " ", 1);
}

static void put_term(struct sink *sink, const char *spec, term t)
{
    struct field field = field_of(spec);
    struct sink measured = {.len = 0};

    if (field.width > 0)
        print_term(&measured, t);
    if (!field.is_left)
        put_blanks(sink, measured.len, field.width);
    print_term(sink, t);
    if (field.is_left)
        put_blanks(sink, measured.len, field.width);
}

/* As the VM: every digit, and to the right whatever the flags. */
static void put_pointer(struct sink *sink, const char *spec, const void *pointer)
{
    char text[2 + 16 + 1];

    snprintf(text, sizeof text, "0x%016" PRIxPTR, (uintptr_t)pointer);
    put_blanks(sink, strlen(text), field_of(spec).width);
    sink_text(sink, text);
}

/* The VM's own sizes, a number of bits after 'b' or "bp" for a pointer's, as C's. */
static const char *read_bits(const char *format, const char **size)
{
    char *end = NULL;
    const long bits = format[1] == 'p' ? 64 : strtol(format + 1, &end, 10);

    *size = bits == 64 ? "l" : bits == 8 ? "hh" : "";
    return end == NULL ? format + 2 : end;
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
    if (format[0] == 'b' && (format[1] == 'p' || isdigit((unsigned char)format[1]))) {
        const char *bits;
        format = read_bits(format, &bits);
        len += strlen(strcpy(spec + len, strcpy(size, bits)));
    }
    for (size_t i = 0; *format != '\0' && strchr("hlLzjt", *format) != NULL && i < 2; i++)
        size[i] = spec[len++] = *format++;
    spec[len++] = *format;
    spec[len] = '\0';

    switch (*format) {
    case '\0':
        return format;
    case 'T':
        put_term(sink, spec, va_arg(*args, term));
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
        put_pointer(sink, spec, va_arg(*args, void *));
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
