/* What reads a term: private to etf_read.c, which goes through it, and etf_leaf.c, which reads what
 * has no terms in it. */
#ifndef TAME_HOST_ETF_READER_H
#define TAME_HOST_ETF_READER_H

#include "wire/etf.h"

struct reader {
    ErlNifEnv *env;
    int depth; /* of funs in funs */
    struct etf_cursor cursor;
    int flags;
    struct work work;
    struct box_map *unchecked;
    const unsigned char *stay_end; /* where the room behind the last binary that stays ends */
};

/* It is no term: nothing more is read. */
static inline term etf_bad(struct reader *reader)
{
    reader->cursor.bad = 1;
    return TERM_NONE;
}

/* Each behind its tag, and TERM_NONE when it is bad. */
term etf_read_atom(struct reader *reader, unsigned tag);
term etf_read_big(struct reader *reader, size_t len);
term etf_read_float(struct reader *reader, unsigned tag);
term etf_read_binary(struct reader *reader, unsigned tag);
term etf_read_string(struct reader *reader);

/* Pids, ports and references: start is where their tag stands. */
term etf_read_identifier(struct reader *reader, unsigned tag, const unsigned char *start);

#endif
