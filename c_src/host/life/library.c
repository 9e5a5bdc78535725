/* The library's functions, see library.h. */
#include "life/library.h"

struct library library;

const ErlNifFunc *library_function(int index)
{
    if (library.entry == NULL || index < 0 || index >= library.entry->num_of_funcs)
        return NULL;
    return (const ErlNifFunc *)((const char *)library.entry->funcs +
                                (size_t)index * library.function_bytes);
}

unsigned library_flags(const ErlNifFunc *function)
{
    return library.function_bytes == sizeof *function ? function->flags : 0;
}
