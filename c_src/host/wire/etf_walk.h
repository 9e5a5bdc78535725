/* The way through a term that sizing and writing it share. Private to etf_write.c. */
#ifndef TAME_HOST_ETF_WALK_H
#define TAME_HOST_ETF_WALK_H

#include "memory/work.h"
#include "term/term.h"

/* What of a term is still to be written: left terms of an array; a map's pairs from behind; or a
 * list from a cell on, its tail included. */
struct walk_item {
    enum { WALK_ARRAY, WALK_PAIRS_BACK, WALK_LIST } kind;
    const term *from;
    size_t left;
    int value; /* WALK_PAIRS_BACK: the value of the pair is next */
};

/* Returns 0 at the end. */
int walk_next(struct work *work, term *next);

void walk_array(struct work *work, const term *from, size_t left);
void walk_list(struct work *work, term list);

/* A larger map is written backwards, as the VM does and reads it (etf_read.c). */
void walk_pairs(struct work *work, term map);

#endif
