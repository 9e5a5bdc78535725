/* The bounds of a host: what its library may take of the system (the option `limits').
 *
 * They are set in the host process, after it was split from its guard and before any code of the
 * library runs. Where one cannot be had the host says so in a sentence and loads nothing.
 *
 *     memory_mb     RLIMIT_DATA, beyond what the host itself has    a refusal: ENOMEM, NULL
 *     cpu_seconds   RLIMIT_CPU of the process                       the end, by SIGXCPU
 *     open_files    RLIMIT_NOFILE, beyond the host's own            EMFILE
 *     threads       counted in pthread_create (thread_count.h)      EAGAIN
 *     nice, cpus    setpriority, the affinity                       nothing is refused later
 *
 * A library that copes with a refusal goes on. One that ends is said to have reached that limit when
 * the refusal was the last thing that the system refused it on that thread, which errno tells: in
 * the call that ran there, or, on a thread of the library's own, ever.
 */
#ifndef TAME_HOST_LIMITS_H
#define TAME_HOST_LIMITS_H

#include <limits.h>
#include <stdint.h>

#define LIMITS_CPUS_MAX 1024

enum limit { LIMIT_NONE, LIMIT_MEMORY, LIMIT_CPU, LIMIT_OPEN_FILES, LIMIT_THREADS };

#define LIMITS_UNSET LONG_MIN

struct limits {
    long memory_mb, cpu_seconds, open_files, threads, nice, cpus;
    unsigned cpu_list[LIMITS_CPUS_MAX];
    int cpu_list_len; /* 0: there is no list */
};

/* As the command line says; read only once it has been read. */
extern struct limits limits;

/* An option of the command line: NULL when it was taken, else what was expected of its value, or
 * limits_unknown. */
extern const char limits_unknown[];
const char *limits_option(const char *name, const char *value);

/* In the host: sets them all, once. `reached` is where limits_note writes. Returns 0, or -1 with a
 * sentence in text. */
int limits_apply(_Atomic int *reached, char *text, uint64_t size);

/* Memory that is not the library's, such as the stack of a worker, is about to be taken. */
void limits_make_room(uint64_t bytes);

/* Other work begins on this thread: what was refused before does not count any more. */
void limits_watch(void);

/* The process ends: notes the limit that this thread has reached, if it has. In a signal handler it
 * comes first. */
void limits_note(void);

/* A number that a host wrote, as a limit that it may have noted: of CPU time only the kernel knows.
 * And a limit's name. */
enum limit limits_known(int number);
const char *limits_name(enum limit limit);

#endif
