/* Which implementation this machine runs. KECCAK_X86_64 says that the build has those for x86-64
 * (core.mk). */
#include "keccak.h"

#include <string.h>

#ifdef KECCAK_X86_64
static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
           __builtin_cpu_supports("bmi2");
}

/* Of 128-bit registers too, which is VL. */
static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
}
#endif

static int has_portable(void)
{
    return 1;
}

/* The fastest first. */
static const struct {
    const struct keccak *keccak;
    int (*has)(void);
} choices[] = {
#ifdef KECCAK_X86_64
    {&keccak_avx512, has_avx512},
    {&keccak_avx2, has_avx2},
#endif
    {&keccak_portable, has_portable},
};

const struct keccak *keccak_choose(const char *forced)
{
#ifdef KECCAK_X86_64
    __builtin_cpu_init();
#endif
    for (size_t i = 0; i < sizeof choices / sizeof *choices; i++)
        if ((forced == NULL || strcmp(forced, choices[i].keccak->name) == 0) && choices[i].has())
            return choices[i].keccak;
    return NULL;
}
