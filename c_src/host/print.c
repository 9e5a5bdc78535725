/* enif_fprintf and its kin: printf with %T for a term, in the VM's notation. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "env.h"
#include "host.h"
#include "map.h"
#include "resource.h"

/* What is printed, and how much. With a buffer, what does not fit is counted and dropped. */
struct sink {
    FILE *file;   /* or */
    char *buffer; /* of size bytes, room for a last zero byte included */
    size_t size, len;
};

static void put(struct sink *sink, const char *text, size_t size)
{
    if (sink->file != NULL) {
        fwrite(text, 1, size, sink->file);
    } else if (sink->len + 1 < sink->size) {
        size_t fits = sink->size - 1 - sink->len;
        memcpy(sink->buffer + sink->len, text, size < fits ? size : fits);
    }
    sink->len += size;
}

static void put_text(struct sink *sink, const char *text)
{
    put(sink, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) static void put_format(struct sink *sink, const char *format,
                                                             ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    put_text(sink, text);
}

/* ---- terms ---------------------------------------------------------------------------- */

/* The next character of UTF-8. */
static unsigned next_char(const unsigned char **at)
{
    unsigned c = *(*at)++;

    if (c < 0x80)
        return c;
    int more = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
    for (c &= 0x3fu >> more; more > 0; more--)
        c = c << 6 | (*(*at)++ & 0x3f);
    return c;
}

static int is_lower(unsigned c)
{
    return (c >= 'a' && c <= 'z') || (c >= 0xdf && c <= 0xff && c != 0xf7);
}

static int is_name_char(unsigned c)
{
    return is_lower(c) || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (c >= 0xc0 && c <= 0xde && c != 0xd7);
}

static void put_escaped(struct sink *sink, const unsigned char *start, const unsigned char *end,
                        unsigned c)
{
    if (c == '\'' || c == '\\')
        put_format(sink, "\\%c", (char)c);
    else if (c == '\n')
        put_text(sink, "\\n");
    else if (c == '\f')
        put_text(sink, "\\f");
    else if (c == '\t')
        put_text(sink, "\\t");
    else if (c == '\r')
        put_text(sink, "\\r");
    else if (c == '\b')
        put_text(sink, "\\b");
    else if (c == '\v')
        put_text(sink, "\\v");
    else if (c < ' ' || (c >= 0x80 && c < 0xa0))
        put_format(sink, "\\%03o", c);
    else
        put(sink, (const char *)start, (size_t)(end - start));
}

static void put_atom(struct sink *sink, term t)
{
    const struct atom *atom = atom_of(t);
    const unsigned char *at = atom->name, *end = at + atom->size;
    int plain = atom->size > 0 && is_lower(next_char(&at));

    while (plain && at < end)
        plain = is_name_char(next_char(&at));
    if (plain) {
        put(sink, (const char *)atom->name, atom->size);
        return;
    }
    put_text(sink, "'");
    for (at = atom->name; at < end;) {
        const unsigned char *start = at;
        unsigned c = next_char(&at);
        put_escaped(sink, start, at, c);
    }
    put_text(sink, "'");
}

/* In decimal: the digits are divided until nothing is left, 19 places at a time. */
static void put_big(struct sink *sink, term t)
{
    struct box_big *big = box_of(t);
    size_t len = box_size(t), places = 0;
    uint64_t *digits = host_malloc(len * 8), *groups = host_malloc((len + 1) * 2 * 8);

    memcpy(digits, big->digits, len * 8);
    while (len > 0) {
        unsigned __int128 rest = 0;
        for (size_t i = len; i-- > 0;) {
            rest = rest << 64 | digits[i];
            digits[i] = (uint64_t)(rest / UINT64_C(10000000000000000000));
            rest %= UINT64_C(10000000000000000000);
        }
        groups[places++] = (uint64_t)rest;
        while (len > 0 && digits[len - 1] == 0)
            len--;
    }
    if (big->negative)
        put_text(sink, "-");
    put_format(sink, "%llu", (unsigned long long)groups[--places]);
    while (places-- > 0)
        put_format(sink, "%019llu", (unsigned long long)groups[places]);
    free(digits);
    free(groups);
}

static int is_printable(int64_t c)
{
    return (c >= ' ' && c <= 0x7e) || (c >= 0xa0 && c <= 0xff) || c == '\n' || c == '\t' ||
           c == '\r';
}

static int is_string(term list)
{
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        term head = cell_of(list)[0];
        if (!is_small(head) || !is_printable(small_value(head)))
            return 0;
    }
    return list == TERM_NIL;
}

