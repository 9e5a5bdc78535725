/* The control port: frames of four bytes of length and one term in external format. What each frame
 * means is said in README.md. */
#ifndef TAME_HOST_CONTROL_H
#define TAME_HOST_CONTROL_H

#include "term.h"

#define CONTROL_PROTOCOL 2

/* Where the VM's port has its pipes: nouse_stdio. */
#define CONTROL_IN_FD 3
#define CONTROL_OUT_FD 4

/* Makes the port ours alone: other descriptors, which the VM may have leaked, are closed, standard
 * input is empty, standard output is standard error. Returns 0, or -1 with errno. */
int control_open(void);

void control_hello(void);
void control_query(uint64_t id, term what);

/* {Tag, Term ...}: a frame of any kind from terms that need nothing from the VM. */
void control_tell(ErlNifEnv *env, term frame);

/* The bytes of a frame, its length included; the caller frees them. */
unsigned char *control_frame(term frame, size_t *size);

/* A message for a local pid. call: NULL outside of one. Returns 0: the VM refuses its atoms. */
struct call;
int control_send(struct call *call, term pid, term message);

/* Reads frames until the VM's end closes, then ends the program. */
__attribute__((noreturn)) void control_read(void);

#endif
