/* What the VM says on the control port; README.md says what each frame means. */
#ifndef TAME_HOST_CONTROL_H
#define TAME_HOST_CONTROL_H

#define CONTROL_PROTOCOL 3

void control_hello(void);

/* Reads frames until the VM's end closes, then ends the program. */
__attribute__((noreturn)) void control_read(void);

#endif
