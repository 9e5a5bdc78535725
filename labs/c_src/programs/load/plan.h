/* The requests of a run: each has its planned start, and what became of it. */
#ifndef TAME_LOAD_PLAN_H
#define TAME_LOAD_PLAN_H

#include <stdint.h>

/* What is no status of HTTP. */
enum { UNANSWERED = 0, CONNECTION_LOST = -1, STREAM_RESET = -2, NOT_UNDERSTOOD = -3 };

/* As it is written to standard output, in this machine's byte order. Times are in ns from the
 * start of the run. */
struct request {
    int64_t sent_ns; /* -1 of one that was never sent */
    int64_t done_ns; /* -1 of one that is not over */
    int32_t status;
    int32_t at_once; /* whether a stream was free when it was planned: then we alone made it late */
};

/* When request i is due at this rate, without an error that grows. 128 bits are not needed: a run is
 * shorter than 2^31 requests. */
static inline int64_t planned_ns(uint32_t i, uint32_t rate)
{
    return (int64_t)(i / rate) * 1000000000 + (int64_t)(i % rate) * 1000000000 / rate;
}

#endif
