/* What the VM says on the control port; README.md says what each frame means. */
#ifndef TAME_HOST_CONTROL_H
#define TAME_HOST_CONTROL_H

#define CONTROL_PROTOCOL 4

void control_hello(void);

/* In place of the hello: why there is no host. Ends the program when the VM has closed its end. */
__attribute__((noreturn)) void control_refuse(const char *reason, const char *text);

/* Reads frames until the VM's end closes, then ends the program. */
__attribute__((noreturn)) void control_read(void);

#endif
