/* extents.h - gives out regions of an area: first fit, lowest place first, so that the pages in use
 * are the same few that were used before. Plain C, not thread-safe; each side has one for its area,
 * in memory of its own.
 *
 * Free extents are a list in the order of their places; neighbours are one. With 64 slots there are
 * seldom more than a handful. */
#ifndef TAME_RING_EXTENTS_H
#define TAME_RING_EXTENTS_H

#include <stdint.h>
#include <stdlib.h>

/* In RING_PAGE units, from the start of the file. Without pages: no region. */
struct extent {
    uint32_t at;
    uint32_t pages;
};

struct extent_node {
    struct extent_node *next;
    struct extent free;
};

struct extents {
    struct extent_node *first;
    struct extent_node *spare; /* one for each region given out, so that giving back cannot fail */
    uint64_t spare_len;
    uint64_t regions; /* given out */
    uint64_t used_pages;
    uint64_t used_max; /* the most there ever were */
};

static inline void extents_spare(struct extents *extents, struct extent_node *node)
{
    node->next = extents->spare;
    extents->spare = node;
    extents->spare_len++;
}

/* Returns 0 when memory is short. */
static inline int extents_open(struct extents *extents, struct extent area)
{
    *extents = (struct extents){0};
    extents->first = malloc(sizeof *extents->first);
    if (extents->first == NULL)
        return 0;
    *extents->first = (struct extent_node){NULL, area};
    return 1;
}

static inline void extents_close(struct extents *extents)
{
    struct extent_node *lists[] = {extents->first, extents->spare};

    for (int i = 0; i < 2; i++)
        while (lists[i] != NULL) {
            struct extent_node *next = lists[i]->next;

            free(lists[i]);
            lists[i] = next;
        }
    *extents = (struct extents){0};
}

/* A region of `pages` pages; none when there is no such gap or memory is short. */
static inline struct extent extents_take(struct extents *extents, uint64_t pages)
{
    const struct extent none = {0, 0};
    struct extent_node **place = &extents->first, *node;
    struct extent taken;

    while (*place != NULL && (*place)->free.pages < pages)
        place = &(*place)->next;
    node = *place;
    if (node == NULL || pages == 0)
        return none;
    if (extents->spare_len <= extents->regions && node->free.pages > pages) {
        struct extent_node *spare = malloc(sizeof *spare);

        if (spare == NULL)
            return none;
        extents_spare(extents, spare);
    }
    taken = (struct extent){node->free.at, (uint32_t)pages};
    node->free.at += taken.pages;
    node->free.pages -= taken.pages;
    if (node->free.pages == 0) {
        *place = node->next;
        extents_spare(extents, node);
    }
    extents->regions++;
    extents->used_pages += pages;
    if (extents->used_pages > extents->used_max)
        extents->used_max = extents->used_pages;
    return taken;
}

/* Gives a region back. */
static inline void extents_give(struct extents *extents, struct extent region)
{
    struct extent_node **place = &extents->first, *before = NULL, *after;

    if (region.pages == 0)
        return;
    extents->regions--;
    extents->used_pages -= region.pages;
    for (; *place != NULL && (*place)->free.at < region.at; place = &(*place)->next)
        before = *place;
    after = *place;
    if (before != NULL && before->free.at + before->free.pages == region.at) {
        before->free.pages += region.pages;
    } else {
        before = extents->spare;
        extents->spare = before->next;
        extents->spare_len--;
        *before = (struct extent_node){after, region};
        *place = before;
    }
    if (after != NULL && before->free.at + before->free.pages == after->free.at) {
        before->free.pages += after->free.pages;
        before->next = after->next;
        extents_spare(extents, after);
    }
}

/* Keeps the first `pages` pages of a region and gives the rest back. */
static inline void extents_trim(struct extents *extents, struct extent *region, uint32_t pages)
{
    struct extent rest = {region->at + pages, region->pages - pages};

    /* The rest needs a node of its own; without one the region stays as it is. */
    if (rest.pages == 0 || pages == 0 || extents->spare_len <= extents->regions)
        return;
    region->pages = pages;
    extents->regions++;
    extents_give(extents, rest);
}

#endif
