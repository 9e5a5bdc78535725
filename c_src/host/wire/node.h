/* What our node is called: it may be renamed while we run, when distribution is started or stopped.
 */
#ifndef TAME_HOST_NODE_H
#define TAME_HOST_NODE_H

#include <stddef.h>
#include <stdint.h>

struct atom *node_atom(void);
uint32_t node_creation(void);

void node_set(const unsigned char *name, size_t size, uint32_t creation);

/* Whether this is our node, or was. ask: where it is none of ours, the VM is asked whether that is
 * new. */
int node_is_ours(const unsigned char *name, size_t size, uint32_t creation, int ask);

#endif
