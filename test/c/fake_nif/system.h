/* system.h - memory, locks, the system. Part of fake_nif.h. */
#ifndef TEST_FAKE_NIF_SYSTEM_H
#define TEST_FAKE_NIF_SYSTEM_H

void *enif_alloc(size_t size)
{
    return malloc(size);
}

void enif_free(void *memory)
{
    free(memory);
}

FAKE_LOCKS(enif, ErlNifMutex, ErlNifCond)

ErlNifTime enif_monotonic_time(ErlNifTimeUnit unit)
{
    struct timespec now;

    (void)unit;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (ErlNifTime)now.tv_sec * 1000000000 + now.tv_nsec;
}

void enif_system_info(ErlNifSysInfo *info, size_t size)
{
    memset(info, 0, size);
    info->scheduler_threads = 4;
}

#if ERL_NIF_MAJOR_VERSION > 2 || ERL_NIF_MINOR_VERSION > 16 /* OTP 26 */
int enif_set_option(ErlNifEnv *env, ErlNifOption option, ...)
{
    (void)env;
    (void)option;
    return 0;
}
#endif

int enif_fprintf(FILE *file, const char *format, ...)
{
    (void)file;
    (void)format;
    return 0;
}

int enif_snprintf(char *text, size_t size, const char *format, ...)
{
    va_list list;
    int length;

    va_start(list, format);
    length = vsnprintf(text, size, format, list);
    va_end(list);
    return length;
}

#endif
