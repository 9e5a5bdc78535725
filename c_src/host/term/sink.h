/* Where printed text goes: a file, or a buffer that takes what fits. */
#ifndef TAME_HOST_SINK_H
#define TAME_HOST_SINK_H

#include <stdio.h>

/* What is printed, and how much. With a buffer, what does not fit is counted and dropped. */
struct sink {
    FILE *file;   /* or */
    char *buffer; /* of size bytes, room for a last zero byte included */
    size_t size, len;
};

void sink_put(struct sink *sink, const char *text, size_t size);
void sink_text(struct sink *sink, const char *text);

/* Up to 511 bytes. */
__attribute__((format(printf, 2, 3))) void sink_format(struct sink *sink, const char *format, ...);

#endif
