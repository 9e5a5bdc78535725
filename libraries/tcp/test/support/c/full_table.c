/* The system's table of files is full as long as there is the file that FULL_TABLE names: no socket is
 * made then. For LD_PRELOAD; the real limit is the whole machine's. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_full(void)
{
    const char *path = getenv("FULL_TABLE");
    const int error = errno, full = path != NULL && access(path, F_OK) == 0;

    errno = full ? ENFILE : error;
    return full;
}

int socket(int domain, int type, int protocol)
{
    return is_full() ? -1 : (int)syscall(SYS_socket, domain, type, protocol);
}

int accept4(int number, struct sockaddr *address, socklen_t *size, int flags)
{
    return is_full() ? -1 : (int)syscall(SYS_accept4, number, address, size, flags);
}
