/* One call of a NIF, from its arguments in external format to its reply.
 *
 * The control port and the ring both use it: they differ in their call_writer only.
 */
#ifndef TAME_HOST_CALL_H
#define TAME_HOST_CALL_H

#include "life/library.h"
#include "term/term.h"

enum reply_kind { REPLY_VALUE, REPLY_RAISE, REPLY_BADARG };

struct reply {
    enum reply_kind kind;
    size_t size; /* of the term in external format, no version byte; 0 with REPLY_BADARG */
    const uint64_t *leases; /* those that the VM must hold until it has read the reply */
    size_t leases_len;
};

struct call_writer {
    size_t most; /* there is no place for more bytes than that */
    /* A place for reply->size bytes, or NULL: there is none so large, and an error takes its place.
     * Not called with REPLY_BADARG. It must not lie where the call's arguments do. */
    unsigned char *(*room)(struct call_writer *writer, const struct reply *reply);
    /* The bytes are written: publish them. Called once for each call. */
    void (*done)(struct call_writer *writer, const struct reply *reply);
    /* Whether nobody waits for the reply any more; may be NULL: host_cancel says so. */
    int (*cancelled)(struct call_writer *writer);
    /* Messages sent before reach the VM before the reply without our doing. */
    int in_order;
};

/* A call that runs. */
struct call {
    struct call *next;
    _Atomic int cancelled;
    struct call_writer *writer;
    term caller; /* a pid, or TERM_NONE: the library never asks */
    struct library *library;
    const char *function;
    struct enif_environment_t env;
};

/* ---- libraries that can be called ----------------------------------------------------- */

/* Puts a library into the table, with the caller's share of it, by its number. */
void host_calls_begin(unsigned number, struct library *library);

/* NULL: there is none of this number, or there are no such numbers. */
struct library *host_calls_library(unsigned number);

/* Takes it out: no call of it begins any more. The caller then says host_calls_ended: the table's
 * share goes when the last call that runs has ended. NULL: there was none. */
struct library *host_calls_end(unsigned number);
void host_calls_ended(struct library *library);

/* ---- calls ---------------------------------------------------------------------------- */

/* Calls a function, by its number (library.h), from whatever thread. args is a list in external
 * format, with or without the version byte, and stays where it is until writer->done. When
 * the library wants_caller, its first element is the caller's pid. One of a library that is not
 * loaded any more raises unloaded: its caller was killed while the call waited for a worker.
 *
 * Returns 0; -1: there is no such function, or args is no such list, and nothing was written. */
int host_call(int function, uint64_t id, const unsigned char *args, size_t size,
              struct call_writer *writer);

/* Whether it is listed with a dirty flag. */
int host_call_is_dirty(unsigned function);

/* Whether the caller is dead or past its deadline. */
int host_is_cancelled(struct call *call);

/* The caller is dead or past its deadline: a running call of this id is told so. */
void host_cancel(uint64_t id);

#endif
