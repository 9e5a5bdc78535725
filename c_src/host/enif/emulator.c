/* What NIF libraries use of the emulator beside enif_*, though no manual says that they may: found in the
 * imports of every library that Debian ships (docs/conformance.md). Another symbol of the emulator is
 * refused when the library is loaded, in the loader's words. */
#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "memory/vm.h"
#include "os/os.h"

/* Larger than any that a system has. */
#define ERRORS 1024
#define NAME_BYTES 24
/* What the emulator calls EFTYPE on Linux: one after the last (EHWPOISON), from OTP 29 on. */
#define LINUX_EFTYPE 134

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char names[ERRORS][NAME_BYTES];

/* Up to OTP 28 the emulator has a list of its own (erl_posix_str.c), which ends at EDQUOT. */
static int is_listed(int error, const char *name)
{
    static const char *const lacks[] = {"ERESTART", "ESTRPIPE", "EISNAM"};

    if (error > EDQUOT)
        return 0;
    for (size_t i = 0; i < sizeof lacks / sizeof *lacks; i++) {
        if (strcmp(name, lacks[i]) == 0)
            return 0;
    }
    return 1;
}

/* From OTP 29 on it asks the C library, and names what that does not know by its number. */
static void name_error(int error, char *to)
{
    int is_newer = vm.otp_release >= 29;
    const char *name = is_newer && error == LINUX_EFTYPE ? "EFTYPE" : os_errno_name(error);

    if (name == NULL || error == 0 || !(is_newer || is_listed(error, name)))
        snprintf(to, NAME_BYTES, is_newer ? "errno_%d" : "unknown", error);
    else
        snprintf(to, NAME_BYTES, "%s", strcmp(name, "EOPNOTSUPP") == 0 ? "ENOTSUP" : name);
    for (char *at = to; *at != '\0'; at++)
        *at = (char)tolower((unsigned char)*at);
}

static void make_names(void)
{
    for (int error = 0; error < ERRORS; error++)
        name_error(error, names[error]);
}

__attribute__((visibility("default"))) char *erl_errno_id(int error);

/* "enoent" for ENOENT; the caller may keep it, and must not change it. What is no error's number at all is the
 * thread's, until it asks again. */
char *erl_errno_id(int error)
{
    static _Thread_local char other[NAME_BYTES];

    pthread_once(&once, make_names);
    if (error >= 0 && error < ERRORS)
        return names[error];
    name_error(error, other);
    return other;
}
