/* Calls that come by the control port, and their replies: for who drives a host without a ring, and
 * so sees each frame (the tests of the host). */
#ifndef TAME_HOST_PORT_CALL_H
#define TAME_HOST_PORT_CALL_H

#include "port/etf_cursor.h"

/* Has a worker run {call, Id, Function, Args}; its first element was read. */
void port_call(struct etf_cursor *cursor);

#endif
