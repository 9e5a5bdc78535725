/* survey.h - how long a survey goes on, which we keep and not nng.
 *
 * In nng 1.5 a survey that is sent while the timer of the one before it fires waits for that timer,
 * which waits for it (nng#1728): a surveyor that asks each second, for a second, stops a scheduler
 * one day. So nng's own time is as long as it can be. After ours nothing is received, and what came
 * late is dropped. */
#ifndef TAME_NNG_SURVEY_H
#define TAME_NNG_SURVEY_H

#include <nng/nng.h>
#include <stdint.h>
#include <time.h>

#define TN_SURVEY_MS 1000             /* as nng has it */
#define TN_SURVEY_NNG (INT32_MAX - 1) /* nng's time, ms */

/* Of a socket or a context. */
struct tn_survey {
    int64_t time; /* atomic: ms; -1: for ever */
    int64_t ends; /* atomic: ms of the monotonic clock; 0: none is out */
};

static inline int64_t tn_survey_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Before it is sent: an answer may come at once. */
static inline void tn_survey_begin(struct tn_survey *survey)
{
    const int64_t time = __atomic_load_n(&survey->time, __ATOMIC_RELAXED);

    __atomic_store_n(&survey->ends, time < 0 ? INT64_MAX : tn_survey_now() + time,
                     __ATOMIC_RELEASE);
}

/* How long it goes on: ms, NNG_DURATION_INFINITE, or 0: it is over, or none is out. */
static inline nng_duration tn_survey_left(const struct tn_survey *survey)
{
    const int64_t ends = __atomic_load_n(&survey->ends, __ATOMIC_ACQUIRE);
    const int64_t left = ends == INT64_MAX || ends == 0 ? 0 : ends - tn_survey_now();

    if (ends == INT64_MAX)
        return NNG_DURATION_INFINITE;
    return left <= 0 ? 0 : left < TN_SURVEY_NNG ? (nng_duration)left : TN_SURVEY_NNG;
}

#endif
