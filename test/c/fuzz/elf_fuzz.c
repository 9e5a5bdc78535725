/* Fuzzes the reader of ELF files. By clang's libFuzzer: make -C c_src fuzz. */
#include <stdlib.h>

#include "life/library_file.h"

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size);

int LLVMFuzzerTestOneInput(const unsigned char *bytes, size_t size)
{
    struct elf_imports imports = {0};
    size_t letters = 0;

    elf_parse((const char *)bytes, size, &imports);
    for (size_t i = 0; i < imports.len; i++) {
        for (const char *c = imports.names[i]; *c != '\0'; c++)
            letters++;
    }
    free(imports.names);
    return letters == (size_t)-1;
}
