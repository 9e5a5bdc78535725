/* Text on its way out, see sink.h. */
#include <stdarg.h>
#include <string.h>

#include "term/sink.h"

void sink_put(struct sink *sink, const char *text, size_t size)
{
    if (sink->file != NULL) {
        fwrite(text, 1, size, sink->file);
    } else if (sink->len + 1 < sink->size) {
        size_t fits = sink->size - 1 - sink->len;
        memcpy(sink->buffer + sink->len, text, size < fits ? size : fits);
    }
    sink->len += size;
}

void sink_text(struct sink *sink, const char *text)
{
    sink_put(sink, text, strlen(text));
}

__attribute__((format(printf, 2, 3))) void sink_format(struct sink *sink, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sink_text(sink, text);
}
