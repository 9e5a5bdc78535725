/* What NIF libraries use of the emulator beside enif_*, though no manual says that they may: found in the
 * imports of every library that Debian ships (docs/conformance.md). Another symbol of the emulator is
 * refused when the library is loaded, in the loader's words. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "os/os.h"

/* The emulator's own list (erl_posix_str.c) ends at EDQUOT. */
#define ERRORS (EDQUOT + 1)
#define NAME_BYTES 24

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char names[ERRORS][NAME_BYTES];

/* Nor has it these, and one it calls by its other name. */
static const char *name_of(int error)
{
    static const char *const lacks[] = {"ERESTART", "ESTRPIPE", "EISNAM"};
    const char *name = os_errno_name(error);

    for (size_t i = 0; name != NULL && i < sizeof lacks / sizeof *lacks; i++) {
        if (strcmp(name, lacks[i]) == 0)
            return NULL;
    }
    return name != NULL && strcmp(name, "EOPNOTSUPP") == 0 ? "ENOTSUP" : name;
}

static void make_names(void)
{
    for (int error = 1; error < ERRORS; error++) {
        const char *name = name_of(error);
        for (int i = 0; name != NULL && name[i] != '\0' && i < NAME_BYTES - 1; i++)
            names[error][i] = (char)tolower((unsigned char)name[i]);
    }
}

__attribute__((visibility("default"))) char *erl_errno_id(int error);

/* "enoent" for ENOENT; the caller may keep it, and must not change it. */
char *erl_errno_id(int error)
{
    static char unknown[] = "unknown";

    pthread_once(&once, make_names);
    return error > 0 && error < ERRORS && names[error][0] != '\0' ? names[error] : unknown;
}
