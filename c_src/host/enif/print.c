/* enif_fprintf and its kin: printf with %T for a term. */
#include "memory/nif.h"
#include "term/format.h"

int enif_vfprintf(FILE *file, const char *format, va_list args)
{
    struct sink sink = {.file = file};

    format_all(&sink, format, args);
    return (int)sink.len;
}

int enif_vsnprintf(char *buffer, size_t size, const char *format, va_list args)
{
    struct sink sink = {.buffer = buffer, .size = size};

    format_all(&sink, format, args);
    if (size > 0)
        buffer[sink.len < size ? sink.len : size - 1] = '\0';
    return (int)sink.len;
}

int enif_fprintf(FILE *file, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int size = enif_vfprintf(file, format, args);
    va_end(args);
    return size;
}

int enif_snprintf(char *buffer, size_t size, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    int len = enif_vsnprintf(buffer, size, format, args);
    va_end(args);
    return len;
}
