/* A unit test in one header. A test is a function whose name is a sentence:
 *
 *     #include "check.h"
 *
 *     static void two_and_two_are_four(void)
 *     {
 *         CHECK_EQ(2 + 2, 4);
 *     }
 *
 *     int main(void)
 *     {
 *         RUN(two_and_two_are_four);
 *         return check_report();
 *     }
 *
 * A check that fails prints both values and where; the test goes on. The last line says how many
 * tests passed and failed, and check_report() is 1 if any failed. NDEBUG changes nothing.
 * For one file per program: counters are static.
 */
#ifndef TAME_CHECK_H
#define TAME_CHECK_H

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

static int check_passed, check_failed; /* tests */
static int check_bad;                  /* failed checks of the running test */

/* For integers of up to 64 bits; a pointer is compared first: CHECK_EQ(p == NULL, 1). */
#define CHECK_EQ(got, expected) \
    check_eq(__FILE__, __LINE__, #got, (int64_t)(got), (int64_t)(expected))

#define RUN(test) check_run(#test, test)

static inline void check_eq(const char *file, int line, const char *text, int64_t got,
                            int64_t expected)
{
    if (got == expected)
        return;
    check_bad++;
    printf("%s:%d: %s is %" PRId64 ", expected %" PRId64 "\n", file, line, text, got, expected);
}

static inline void check_run(const char *name, void (*test)(void))
{
    check_bad = 0;
    test();
    check_bad == 0 ? check_passed++ : check_failed++;
    printf("%s", check_bad == 0 ? "  ok   " : "  FAIL ");
    for (const char *c = name; *c != '\0'; c++)
        putchar(*c == '_' ? ' ' : *c);
    putchar('\n');
}

static inline int check_report(void)
{
    printf("%d passed, %d failed\n", check_passed, check_failed);
    return check_failed == 0 ? 0 : 1;
}

#endif
