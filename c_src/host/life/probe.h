/* A look at a library in a process of its own, as JSON. */
#ifndef TAME_HOST_PROBE_H
#define TAME_HOST_PROBE_H

/* Prints one line of JSON to standard output. The library's constructors and nif_init run in a
 * child, its load does not. */
void probe_print(const char *path);

#endif
