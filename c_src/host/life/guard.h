/* No orphans: two processes that end each other.
 *
 *     VM ──control pipe──▶ guard ──parent of──▶ host ──forks──▶ the library's children
 *      ◀── {ended, ...} ────   ◀──── standard error, record of a crash
 *
 * The guard is what the VM started. When the VM's end of the pipe closes, it kills the host (which
 * ends by itself, unless it is stopped); when the host ends, it tells the VM how, and ends with the
 * same status, having collected it, so that no zombie stays. When the guard is killed, the kernel
 * kills the host.
 *
 * The host leads a process group of its own, which the guard kills as a whole at the end: what a
 * library has started ends with it. A process that leaves the group (setsid, as a daemon does)
 * stays, and so does any when the guard itself is killed.
 *
 * The guard believes nothing that the host says: it looks at the content of neither the control
 * pipes nor the record, but for passing it on with lengths of its own. It waits for nothing but
 * events: not for the VM to read, and not for the host.
 */
#ifndef TAME_HOST_GUARD_H
#define TAME_HOST_GUARD_H

/* Splits the process. Returns in the host only; the guard never returns. */
struct crash_record;
struct crash_record *guard_split(int control_in, int control_out);

#endif
