/* exor_stream: the exclusive or, written past the caches where the machine can do that (SSE2, which
 * every x86-64 has); elsewhere it is a plain loop. */
#ifndef TAME_EXOR_STREAM_H
#define TAME_EXOR_STREAM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#define EXOR_STREAM_BYTES sizeof(__m128i)
#endif

/* With `byte` where b is NULL. The compiler takes that question out of the loops. */
static inline void exor_stream(unsigned char *out, const unsigned char *a, const unsigned char *b,
                               unsigned char byte, size_t count)
{
    size_t i = 0;

#ifdef __SSE2__
    const __m128i bytes = _mm_set1_epi8((char)byte);

    /* Such a store needs an aligned address; what is before the first is written plainly. */
    while (i < count && (uintptr_t)(out + i) % EXOR_STREAM_BYTES != 0) {
        out[i] = a[i] ^ (b != NULL ? b[i] : byte);
        i++;
    }
    for (; count - i >= EXOR_STREAM_BYTES; i += EXOR_STREAM_BYTES)
        _mm_stream_si128(
            (__m128i *)(out + i),
            _mm_xor_si128(_mm_loadu_si128((const __m128i *)(a + i)),
                          b != NULL ? _mm_loadu_si128((const __m128i *)(b + i)) : bytes));
    /* Another thread may be the next to look. */
    _mm_sfence();
#endif
    for (; i < count; i++)
        out[i] = a[i] ^ (b != NULL ? b[i] : byte);
}

#endif
