/* A hash of terms: another than the VM's, and the same for the life of the process. */
#ifndef TAME_HOST_HASH_H
#define TAME_HOST_HASH_H

#include "term/term.h"

/* Equal for terms that are identical. */
uint64_t term_hash(term t, uint64_t salt);

#endif
