/* The order of all terms. */
#ifndef TAME_HOST_ORDER_H
#define TAME_HOST_ORDER_H

#include "term/term.h"

/* <0, 0 or >0. exact: integers come before floats and never equal them, as keys of maps are
 * compared and as =:= does. */
int term_compare(term a, term b, int exact);
int term_identical(term a, term b);

/* Sorts len pairs of a map by their keys. */
void order_pairs(term *pairs, size_t len);

/* Fills in a map's keys and their values, ordered by key: to compare with another map. */
void map_sorted(term map, term *keys, term *values);

/* The same in the order of iteration for a small map, and by key for any other: to print it. */
void map_ordered(term map, term *keys, term *values);

#endif
