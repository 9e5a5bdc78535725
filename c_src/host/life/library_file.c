/* Reading an ELF file's imports, see library_file.h. 64 bits, the byte order of this machine. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "life/library_file.h"
#include "memory/alloc.h"

#if __has_include(<elf.h>)

#include <elf.h>

#if defined(__x86_64__)
#define OUR_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OUR_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define OUR_MACHINE EM_PPC64
#elif defined(__riscv)
#define OUR_MACHINE EM_RISCV
#elif defined(__s390x__)
#define OUR_MACHINE EM_S390
#else
#error "add this processor's EM_ number from elf.h"
#endif

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OUR_DATA ELFDATA2LSB
#else
#define OUR_DATA ELFDATA2MSB
#endif

/* Copies a struct from anywhere in the file: it may lie unaligned. Returns 0 past the end. */
static int get(const char *bytes, size_t size, uint64_t at, void *to, size_t to_size)
{
    if (at > size || to_size > size - at)
        return 0;
    memcpy(to, bytes + at, to_size);
    return 1;
}

/* The table of dynamic symbols, and its strings. */
struct symbols {
    uint64_t at, len, strings_at, strings_size;
};

static int find_by_sections(const char *bytes, size_t size, const Elf64_Ehdr *head,
                            struct symbols *symbols)
{
    Elf64_Shdr section, strings;

    for (unsigned i = 0; i < head->e_shnum; i++) {
        if (!get(bytes, size, head->e_shoff + (uint64_t)i * sizeof section, &section,
                 sizeof section))
            return 0;
        if (section.sh_type != SHT_DYNSYM)
            continue;
        if (!get(bytes, size, head->e_shoff + (uint64_t)section.sh_link * sizeof strings, &strings,
                 sizeof strings))
            return 0;
        *symbols = (struct symbols){section.sh_offset, section.sh_size / sizeof(Elf64_Sym),
                                    strings.sh_offset, strings.sh_size};
        return 1;
    }
    return 0;
}

/* Where an address of the loaded library lies in the file; SIZE_MAX: nowhere. */
static uint64_t offset_of(const char *bytes, size_t size, const Elf64_Ehdr *head, uint64_t address)
{
    Elf64_Phdr part;

    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (get(bytes, size, head->e_phoff + (uint64_t)i * sizeof part, &part, sizeof part) &&
            part.p_type == PT_LOAD && address >= part.p_vaddr &&
            address - part.p_vaddr < part.p_filesz)
            return address - part.p_vaddr + part.p_offset;
    }
    return SIZE_MAX;
}

/* For a library whose section headers were stripped. The number of symbols is not written
 * anywhere simple; linkers put the strings right behind them. */
static int find_by_dynamic(const char *bytes, size_t size, const Elf64_Ehdr *head,
                           struct symbols *symbols)
{
    uint64_t symbols_address = 0, strings_address = 0;
    Elf64_Phdr part;
    Elf64_Dyn entry;

    *symbols = (struct symbols){0};
    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (!get(bytes, size, head->e_phoff + (uint64_t)i * sizeof part, &part, sizeof part) ||
            part.p_type != PT_DYNAMIC)
            continue;
        for (uint64_t at = part.p_offset;
             get(bytes, size, at, &entry, sizeof entry) && entry.d_tag != DT_NULL;
             at += sizeof entry) {
            if (entry.d_tag == DT_SYMTAB)
                symbols_address = entry.d_un.d_ptr;
            else if (entry.d_tag == DT_STRTAB)
                strings_address = entry.d_un.d_ptr;
            else if (entry.d_tag == DT_STRSZ)
                symbols->strings_size = entry.d_un.d_val;
        }
    }
    symbols->at = offset_of(bytes, size, head, symbols_address);
    symbols->strings_at = offset_of(bytes, size, head, strings_address);
    if (symbols->at > size || symbols->strings_at < symbols->at)
        return 0;
    symbols->len = (symbols->strings_at - symbols->at) / sizeof(Elf64_Sym);
    return 1;
}

