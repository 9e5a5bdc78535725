/* Loading a NIF library as the VM would: what it refuses, we refuse. */
#ifndef TAME_HOST_LOAD_H
#define TAME_HOST_LOAD_H

#include <stddef.h>

#include "life/library.h"
#include "life/library_file.h"

/* Why a library was refused; reason is NULL when it was not. */
struct refusal {
    const char *reason; /* an atom for programs */
    char text[1024];    /* a sentence for people: what, and what to do */
    int value;          /* what load returned, with load_returned */
};

/* The first part: nothing of the library runs. Fills in imports, which the caller frees. */
int load_check(const char *path, struct elf_imports *imports, struct refusal *refusal);

/* The second part: its constructors and nif_init run. Returns the library, counted once; NULL, with
 * refusal. */
struct library *load_open(const char *path, struct refusal *refusal);

/* Imported functions of the API that are MISSING, or that no header here knows. Returns how many,
 * and puts up to max of their names into names. */
size_t load_missing(const struct elf_imports *imports, const char **names, size_t max);

/* {load, Path, Module, LoadInfo, Settings}, after the first two elements' tags: answers loaded or
 * refused. The VM asks for one at a time. */
void load_request(const unsigned char *rest, size_t size);

/* No process runs the code of the library of this number any more: answers unloaded, once its unload
 * has been called, or once nothing but its resources keeps it. */
void load_retire(unsigned number);

/* Calls the unload of every library. */
void load_unload_all(void);

#endif
