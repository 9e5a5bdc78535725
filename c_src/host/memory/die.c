/* The end of the program, see die.h. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "memory/die.h"

/* EX_SOFTWARE of sysexits.h: told from what a library's exit() is likely to give. */
#define STATUS_DIED 70

void host_die(const char *format, ...)
{
    va_list args;
    char text[1024];
    int size;

    va_start(args, format);
    size = vsnprintf(text, sizeof text - 1, format, args);
    va_end(args);
    if (size > (int)sizeof text - 2)
        size = (int)sizeof text - 2;
    text[size] = '\n';
    (void)!write(STDERR_FILENO, "tame_host: ", 11);
    (void)!write(STDERR_FILENO, text, (size_t)size + 1);
    _exit(STATUS_DIED);
}
