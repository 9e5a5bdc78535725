/* system.h - memory, threads, the system. Part of fake_nif.h. */
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

ErlNifMutex *enif_mutex_create(char *name)
{
    pthread_mutex_t *mutex = fake_memory(sizeof *mutex);

    (void)name;
    pthread_mutex_init(mutex, NULL);
    return (ErlNifMutex *)mutex;
}

void enif_mutex_destroy(ErlNifMutex *mutex)
{
    pthread_mutex_destroy((pthread_mutex_t *)mutex);
    free(mutex);
}

void enif_mutex_lock(ErlNifMutex *mutex)
{
    pthread_mutex_lock((pthread_mutex_t *)mutex);
}

void enif_mutex_unlock(ErlNifMutex *mutex)
{
    pthread_mutex_unlock((pthread_mutex_t *)mutex);
}

ErlNifCond *enif_cond_create(char *name)
{
    pthread_cond_t *cond = fake_memory(sizeof *cond);

    (void)name;
    pthread_cond_init(cond, NULL);
    return (ErlNifCond *)cond;
}

void enif_cond_destroy(ErlNifCond *cond)
{
    pthread_cond_destroy((pthread_cond_t *)cond);
    free(cond);
}

void enif_cond_signal(ErlNifCond *cond)
{
    pthread_cond_signal((pthread_cond_t *)cond);
}

void enif_cond_broadcast(ErlNifCond *cond)
{
    pthread_cond_broadcast((pthread_cond_t *)cond);
}

void enif_cond_wait(ErlNifCond *cond, ErlNifMutex *mutex)
{
    pthread_cond_wait((pthread_cond_t *)cond, (pthread_mutex_t *)mutex);
}

static int fake_refuse_threads; /* one thread of that many is not made; 0: all are */
static int fake_late_us;        /* so long after its thread has begun its maker goes on */

int enif_thread_create(char *name, ErlNifTid *tid, void *(*run)(void *), void *arg,
                       ErlNifThreadOpts *opts)
{
    static unsigned asked;
    pthread_t thread;

    (void)name;
    (void)opts;
    if (fake_refuse_threads > 0 &&
        __atomic_add_fetch(&asked, 1, __ATOMIC_SEQ_CST) % (unsigned)fake_refuse_threads == 0)
        return usleep(50) == 0; /* it takes the system a while to find that out */
    if (pthread_create(&thread, NULL, run, arg) != 0)
        return 1;
    *tid = (ErlNifTid)thread;
    if (fake_late_us > 0)
        (void)usleep((useconds_t)fake_late_us);
    return 0;
}

int enif_thread_join(ErlNifTid tid, void **result)
{
    return pthread_join((pthread_t)tid, result);
}

ErlNifThreadOpts *enif_thread_opts_create(char *name)
{
    (void)name;
    return fake_memory(sizeof(ErlNifThreadOpts));
}

void enif_thread_opts_destroy(ErlNifThreadOpts *opts)
{
    free(opts);
}

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
