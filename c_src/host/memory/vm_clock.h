/* The VM's monotonic time: this machine's with an offset, which changes while the VM corrects its clock. */
#ifndef TAME_HOST_VM_CLOCK_H
#define TAME_HOST_VM_CLOCK_H

#include <stdint.h>

/* More than any clock shows: two of them can be added. */
#define VM_CLOCK_OFFSET_MAX (INT64_MAX / 2)

/* From now on, within VM_CLOCK_OFFSET_MAX. What vm_clock_ns returned is not taken back: with a smaller offset
 * it stands still for as long. */
void vm_clock_set(int64_t offset_ns);

int64_t vm_clock_ns(void);

#endif
