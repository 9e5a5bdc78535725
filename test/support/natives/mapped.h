/* Memory that outlives the library and the emulator: a file, mapped. */
#ifndef TEST_MAPPED_H
#define TEST_MAPPED_H

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* The file that the environment variable names; `nowhere`, of the same size, when there is none. */
static inline void *mapped(const char *variable, void *nowhere, size_t size)
{
    const char *path = getenv(variable);
    const int fd = path != NULL ? open(path, O_RDWR) : -1;
    void *map = fd < 0 ? MAP_FAILED : mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    if (fd >= 0)
        close(fd);
    return map == MAP_FAILED ? nowhere : map;
}

#endif
