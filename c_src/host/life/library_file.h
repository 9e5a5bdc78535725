/* What an ELF file asks for, read without running any of its code. */
#ifndef TAME_HOST_LIBRARY_FILE_H
#define TAME_HOST_LIBRARY_FILE_H

#include <stddef.h>

enum elf_verdict {
    ELF_OK,
    ELF_NO_FILE,      /* errno says why */
    ELF_NOT_ELF,      /* or cut off, or not a shared library */
    ELF_OTHER_MACHINE /* a library, but not for this processor */
};

/* The undefined symbols of a library; text, size and names are owned by it. */
struct elf_imports {
    char *text; /* the file */
    size_t size;
    const char **names;
    size_t len;
};

/* Calls nothing in the file. bytes need not be well-formed. imports is filled in with ELF_OK only;
 * its text is not touched. */
enum elf_verdict elf_parse(const char *bytes, size_t size, struct elf_imports *imports);

/* Reads a file. The caller frees imports with elf_free, whatever the verdict. */
enum elf_verdict elf_read(const char *path, struct elf_imports *imports);
void elf_free(struct elf_imports *imports);

#endif
