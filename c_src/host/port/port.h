/* The control port as bytes: frames of four bytes of length and one term in external format. */
#ifndef TAME_HOST_PORT_H
#define TAME_HOST_PORT_H

#include <stddef.h>

/* Where the VM's port has its pipes: nouse_stdio. */
#define PORT_IN_FD 3
#define PORT_OUT_FD 4

/* Four bytes at the front of a frame are its length. */
#define PORT_LENGTH_BYTES 4

struct port {
    int in, out; /* -1: there is none (a probe) */
    /* Set while a frame may be half written; NULL: nobody reads it. The guard does (crash.h). */
    _Atomic int *torn;
};

extern struct port port;

/* Makes the port ours alone: other descriptors, which the VM may have leaked, are closed, standard
 * input is empty, standard output is standard error. Returns 0, or -1 with errno. */
int port_open(void);

/* Closes the port in what a library forks from now on: while a process that stays has it open, the VM
 * does not hear that the host has ended. Returns 0, or an error number. */
int port_close_in_children(void);

/* Fills in the length of a frame of size bytes, for which its first four are free. */
void port_put_length(unsigned char *frame, size_t size);

/* Writes such a frame, from any thread: frames never mix. Ends the program when the VM is gone. */
void port_write(unsigned char *frame, size_t size);

/* The next frame, without its length: valid until the next call, for one thread alone. NULL: the
 * VM's end is closed. */
const unsigned char *port_read(size_t *size);

#endif
