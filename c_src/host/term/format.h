/* printf with %T for a term. */
#ifndef TAME_HOST_FORMAT_H
#define TAME_HOST_FORMAT_H

#include <stdarg.h>

#include "term/sink.h"

void format_all(struct sink *sink, const char *format, va_list args);

#endif
