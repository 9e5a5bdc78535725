/* What the VM reads of one frame once the host has its ring, as tame_control.erl says: it ends a host that
 * writes more. A test compares the two. */
#ifndef TAME_HOST_FRAME_BOUNDS_H
#define TAME_HOST_FRAME_BOUNDS_H

#define FRAME_BYTES_MAX (1u << 26)
/* That it takes in the VM. */
#define FRAME_MEMORY_MAX (1u << 28)
/* Leases in one list. */
#define LEASES_MAX 1000000

#endif
