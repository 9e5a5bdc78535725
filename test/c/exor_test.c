/* The job of labs/c_src/natives/exor/exor.h without a VM: cut at every step size, all cuts agree.
 */
#include "../../test/c/check.h"
#include <stdlib.h>
#include "exor.h"

/* Memory of exactly `size` bytes, so that the sanitizer sees one byte too far. */
static unsigned char *bytes(size_t size)
{
    unsigned char *p = (unsigned char *)malloc(size > 0 ? size : 1);

    if (p == NULL)
        abort();
    return p;
}

/* Returns how many of the bytes are wrong, in steps of `units`. */
static size_t wrong_bytes(size_t size, size_t units)
{
    unsigned char *a = bytes(size), *b = bytes(size), *out = bytes(size);
    struct exor x;
    size_t wrong = 0, steps = 1;

    /* Repeats every 251 bytes, a prime, so that no step size hides a shift. */
    for (size_t i = 0; i < size; i++) {
        a[i] = (unsigned char)(i % 251);
        b[i] = (unsigned char)(7 * i + i / 251);
        out[i] = 0xa5;
    }
    memset(&x, 0, sizeof x);
    x.a.data = a;
    x.b.data = b;
    x.a.size = x.b.size = x.out.size = size;
    x.out.data = out;
    while (exor_step(NULL, &x, units) == TAME_MORE)
        steps++;

    for (size_t i = 0; i < size; i++)
        wrong += out[i] != (a[i] ^ b[i]);
    wrong += x.done != size;
    wrong += steps != (size == 0 ? 1 : (size - 1) / units + 1);
    free(a);
    free(b);
    free(out);
    return wrong;
}

static void every_cut_gives_the_same_bytes(void)
{
    const size_t sizes[] = {0, 1, 2, 63, 64, 65, 1000};

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (size_t units = 1; units <= sizes[i] + 1; units++)
            CHECK_EQ(wrong_bytes(sizes[i], units), 0);
}

/* Both loops, the plain one and the one past the caches, which begins where the address is even. */
static void a_byte_stands_for_a_binary_of_it(void)
{
    enum { SIZE = 1000 };
    unsigned char *a = bytes(SIZE), *b = bytes(SIZE), *out = bytes(SIZE), *same = bytes(SIZE);

    for (size_t i = 0; i < SIZE; i++)
        a[i] = (unsigned char)(i % 251);
    memset(b, 0x5a, SIZE);
    for (size_t from = 0; from < 40; from++) {
        exor_bytes(out + from, a + from, NULL, 0x5a, SIZE - from);
        exor_bytes(same + from, a + from, b + from, 0, SIZE - from);
        CHECK_EQ(memcmp(out + from, same + from, SIZE - from), 0);
        memset(out, 0, SIZE);
        exor_stream(out + from, a + from, NULL, 0x5a, SIZE - from);
        CHECK_EQ(memcmp(out + from, same + from, SIZE - from), 0);
    }
    free(a);
    free(b);
    free(out);
    free(same);
}

static void more_units_than_there_are_is_all_of_them(void)
{
    CHECK_EQ(wrong_bytes(1000, SIZE_MAX), 0);
    CHECK_EQ(wrong_bytes(0, SIZE_MAX), 0);
}

/* The binaries may lie elsewhere in each slice: the job keeps offsets, not pointers. */
static void the_inputs_may_move_between_two_steps(void)
{
    unsigned char first[100], second[100], out[100];
    struct exor x;
    int wrong = 0;

    for (int i = 0; i < 100; i++)
        first[i] = second[i] = (unsigned char)i;
    memset(&x, 0, sizeof x);
    x.a.data = x.b.data = first;
    x.a.size = x.b.size = x.out.size = 100;
    x.out.data = out;
    CHECK_EQ(exor_step(NULL, &x, 33), TAME_MORE);
    memset(first, 0xa5, sizeof first);
    x.a.data = second;
    x.b.data = first;
    CHECK_EQ(exor_step(NULL, &x, 67), TAME_DONE);
    for (int i = 0; i < 100; i++)
        wrong += out[i] != (i < 33 ? 0 : (i ^ 0xa5));
    CHECK_EQ(wrong, 0);
}

/* The way large outputs take, on small ones: every length at every alignment. */
static void writing_past_the_caches_gives_the_same_bytes(void)
{
    enum { SIZE = 80, ALIGNMENTS = 17 };
    unsigned char a[SIZE + ALIGNMENTS], b[SIZE + ALIGNMENTS];
    int wrong = 0;

    for (int i = 0; i < SIZE + ALIGNMENTS; i++) {
        a[i] = (unsigned char)i;
        b[i] = (unsigned char)(i * 7 + 1);
    }
    for (size_t size = 0; size <= SIZE; size++) {
        for (size_t shift = 0; shift < ALIGNMENTS; shift++) {
            unsigned char *block = bytes(shift + size);
            unsigned char *out = block + shift;

            exor_stream(out, a + shift / 2, b + shift, 0, size);
            for (size_t i = 0; i < size; i++)
                wrong += out[i] != (a[shift / 2 + i] ^ b[shift + i]);
            free(block);
        }
    }
    CHECK_EQ(wrong, 0);
}

int main(void)
{
    RUN(every_cut_gives_the_same_bytes);
    RUN(a_byte_stands_for_a_binary_of_it);
    RUN(more_units_than_there_are_is_all_of_them);
    RUN(the_inputs_may_move_between_two_steps);
    RUN(writing_past_the_caches_gives_the_same_bytes);
    return check_report();
}
