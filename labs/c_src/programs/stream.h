/* The echo of frames from one file descriptor to another.
 *
 * Bytes go out as they come in (see frame.h). This cannot deadlock with a VM on
 * the other side: its ports and sockets write what does not fit by and by, and go on
 * reading meanwhile, so our blocking write() always comes to an end.
 *
 * Needs nothing but file descriptors: the unit test drives it through pipes.
 */
#ifndef TAME_STREAM_H
#define TAME_STREAM_H

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "frame.h"

/* At least a pipe or socket buffer as Linux makes them (64 KiB and 208 KiB), so that one read
 * takes all there is. */
#define STREAM_BUFFER_BYTES (256u * 1024)

enum stream_end {
    STREAM_EOF,         /* the sender closed, between two frames or within one */
    STREAM_GOODBYE,     /* the sender sent an empty frame */
    STREAM_READER_GONE, /* nobody reads what we write any more */
    STREAM_TOO_LONG,    /* scan->refused_bytes says how long */
    STREAM_ERROR        /* errno says why */
};

/* Returns 0, or -1 with errno. */
static inline int stream_write_all(int fd, const unsigned char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

/* Echoes until the sender ends. SIGPIPE must be ignored. The buffer stays the caller's and holds
 * buffer_bytes, at least FRAME_HEADER_BYTES + 1. */
static inline enum stream_end stream_echo(int in, int out, struct frame_scan *scan,
                                          unsigned char *buffer, size_t buffer_bytes)
{
    size_t kept = 0; /* bytes at the buffer's start that wait for the rest of their header */

    for (;;) {
        ssize_t n = read(in, buffer + kept, buffer_bytes - kept);
        if (n < 0 && errno == EINTR)
            continue;
        /* A socket whose other end was killed with unread bytes is reset, a pipe just ends. */
        if (n == 0 || (n < 0 && errno == ECONNRESET))
            return STREAM_EOF;
        if (n < 0)
            return STREAM_ERROR;

        enum frame_verdict verdict;
        size_t size = kept + (size_t)n;
        size_t ready = frame_scan(scan, buffer, size, &verdict);

        if (stream_write_all(out, buffer, ready) < 0)
            return errno == EPIPE || errno == ECONNRESET ? STREAM_READER_GONE : STREAM_ERROR;
        if (verdict == FRAME_GOODBYE)
            return STREAM_GOODBYE;
        if (verdict == FRAME_TOO_LONG)
            return STREAM_TOO_LONG;

        kept = size - ready;
        memmove(buffer, buffer + ready, kept);
    }
}

#endif
