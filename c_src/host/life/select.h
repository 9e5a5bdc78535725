/* Descriptors of the library that are waited for: each event once, by a message to a process.
 *
 * What is returned are the bits ERL_NIF_SELECT_... of enif_select, negative when it has failed. */
#ifndef TAME_HOST_SELECT_H
#define TAME_HOST_SELECT_H

#include "term/resource.h"

/* What is sent: message, a copy of it, or else {select, Resource, message, ready_input} or the like,
 * where message is a reference or an atom. */
struct select_message {
    ErlNifPid to;
    term message;
    int is_whole;
};

/* events: OS_READY_... */
int select_wait_for(struct resource *resource, int fd, int events,
                    const struct select_message *message);
int select_cancel(struct resource *resource, int fd, int events);

/* Calls the type's stop callback, in this thread, once nothing is sent any more. */
int select_stop(struct resource *resource, int fd);

#endif
