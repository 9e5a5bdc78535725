/* Questions that are terms, see query.h. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "memory/die.h"
#include "port/ask.h"
#include "port/port.h"
#include "term/atom.h"
#include "wire/etf.h"
#include "wire/query.h"
#include "wire/readable.h"

term query_term(ErlNifEnv *env, const char *name, unsigned count, ...)
{
    term *elements, tuple = term_new_tuple(env, count + 1, &elements);
    va_list args;

    elements[0] = atom_make((const unsigned char *)name, strlen(name), 1);
    va_start(args, count);
    for (unsigned i = 1; i <= count; i++)
        elements[i] = va_arg(args, term);
    va_end(args);
    return tuple;
}

/* Names in questions go as binaries, but the terms of a phash2 may hold atoms that are new: then
 * the VM is told first (prepare.h). Resources in them are known to it. */
term query_ask(ErlNifEnv *env, term what)
{
    struct etf_out out;
    unsigned char *room, *answer = NULL;
    size_t size;
    term made = TERM_NONE;

    if (port.out < 0)
        return TERM_NONE;
    etf_out_init(&out);
    out.most = READABLE_BYTES;
    etf_size(what, ETF_COMPARABLE, &out);
    if (out.size <= READABLE_BYTES) {
        room = host_malloc(ASK_HEAD_BYTES + out.size);
        etf_write(what, room + ASK_HEAD_BYTES);
        if (readable(room + ASK_HEAD_BYTES - 1, out.size))
            answer = ask(room, out.size, &size);
        free(room);
    }
    etf_out_free(&out);
    if (answer != NULL && etf_read(env, answer, size, ETF_TRUSTED, &made) != size)
        host_die("the VM's answer to a query is not a term");
    free(answer);
    return made;
}
