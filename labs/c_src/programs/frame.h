/* Frames: a length of four bytes, big-endian, then that many bytes.
 *
 * It is what {packet, 4} means to an Erlang port or socket. The echo never holds
 * a whole frame: it passes bytes on as they arrive, so that the VM reads the
 * start of a long frame while it still writes the end. All the echo has to know
 * is where frames begin, because two lengths are not passed on:
 *
 *     0                         the goodbye: the sender wants us to end
 *     above FRAME_MAX_BYTES     not a length, but the sign of a lost beginning
 *
 * A scan is that knowledge. Feed it what arrived; it says how much may go out:
 *
 *     struct frame_scan scan = {0};
 *     enum frame_verdict verdict;
 *     size_t ready = frame_scan(&scan, bytes, size, &verdict);
 *     // write bytes[0 .. ready), then put bytes[ready .. size) before what comes next
 *
 * Plain C, no input or output, no allocation, no global state.
 */
#ifndef TAME_FRAME_H
#define TAME_FRAME_H

#include <stddef.h>
#include <stdint.h>

#define FRAME_HEADER_BYTES 4

/* The external term format counts in 32 bits; a quarter of that is above any payload that a
 * latency lab can sensibly send, and text or a lost beginning is nearly always above it. */
#define FRAME_MAX_BYTES (1u << 30)

enum frame_verdict {
    FRAME_GO_ON,
    FRAME_GOODBYE, /* an empty frame: nothing after it is looked at */
    FRAME_TOO_LONG /* scan->refused_bytes says how long it claims to be */
};

struct frame_scan {
    uint32_t left_bytes;    /* of the frame we are in; 0: a header comes next */
    uint32_t refused_bytes; /* set with FRAME_TOO_LONG only */
};

static inline uint32_t frame_length(const unsigned char header[FRAME_HEADER_BYTES])
{
    return (uint32_t)header[0] << 24 | (uint32_t)header[1] << 16 | (uint32_t)header[2] << 8 |
           (uint32_t)header[3];
}

/* Returns how many of the size bytes may go out: everything before a goodbye, a refused frame
 * or a header whose end is missing (fewer than FRAME_HEADER_BYTES remain).
 * Work: one step for each frame that begins in these bytes. */
static inline size_t frame_scan(struct frame_scan *scan, const unsigned char *bytes, size_t size,
                                enum frame_verdict *verdict)
{
    size_t pos = 0;

    *verdict = FRAME_GO_ON;

    for (;;) {
        if (scan->left_bytes > size - pos) {
            scan->left_bytes -= (uint32_t)(size - pos);
            return size;
        }
        pos += scan->left_bytes;
        scan->left_bytes = 0;

        if (size - pos < FRAME_HEADER_BYTES)
            return pos;

        uint32_t length = frame_length(bytes + pos);
        if (length == 0) {
            *verdict = FRAME_GOODBYE;
            return pos;
        }
        if (length > FRAME_MAX_BYTES) {
            scan->refused_bytes = length;
            *verdict = FRAME_TOO_LONG;
            return pos;
        }
        pos += FRAME_HEADER_BYTES;
        scan->left_bytes = length;
    }
}

#endif
