/* libzstd on the BEAM: contexts are resources that a job claims, and no call holds a scheduler for
 * longer than a block takes. */
#include "compress.h"
#include "decompress.h"

static const struct tame_resource *const resources[] = {&dictionary, &compressor, &decompressor,
                                                        NULL};

/* At the higher levels a block takes longer than a regular scheduler may be held. */
#define FUNCTIONS(JOB, NIF)                                              \
    NIF(new_dictionary, 2, new_dictionary, TAME_DIRTY_CPU)               \
    NIF(new_compressor, 3, new_compressor, TAME_DIRTY_CPU)               \
    NIF(new_decompressor, 1, new_decompressor, TAME_DIRTY_CPU)           \
    JOB(compress_nif, 3, compress, TAME_AUTO)                            \
    JOB(compress_slow_nif, 3, compress, TAME_YIELDING_DIRTY)             \
    JOB(compress_parts_nif, 3, compress_parts, TAME_AUTO)                \
    JOB(compress_parts_slow_nif, 3, compress_parts, TAME_YIELDING_DIRTY) \
    JOB(decompress_nif, 3, decompress, TAME_AUTO)                        \
    JOB(decompress_parts_nif, 4, decompress_parts, TAME_AUTO)

TAME_NIF_INIT(Elixir.Zstd.Native, FUNCTIONS, .resources = resources)