static void put_string(struct sink *sink, term list)
{
    put_text(sink, "\"");
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        char c = (char)small_value(cell_of(list)[0]);
        /* Nothing else is escaped, as in the VM. */
        if (c == '\n')
            put_text(sink, "\\n");
        else if (c == '"')
            put_text(sink, "\\\"");
        else
            put(sink, &c, 1);
    }
    put_text(sink, "\"");
}

static void put_binary(struct sink *sink, const struct box_binary *binary)
{
    size_t whole = binary->size - (binary->last_bits != 0);
    int printable = binary->last_bits == 0 && binary->size > 0;

    for (size_t i = 0; i < whole && printable; i++)
        printable = isprint(binary->data[i]);
    put_text(sink, "<<");
    if (printable) {
        put_text(sink, "\"");
        for (size_t i = 0; i < whole; i++)
            /* A backslash stays as it is, as the VM leaves it. */
            put(sink, binary->data[i] == '"' ? "\\\"" : (const char *)&binary->data[i],
                binary->data[i] == '"' ? 2 : 1);
        put_text(sink, "\"");
    } else {
        for (size_t i = 0; i < whole; i++)
            put_format(sink, i == 0 ? "%d" : ",%d", binary->data[i]);
        if (binary->last_bits)
            put_format(sink, whole == 0 ? "%d:%u" : ",%d:%u",
                       binary->data[whole] >> (8 - binary->last_bits), binary->last_bits);
    }
    put_text(sink, ">>");
}

static void put_ref(struct sink *sink, term t)
{
    struct box_ref ref;

    resource_ref_words(t, &ref);
    put_text(sink, "#Ref<0");
    for (size_t i = ref.len; i-- > 0;)
        put_format(sink, ".%u", ref.words[i]);
    put_text(sink, ">");
}

/* What is left to print of a term: a term, or the text that follows one. */
struct part {
    const char *text; /* or, when it is NULL, */
    term t;
    int in_list; /* t is a tail: "," or "|" comes before it, "]" after it */
};

static void push(struct work *work, const char *text, term t, int in_list)
{
    *(struct part *)work_push(work) = (struct part){text, t, in_list};
}

static void put_one(struct sink *sink, term t, struct work *work)
{
    if (t == TERM_NONE) {
        put_text(sink, "<TNV>");
    } else if (t == TERM_NIL) {
        put_text(sink, "[]");
    } else if (is_small(t)) {
        put_format(sink, "%lld", (long long)small_value(t));
    } else if (is_atom(t)) {
        put_atom(sink, t);
    } else if (is_local_pid(t)) {
        put_format(sink, "<0.%llu.%llu>", (unsigned long long)(t >> 4 & 0xfffffff),
                   (unsigned long long)(t >> 32));
    } else if (is_local_port(t)) {
        put_format(sink, "#Port<0.%llu>", (unsigned long long)(t >> 4));
    } else if (is_list_cell(t)) {
        if (is_string(t)) {
            put_string(sink, t);
        } else {
            put_text(sink, "[");
            push(work, NULL, cell_of(t)[1], 1);
            push(work, NULL, cell_of(t)[0], 0);
        }
    } else if (is_boxed(t)) {
        switch (box_kind(t)) {
        case BOX_TUPLE:
            put_text(sink, "{");
            push(work, "}", 0, 0);
            for (size_t i = box_size(t); i-- > 0;) {
                push(work, NULL, ((struct box_tuple *)box_of(t))->elements[i], 0);
                if (i > 0)
                    push(work, ",", 0, 0);
            }
            break;
        case BOX_MAP: {
            size_t len = map_len(t);
            term *sorted = host_malloc(2 * len * sizeof(term) + 1);
            map_ordered(t, sorted, sorted + len);
            put_text(sink, "#{");
            push(work, "}", 0, 0);
            for (size_t i = len; i-- > 0;) {
                push(work, NULL, sorted[len + i], 0);
                push(work, "=>", 0, 0);
                push(work, NULL, sorted[i], 0);
                if (i > 0)
                    push(work, ",", 0, 0);
            }
            free(sorted);
            break;
        }
        case BOX_BIG:
            put_big(sink, t);
            break;
        case BOX_FLOAT:
            put_format(sink, "%e", ((struct box_float *)box_of(t))->value);
            break;
        case BOX_BINARY:
            put_binary(sink, box_of(t));
            break;
        case BOX_REF:
        case BOX_RESOURCE:
            put_ref(sink, t);
            break;
        case BOX_FOREIGN:
            put_text(sink, "#Foreign<>");
            break;
        case BOX_FUN:
            put_text(sink, "#Fun<>");
            break;
        }
    }
}

