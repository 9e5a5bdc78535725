/* Printing terms, see print.h. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/work.h"
#include "term/atom.h"
#include "term/lease.h"
#include "term/map.h"
#include "term/order.h"
#include "term/print.h"

/* ---- atoms ---------------------------------------------------------------------------- */

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
        sink_format(sink, "\\%c", (char)c);
    else if (c == '\n')
        sink_text(sink, "\\n");
    else if (c == '\f')
        sink_text(sink, "\\f");
    else if (c == '\t')
        sink_text(sink, "\\t");
    else if (c == '\r')
        sink_text(sink, "\\r");
    else if (c == '\b')
        sink_text(sink, "\\b");
    else if (c == '\v')
        sink_text(sink, "\\v");
    else if (c < ' ' || (c >= 0x80 && c < 0xa0))
        sink_format(sink, "\\%03o", c);
    else
        sink_put(sink, (const char *)start, (size_t)(end - start));
}

static void put_atom(struct sink *sink, term t)
{
    const struct atom *atom = atom_of(t);
    const unsigned char *at = atom->name, *end = at + atom->size;
    int plain = atom->size > 0 && is_lower(next_char(&at));

    while (plain && at < end)
        plain = is_name_char(next_char(&at));
    if (plain) {
        sink_put(sink, (const char *)atom->name, atom->size);
        return;
    }
    sink_text(sink, "'");
    for (at = atom->name; at < end;) {
        const unsigned char *start = at;
        unsigned c = next_char(&at);
        put_escaped(sink, start, at, c);
    }
    sink_text(sink, "'");
}

/* ---- numbers, strings, binaries ------------------------------------------------------- */

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
        sink_text(sink, "-");
    sink_format(sink, "%llu", (unsigned long long)groups[--places]);
    while (places-- > 0)
        sink_format(sink, "%019llu", (unsigned long long)groups[places]);
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
    sink_text(sink, "\"");
    for (; is_list_cell(list); list = cell_of(list)[1]) {
        char c = (char)small_value(cell_of(list)[0]);
        /* Nothing else is escaped, as in the VM. */
        if (c == '\n')
            sink_text(sink, "\\n");
        else if (c == '"')
            sink_text(sink, "\\\"");
        else
            sink_put(sink, &c, 1);
    }
    sink_text(sink, "\"");
}

static void put_binary(struct sink *sink, const struct box_binary *binary)
{
    size_t whole = binary->size - (binary->last_bits != 0);
    int printable = binary->last_bits == 0 && binary->size > 0;

    for (size_t i = 0; i < whole && printable; i++)
        printable = isprint(binary->data[i]);
    sink_text(sink, "<<");
    if (printable) {
        sink_text(sink, "\"");
        for (size_t i = 0; i < whole; i++)
            /* A backslash stays as it is, as the VM leaves it. */
            sink_put(sink, binary->data[i] == '"' ? "\\\"" : (const char *)&binary->data[i],
                     binary->data[i] == '"' ? 2 : 1);
        sink_text(sink, "\"");
    } else {
        for (size_t i = 0; i < whole; i++)
            sink_format(sink, i == 0 ? "%d" : ",%d", binary->data[i]);
        if (binary->last_bits)
            sink_format(sink, whole == 0 ? "%d:%u" : ",%d:%u",
                        binary->data[whole] >> (8 - binary->last_bits), binary->last_bits);
    }
    sink_text(sink, ">>");
}

static void put_ref(struct sink *sink, term t)
{
    struct box_ref ref;

    lease_ref_words(t, &ref);
    sink_text(sink, "#Ref<0");
    for (size_t i = ref.len; i-- > 0;)
        sink_format(sink, ".%u", ref.words[i]);
    sink_text(sink, ">");
}

/* ---- terms in terms ------------------------------------------------------------------- */

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

static void put_tuple(struct sink *sink, term t, struct work *work)
{
    sink_text(sink, "{");
    push(work, "}", 0, 0);
    for (size_t i = box_size(t); i-- > 0;) {
        push(work, NULL, ((struct box_tuple *)box_of(t))->elements[i], 0);
        if (i > 0)
            push(work, ",", 0, 0);
    }
}

static void put_map(struct sink *sink, term t, struct work *work)
{
    size_t len = map_len(t);
    term *sorted = host_malloc(2 * len * sizeof(term) + 1);

    map_ordered(t, sorted, sorted + len);
    sink_text(sink, "#{");
    push(work, "}", 0, 0);
    for (size_t i = len; i-- > 0;) {
        push(work, NULL, sorted[len + i], 0);
        push(work, "=>", 0, 0);
        push(work, NULL, sorted[i], 0);
        if (i > 0)
            push(work, ",", 0, 0);
    }
    free(sorted);
}

static void put_list(struct sink *sink, term t, struct work *work)
{
    if (is_string(t)) {
        put_string(sink, t);
        return;
    }
    sink_text(sink, "[");
    push(work, NULL, cell_of(t)[1], 1);
    push(work, NULL, cell_of(t)[0], 0);
}

static void put_tail(struct sink *sink, term t, struct work *work)
{
    if (is_list_cell(t)) {
        sink_text(sink, ",");
        push(work, NULL, cell_of(t)[1], 1);
        push(work, NULL, cell_of(t)[0], 0);
    } else if (t == TERM_NIL) {
        sink_text(sink, "]");
    } else {
        sink_text(sink, "|");
        push(work, "]", 0, 0);
        push(work, NULL, t, 0);
    }
}

static void put_box(struct sink *sink, term t, struct work *work)
{
    switch (box_kind(t)) {
    case BOX_TUPLE:
        put_tuple(sink, t, work);
        break;
    case BOX_MAP:
        put_map(sink, t, work);
        break;
    case BOX_BIG:
        put_big(sink, t);
        break;
    case BOX_FLOAT:
        sink_format(sink, "%e", ((struct box_float *)box_of(t))->value);
        break;
    case BOX_BINARY:
        put_binary(sink, box_of(t));
        break;
    case BOX_REF:
    case BOX_RESOURCE:
        put_ref(sink, t);
        break;
    case BOX_FOREIGN:
        sink_text(sink, "#Foreign<>");
        break;
    case BOX_FUN:
        sink_text(sink, "#Fun<>");
        break;
    }
}

static void put_one(struct sink *sink, term t, struct work *work)
{
    if (t == TERM_NONE)
        sink_text(sink, "<TNV>");
    else if (t == TERM_NIL)
        sink_text(sink, "[]");
    else if (is_small(t))
        sink_format(sink, "%lld", (long long)small_value(t));
    else if (is_atom(t))
        put_atom(sink, t);
    else if (is_local_pid(t))
        sink_format(sink, "<0.%llu.%llu>", (unsigned long long)(t >> 4 & 0xfffffff),
                    (unsigned long long)(t >> 32));
    else if (is_local_port(t))
        sink_format(sink, "#Port<0.%llu>", (unsigned long long)(t >> 4));
    else if (is_list_cell(t))
        put_list(sink, t, work);
    else if (is_boxed(t))
        put_box(sink, t, work);
}

void print_term(struct sink *sink, term t)
{
    struct work work;
    struct part *top;

    work_init(&work, sizeof *top);
    push(&work, NULL, t, 0);
    while ((top = work_top(&work)) != NULL) {
        struct part part = *top;
        work_pop(&work);
        if (part.text != NULL)
            sink_text(sink, part.text);
        else if (part.in_list)
            put_tail(sink, part.t, &work);
        else
            put_one(sink, part.t, &work);
    }
    work_free(&work);
}