/* Whether the file holds all that is loaded of it: what is cut off would be a bus error on first
 * use. */
static int is_whole(const char *bytes, size_t size, const Elf64_Ehdr *head)
{
    Elf64_Phdr part;

    for (unsigned i = 0; i < head->e_phnum; i++) {
        if (!get(bytes, size, head->e_phoff + (uint64_t)i * sizeof part, &part, sizeof part) ||
            (part.p_type == PT_LOAD &&
             (part.p_offset > size || part.p_filesz > size - part.p_offset)))
            return 0;
    }
    return 1;
}

enum elf_verdict elf_parse(const char *bytes, size_t size, struct elf_imports *imports)
{
    Elf64_Ehdr head;
    struct symbols symbols;

    imports->names = NULL;
    imports->len = 0;
    if (size < EI_NIDENT || memcmp(bytes, ELFMAG, SELFMAG) != 0)
        return ELF_NOT_ELF;
    if (bytes[EI_CLASS] != ELFCLASS64 || bytes[EI_DATA] != OUR_DATA)
        return ELF_OTHER_MACHINE;
    if (!get(bytes, size, 0, &head, sizeof head))
        return ELF_NOT_ELF;
    if (head.e_machine != OUR_MACHINE)
        return ELF_OTHER_MACHINE;
    if (head.e_type != ET_DYN || !is_whole(bytes, size, &head) ||
        (!find_by_sections(bytes, size, &head, &symbols) &&
         !find_by_dynamic(bytes, size, &head, &symbols)))
        return ELF_NOT_ELF;
    if (symbols.at > size || symbols.len > (size - symbols.at) / sizeof(Elf64_Sym) ||
        symbols.strings_at > size || symbols.strings_size > size - symbols.strings_at)
        return ELF_NOT_ELF;

    const char *strings = bytes + symbols.strings_at;
    imports->names = host_malloc(symbols.len * sizeof *imports->names + 1);
    for (uint64_t i = 0; i < symbols.len; i++) {
        Elf64_Sym symbol;
        get(bytes, size, symbols.at + i * sizeof symbol, &symbol, sizeof symbol);
        if (symbol.st_shndx != SHN_UNDEF || symbol.st_name == 0 ||
            symbol.st_name >= symbols.strings_size ||
            memchr(strings + symbol.st_name, '\0', symbols.strings_size - symbol.st_name) == NULL)
            continue;
        imports->names[imports->len++] = strings + symbol.st_name;
    }
    return ELF_OK;
}

#else

/* The libraries of such a system are of another format (Mach-O), which nobody reads yet. */
enum elf_verdict elf_parse(const char *bytes, size_t size, struct elf_imports *imports)
{
    (void)bytes;
    (void)size;
    imports->names = NULL;
    imports->len = 0;
    return ELF_NOT_ELF;
}

#endif

enum elf_verdict elf_read(const char *path, struct elf_imports *imports)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat stat;

    *imports = (struct elf_imports){0};
    if (fd < 0)
        return ELF_NO_FILE;
    if (fstat(fd, &stat) < 0) {
        int error = errno;
        close(fd);
        errno = error;
        return ELF_NO_FILE;
    }
    if (!S_ISREG(stat.st_mode) || stat.st_size == 0) {
        close(fd);
        return ELF_NOT_ELF;
    }
    /* Only the few pages that are looked at are read. */
    char *text = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    int error = errno;
    close(fd);
    if (text == MAP_FAILED) {
        errno = error;
        return ELF_NO_FILE;
    }
    imports->text = text;
    imports->size = (size_t)stat.st_size;
    return elf_parse(text, imports->size, imports);
}

void elf_free(struct elf_imports *imports)
{
    if (imports->text != NULL)
        munmap(imports->text, imports->size);
    free(imports->names);
    *imports = (struct elf_imports){0};
}
