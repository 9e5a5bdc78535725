/* Terms as text, in the VM's notation. */
#ifndef TAME_HOST_PRINT_H
#define TAME_HOST_PRINT_H

#include "term/sink.h"
#include "term/term.h"

void print_term(struct sink *sink, term t);

#endif
