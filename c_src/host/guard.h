/* No orphans: two processes that end each other.
 *
 *     VM ──control pipe──▶ guard ──parent of──▶ host
 *
 * The guard is what the VM started. It only waits: when the VM's end of the pipe closes, it kills
 * the host (which does so itself, unless it is stopped); when the host ends, it ends with the same
 * status, having collected it, so that no zombie stays. When the guard is killed, the kernel kills
 * the host.
 */
#ifndef TAME_HOST_GUARD_H
#define TAME_HOST_GUARD_H

/* Splits the process. Returns in the host only; the guard never returns. */
void guard_split(int control_in, int control_out);

#endif
