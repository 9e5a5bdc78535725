/* The end of the program when something must not be. */
#ifndef TAME_HOST_DIE_H
#define TAME_HOST_DIE_H

/* Ends the program at once, with a line on standard error and status 70. */
__attribute__((noreturn, format(printf, 1, 2))) void host_die(const char *format, ...);

#endif