static void put_tail(struct sink *sink, term t, struct work *work)
{
    if (is_list_cell(t)) {
        put_text(sink, ",");
        push(work, NULL, cell_of(t)[1], 1);
        push(work, NULL, cell_of(t)[0], 0);
    } else if (t == TERM_NIL) {
        put_text(sink, "]");
    } else {
        put_text(sink, "|");
        push(work, "]", 0, 0);
        push(work, NULL, t, 0);
    }
}

static void put_term(struct sink *sink, term t)
{
    struct work work;
    struct part *top;

    work_init(&work, sizeof *top);
    push(&work, NULL, t, 0);
    while ((top = work_top(&work)) != NULL) {
        struct part part = *top;
        work_pop(&work);
        if (part.text != NULL)
            put_text(sink, part.text);
        else if (part.in_list)
            put_tail(sink, part.t, &work);
        else
            put_one(sink, part.t, &work);
    }
    work_free(&work);
}

/* ---- formats -------------------------------------------------------------------------- */

/* One conversion by the C library: its text may be of any length. */
#define PUT_BY_C(sink, spec, value)                              \
    do {                                                         \
        __auto_type value_ = (value); /* once: it is a va_arg */ \
        int size_ = snprintf(NULL, 0, spec, value_);             \
        char *text_ = host_malloc((size_t)size_ + 1);            \
        snprintf(text_, (size_t)size_ + 1, spec, value_);        \
        put(sink, text_, (size_t)size_);                         \
        free(text_);                                             \
    } while (0)

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

/* size: how many of the letters h, l, L, z, j, t come before the conversion, summed up. */
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
        put_term(sink, va_arg(*args, term));
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
        put(sink, format, 1);
    }
    return format + 1;
}

#pragma GCC diagnostic pop

static void put_all(struct sink *sink, const char *format, va_list source)
{
    va_list args;

    va_copy(args, source);
    while (*format != '\0') {
        size_t plain = strcspn(format, "%");
        put(sink, format, plain);
        format += plain;
        if (*format == '%')
            format = put_conversion(sink, format + 1, &args);
    }
    va_end(args);
}

int enif_vfprintf(FILE *file, const char *format, va_list args)
{
    struct sink sink = {.file = file};

    put_all(&sink, format, args);
    return (int)sink.len;
}

int enif_vsnprintf(char *buffer, size_t size, const char *format, va_list args)
{
    struct sink sink = {.buffer = buffer, .size = size};

    put_all(&sink, format, args);
    if (size > 0)
        buffer[sink.len < size ? sink.len : size - 1] = '\0';
    return (int)sink.len;
}

int enif_fprintf(FILE *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int size = enif_vfprintf(file, format, args);
    va_end(args);
    return size;
}

int enif_snprintf(char *buffer, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = enif_vsnprintf(buffer, size, format, args);
    va_end(args);
    return len;
}
