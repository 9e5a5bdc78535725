/* Frames to the VM that are terms. */
#ifndef TAME_HOST_TELL_H
#define TAME_HOST_TELL_H

#include "term/term.h"

/* {Tag, Term ...}: a frame of any kind from terms that need nothing from the VM. Nothing happens
 * where there is no VM (a probe). */
void tell(term frame);

/* The bytes of such a frame, its length included; the caller frees them. */
unsigned char *tell_frame(term frame, size_t *size);

/* A message for a local pid. env: of the call that sends it, or NULL. Waits for the VM where more is on
 * its way than that can read. Returns 0: the VM refuses its atoms, or would not
 * read it (readable.h). */
int tell_message(const ErlNifEnv *env, term pid, term message);

/* Waits until the VM has delivered every message that was sent, by whatever thread. */
void tell_sync(void);

#endif
