/* tame/drv/job.h - work in steps: sliced, wherever it runs.
 *
 * Part of tame/driver.h. The step is that of tame.h (tame/slice.h), without a call: a step that uses
 * no terms is the same for a NIF and for a driver. */
#ifndef TAME_DRV_JOB_H
#define TAME_DRV_JOB_H

#include <sched.h>

#include "../slice.h"
#include "schedule.h"

struct tame_drv_job {
    tame_step step; /* `call` is NULL */
    /* Under the port's lock, after the last step: replies. May be NULL. */
    void (*done)(ErlDrvData data, void *state, enum tame_status status);
    void (*cleanup)(void *state); /* exactly once, after `done` or without it; on any thread */
    uint32_t slice_us;            /* on the port's scheduler; 0: TAME_SLICE_US */
};

struct tame_impl_drv_job {
    struct tame_impl_drv_item item;
    const struct tame_drv_job *job;
    void *state;
    struct tame_impl_pace pace;
    enum tame_status status;
};

/* Off the schedulers the core is offered to others that often (docs/architecture.md, Jobs). */
#define TAME_IMPL_DRV_YIELD_NS UINT64_C(100000)

static inline enum tame_status tame_impl_drv_job_slice(struct tame_impl_drv_port *port,
                                                       struct tame_impl_drv_job *it,
                                                       uint64_t slice_ns)
{
    struct tame_impl_until until;

    memset(&until, 0, sizeof until);
    until.start_ns = tame_now_ns();
    until.slice_ns = slice_ns;
    until.deadline_ns = UINT64_MAX;
    until.steps = UINT64_MAX;
    until.watched = &port->closing;
    until.clock = tame_now_ns;
    return tame_impl_slice_run(it->job->step, NULL, it->state, &it->pace, &until).status;
}

/* Until it is done, the port closes, or other ports wait and it has had its share. */
static inline enum tame_status tame_impl_drv_job_outside(struct tame_impl_drv_port *port,
                                                         struct tame_impl_drv_job *it)
{
    const struct tame_impl_drv_group *group = &tame_impl_drv_library.groups[it->item.where];
    const uint64_t start_ns = tame_now_ns();
    enum tame_status status;

    for (;;) {
        status = tame_impl_drv_job_slice(port, it, TAME_IMPL_DRV_YIELD_NS);
        if (status != TAME_MORE || __atomic_load_n(&port->closing, __ATOMIC_RELAXED) ||
            tame_impl_place_gives_way(tame_now_ns() - start_ns, 0, 0,
                                      __atomic_load_n(&group->ports.len, __ATOMIC_RELAXED)))
            return status;
        (void)sched_yield();
    }
}

static inline void tame_impl_drv_job_drop(struct tame_impl_drv_port *port,
                                          struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_job *it = (struct tame_impl_drv_job *)item;

    (void)port;
    if (it->job->cleanup != NULL)
        it->job->cleanup(it->state);
}

static inline enum tame_impl_drv_ran tame_impl_drv_job_run(struct tame_impl_drv_port *port,
                                                           struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_job *it = (struct tame_impl_drv_job *)item;
    const uint32_t slice_us = it->job->slice_us > 0 ? it->job->slice_us : TAME_SLICE_US;

    if (it->status == TAME_MORE)
        it->status = item->where == TAME_DRV_PORT
                         ? tame_impl_drv_job_slice(port, it, (uint64_t)slice_us * 1000)
                         : tame_impl_drv_job_outside(port, it);
    if (it->status == TAME_MORE)
        return TAME_IMPL_DRV_AGAIN;
    if (item->where != TAME_DRV_PORT) {
        item->where = TAME_DRV_PORT;
        return TAME_IMPL_DRV_AGAIN;
    }
    if (it->job->done != NULL && !__atomic_load_n(&port->closing, __ATOMIC_RELAXED))
        it->job->done(port->data, it->state, it->status);
    tame_impl_drv_job_drop(port, item);
    return TAME_IMPL_DRV_ENDED;
}

static const struct tame_impl_drv_kind tame_impl_drv_job = {tame_impl_drv_job_run,
                                                            tame_impl_drv_job_drop};

/* Runs `step` on `state` in slices where `where` says, then `done` and `cleanup`. When the port
 * closes first it ends after a step, and only `cleanup` is called. As tame_drv_schedule; with 0 the
 * state is still the caller's. */
static inline int tame_drv_run(ErlDrvPort port, enum tame_drv_where where,
                               const struct tame_drv_job *job, void *state)
{
    struct tame_impl_drv_port *here = tame_impl_drv_here(port);
    struct tame_impl_drv_job *it;

    if (here == NULL)
        return 0;
    it = (struct tame_impl_drv_job *)tame_impl_drv_item_new(sizeof *it, &tame_impl_drv_job, where);
    if (it == NULL)
        return 0;
    it->job = job;
    it->state = state;
    it->status = TAME_MORE;
    if (tame_impl_drv_push(here, &it->item))
        return 1;
    driver_free(it);
    return 0;
}

#endif
