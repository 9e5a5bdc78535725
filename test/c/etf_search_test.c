/* What the search of a reply must find, wherever it stands, and what of text it must not take for it
 * (etf_search.h). Buffers have their own size, so that a byte too many is the sanitizer's to find. */
#include <stdlib.h>

#include "check.h"
#include "etf_search.h"

static const uint8_t forms[] = {ETF_NEW_PID, ETF_NEW_PORT, ETF_V4_PORT,   ETF_NEWER_REFERENCE,
                                ETF_PID,     ETF_PORT,     ETF_REFERENCE, ETF_NEW_REFERENCE};
static const uint8_t atoms[] = {ETF_SMALL_ATOM_UTF8, ETF_ATOM_UTF8, ETF_SMALL_ATOM, ETF_ATOM};

/* Writes an identifier of a node whose name is `name` bytes long. Returns its size. */
static size_t write_identifier(uint8_t *to, uint8_t tag, uint8_t atom, size_t name)
{
    struct etf_identifier form;
    uint8_t *at = to;

    CHECK_EQ(etf_identifier(tag, &form), 1);
    memset(to, 0, 1100);
    *at = tag;
    at += form.head;
    *at++ = atom;
    if (atom == ETF_ATOM_UTF8 || atom == ETF_ATOM)
        *at++ = (uint8_t)(name >> 8);
    *at++ = (uint8_t)name;
    memset(at, 'n', name);
    return (size_t)(at + name - to) + form.between + form.creation;
}

/* Searches the bytes, with `before` bytes of text in front of them and `behind` bytes after them. */
static int found(const uint8_t *bytes, size_t size, size_t before, size_t behind, uint8_t pairs)
{
    const size_t all = before + size + behind;
    uint8_t *data = malloc(all);

    memset(data, '.', all);
    memcpy(data + before, bytes, size);
    const int is_found = etf_may_have(data, 0, all, all, pairs);
    free(data);
    return is_found;
}

static void identifiers_are_found(void)
{
    uint8_t bytes[1200];

    for (size_t f = 0; f < sizeof forms; f++)
        for (size_t a = 0; a < sizeof atoms; a++)
            for (size_t before = 0; before < 40; before++)
                for (size_t behind = 0; behind < 40; behind += 3) {
                    const size_t name = (before * 7) % 256;
                    const size_t size = write_identifier(bytes, forms[f], atoms[a], name);

                    CHECK_EQ(found(bytes, size, before, behind, 255), 1);
                    CHECK_EQ(found(bytes, size - 1, before, 0, 255), 0); /* it is cut short */
                }
}

static void long_names_are_found(void)
{
    uint8_t bytes[1200];
    size_t size = write_identifier(bytes, ETF_NEW_PID, ETF_ATOM_UTF8, ETF_ATOM_BYTES_MAX);

    CHECK_EQ(found(bytes, size, 5, 100, 255), 1);
    size = write_identifier(bytes, ETF_NEW_PID, ETF_ATOM_UTF8, ETF_ATOM_BYTES_MAX + 1);
    CHECK_EQ(found(bytes, size, 5, 100, 255), 0);
}

static void maps_are_found(void)
{
    const uint8_t limits[] = {0, 32, 255};

    for (size_t l = 0; l < sizeof limits; l++)
        for (size_t before = 0; before < 40; before++)
            for (uint64_t pairs = 1; pairs < 600; pairs += 1 + pairs / 40) {
                const uint8_t head[] = {ETF_MAP, 0, 0, (uint8_t)(pairs >> 8), (uint8_t)pairs};
                const int is_more = pairs > limits[l];

                CHECK_EQ(found(head, sizeof head, before, 2 * pairs, limits[l]), is_more);
                CHECK_EQ(found(head, sizeof head, before, 2 * pairs + 30, limits[l]), is_more);
                CHECK_EQ(found(head, sizeof head, before, 2 * pairs - 1, limits[l]), 0);
            }
}

/* Counts of three and of four bytes, in a reply that can hold them. */
static void great_maps_are_found(void)
{
    const uint64_t counts[] = {65535, 65536, 65537, 1 << 20, (1 << 24) - 1, 1 << 24, 1 << 25};

    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        const uint64_t pairs = counts[i];
        const uint8_t head[] = {ETF_MAP, (uint8_t)(pairs >> 24), (uint8_t)(pairs >> 16),
                                (uint8_t)(pairs >> 8), (uint8_t)pairs};

        CHECK_EQ(found(head, sizeof head, 3, 2 * pairs, 32), 1);
        CHECK_EQ(found(head, sizeof head, 16, 2 * pairs + 1, 0), 1);
        CHECK_EQ(found(head, sizeof head, 3, 2 * pairs - 1, 0), 0);
    }
}

/* Only from one place to another, of which the bytes behind belong to what begins there. */
static void steps_are_kept(void)
{
    uint8_t data[400], bytes[1200];
    const size_t size = write_identifier(bytes, ETF_NEW_PID, ETF_SMALL_ATOM_UTF8, 20);

    for (size_t at = 0; at + size <= sizeof data; at++) {
        memset(data, '.', sizeof data);
        memcpy(data + at, bytes, size);
        for (size_t from = 0; from < sizeof data; from += 50) {
            const int is_there = at >= from && at < from + 50;

            CHECK_EQ(etf_may_have(data, from, from + 50, sizeof data, 255), is_there);
        }
    }
}

static void text_is_passed_over(void)
{
    static const char text[] =
        "tags, nodes, edges and the rest: created, updated, related, text that goes on, wasted "
        "rewards, trends and towers; the next few words have been sent. xs, Zones, Yes, XS";

    CHECK_EQ(etf_may_have((const uint8_t *)text, 0, sizeof text, sizeof text, 0), 0);
}

int main(void)
{
    RUN(identifiers_are_found);
    RUN(long_names_are_found);
    RUN(maps_are_found);
    RUN(great_maps_are_found);
    RUN(steps_are_kept);
    RUN(text_is_passed_over);
    return check_report();
}
