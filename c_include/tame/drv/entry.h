/* tame/drv/entry.h - the table of functions that the VM calls: ours, around the author's.
 *
 * Part of tame/driver.h. The VM keeps a port whose driver queue is not empty until it is: it calls
 * `flush`, and `stop` when the queue is. So each port keeps a byte there, which is taken out when the
 * port closes and nothing of it is outside: the VM's own way to wait, with the port, its data and the
 * driver alive, and without a thread that blocks. */
#ifndef TAME_DRV_ENTRY_H
#define TAME_DRV_ENTRY_H

#include <errno.h>

#include "../charge.h"
#include "again.h"
#include "job.h"
#include "monitor.h"

#ifdef ERL_DRV_FLAG_USE_INIT_ACK
#define TAME_IMPL_DRV_INIT_ACK ERL_DRV_FLAG_USE_INIT_ACK
#else
#define TAME_IMPL_DRV_INIT_ACK 0
#endif

/* ---- around each callback ---- */

struct tame_impl_drv_frame {
    struct tame_impl_drv_now before;
    uint64_t start_ns;
};

/* A callback may end its port (driver_failure), and then `stop` is called within it. */
static inline struct tame_impl_drv_frame tame_impl_drv_enter(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_frame frame;

    frame.before = tame_impl_drv_now;
    frame.start_ns = tame_impl_meter_begin();
    tame_impl_drv_keep(port);
    memset(&tame_impl_drv_now, 0, sizeof tame_impl_drv_now);
    tame_impl_drv_now.port = port;
    return frame;
}

/* Charges the time of the callback to the port, or who called it: 1 % of a timeslice is 10 us. */
static inline void tame_impl_drv_charge(struct tame_impl_drv_port *port, uint64_t start_ns)
{
    uint64_t per_cent;

    port->owed_ns += tame_impl_meter_used_ns(start_ns, tame_impl_meter_now_ns());
    per_cent = port->owed_ns / TAME_IMPL_PERCENT_NS;
    port->owed_ns %= TAME_IMPL_PERCENT_NS;
    if (per_cent > 0)
        (void)erl_drv_consume_timeslice(port->port, per_cent > 100 ? 100 : (int)per_cent);
}

static inline void tame_impl_drv_leave(struct tame_impl_drv_port *port,
                                       const struct tame_impl_drv_frame *frame)
{
    const int error = errno; /* start and control may leave one for the VM */

    if (!port->stopped)
        tame_impl_drv_charge(port, frame->start_ns);
    tame_impl_drv_now = frame->before;
    tame_impl_drv_release(port);
    errno = error;
}

/* ---- back under the port's lock ---- */

/* How long items of the port run until others of its scheduler have their turn. */
#define TAME_IMPL_DRV_TURN_NS UINT64_C(100000)

static inline void tame_impl_drv_back_run(struct tame_impl_drv_port *port,
                                          struct tame_impl_drv_item *item)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    enum tame_impl_drv_ran ran;
    int again;

    tame_impl_drv_now.item = 1;
    tame_impl_drv_now.caller = item->caller;
    ran = item->kind->run(port, item);
    tame_impl_drv_now.item = 0;
    erl_drv_mutex_lock(library->lock);
    again = ran == TAME_IMPL_DRV_AGAIN && !port->closing;
    if (again)
        tame_impl_queue_push(&port->back, &item->link);
    erl_drv_mutex_unlock(library->lock);
    if (again)
        return;
    if (ran == TAME_IMPL_DRV_AGAIN)
        item->kind->drop(port, item);
    driver_free(item);
}

/* Runs one item; returns 0 when there is none. */
static inline int tame_impl_drv_back_one(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    struct tame_impl_drv_item *item;

    erl_drv_mutex_lock(library->lock);
    item = (struct tame_impl_drv_item *)tame_impl_queue_pop(&port->back);
    erl_drv_mutex_unlock(library->lock);
    if (item != NULL)
        tame_impl_drv_back_run(port, item);
    return item != NULL;
}

/* What is due when something of the port's has come back. */
static inline void tame_impl_drv_settle(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    int quiet, fails, ends_busy;

    erl_drv_mutex_lock(library->lock);
    quiet = tame_impl_drv_is_quiet(port);
    fails = port->fails;
    ends_busy = port->busy && port->work.len <= TAME_DRV_BUSY_AT / 2;
    if (ends_busy)
        port->busy = 0;
    if (port->back.len > 0)
        tame_impl_drv_ring(port);
    erl_drv_mutex_unlock(library->lock);

    if (ends_busy)
        set_busy_port(port->port, 0);
    if (!quiet || !port->closing)
        return;
    if (port->flushed && port->guarded) {
        port->guarded = 0;
        (void)driver_deq(port->port, 1); /* the VM calls stop after this callback */
    } else if (fails && !port->flushed) {
        (void)driver_failure_atom(port->port, port->failure);
    }
}

static inline void tame_impl_drv_back(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    const uint64_t start_ns = tame_now_ns();

    tame_impl_os_bell_hear(&port->bell->bell);
    erl_drv_mutex_lock(library->lock);
    port->rung = 0;
    erl_drv_mutex_unlock(library->lock);
    while (tame_now_ns() - start_ns < TAME_IMPL_DRV_TURN_NS && !port->stopped &&
           tame_impl_drv_back_one(port))
        ;
    if (!port->stopped)
        tame_impl_drv_settle(port);
}

/* ---- the life of a port ---- */

static inline int tame_impl_drv_has_work(struct tame_impl_drv_port *port)
{
    int has;

    erl_drv_mutex_lock(tame_impl_drv_library.lock);
    has = !tame_impl_drv_is_quiet(port);
    erl_drv_mutex_unlock(tame_impl_drv_library.lock);
    return has;
}

/* Nothing is taken any more, and what waits is dropped. What is outside is asked to end: by `closing`,
 * and by the author's flush, which knows how to wake it. */
static inline void tame_impl_drv_closes(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;

    erl_drv_mutex_lock(library->lock);
    __atomic_store_n(&port->closing, 1, __ATOMIC_RELAXED);
    erl_drv_mutex_unlock(library->lock);
    tame_impl_drv_drop_work(port);
    if (port->flushed)
        return;
    port->flushed = 1;
    if (library->entry->flush != NULL && tame_impl_drv_has_work(port))
        library->entry->flush(port->data);
}

static inline void tame_impl_drv_flush(ErlDrvData data)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);

    tame_impl_drv_closes(port);
    tame_impl_drv_settle(port);
    tame_impl_drv_leave(port, &frame);
}

/* As a rule nothing is outside. After exit(Port, kill) and driver_failure_atom, which do not flush,
 * there may be: then this waits for it. */
static inline void tame_impl_drv_await_quiet(struct tame_impl_drv_port *port)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;

    erl_drv_mutex_lock(library->lock);
    while (port->running)
        erl_drv_cond_wait(library->quiet, library->lock);
    port->stopped = 1;
    erl_drv_mutex_unlock(library->lock);
}

static inline void tame_impl_drv_stop(ErlDrvData data)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);

    tame_impl_drv_closes(port);
    tame_impl_drv_await_quiet(port);
    while (tame_impl_drv_back_one(port))
        ;
    if (tame_impl_drv_library.entry->stop != NULL)
        tame_impl_drv_library.entry->stop(port->data);
    if (port->bell != NULL)
        (void)driver_select(port->port, (ErlDrvEvent)(intptr_t)port->bell->bell.wait,
                            ERL_DRV_READ | ERL_DRV_USE, 0);
    tame_impl_drv_leave(port, &frame);
    tame_impl_drv_release(port); /* the VM's */
}

static inline int tame_impl_drv_is_refusal(ErlDrvData data)
{
    return data == ERL_DRV_ERROR_GENERAL || data == ERL_DRV_ERROR_ERRNO ||
           data == ERL_DRV_ERROR_BADARG;
}

static inline ErlDrvData tame_impl_drv_start(ErlDrvPort id, char *command)
{
    const ErlDrvEntry *entry = tame_impl_drv_library.entry;
    struct tame_impl_drv_port *port =
        (struct tame_impl_drv_port *)driver_alloc(sizeof *port); /* the VM's until stop */
    struct tame_impl_drv_frame frame;

    if (port == NULL)
        return ERL_DRV_ERROR_GENERAL;
    memset(port, 0, sizeof *port);
    port->port = id;
    port->term = driver_mk_port(id);
    port->references = 1;
    frame = tame_impl_drv_enter(port);
    port->data = entry->start == NULL ? NULL : entry->start(id, command);
    if (tame_impl_drv_is_refusal(port->data)) {
        const ErlDrvData refusal = port->data;

        /* The VM opens no port and calls no stop. */
        tame_impl_drv_closes(port);
        tame_impl_drv_await_quiet(port);
        while (tame_impl_drv_back_one(port))
            ;
        if (port->bell != NULL)
            (void)driver_select(id, (ErlDrvEvent)(intptr_t)port->bell->bell.wait,
                                ERL_DRV_READ | ERL_DRV_USE, 0);
        tame_impl_drv_leave(port, &frame);
        tame_impl_drv_release(port);
        return refusal;
    }
    port->guarded = driver_enq(id, (char *)"", 1) == 0;
    tame_impl_drv_leave(port, &frame);
    return (ErlDrvData)port;
}

/* ---- all other callbacks ---- */

#define TAME_IMPL_DRV_AROUND(CALL)                                       \
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data; \
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);  \
    tame_impl_drv_library.entry->CALL;                                   \
    tame_impl_drv_leave(port, &frame)

static inline void tame_impl_drv_ready_input(ErlDrvData data, ErlDrvEvent event)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);

    if (port->bell != NULL && event == (ErlDrvEvent)(intptr_t)port->bell->bell.wait)
        tame_impl_drv_back(port);
    else if (tame_impl_drv_library.entry->ready_input != NULL)
        tame_impl_drv_library.entry->ready_input(port->data, event);
    tame_impl_drv_leave(port, &frame);
}

static inline void tame_impl_drv_ready_output(ErlDrvData data, ErlDrvEvent event)
{
    TAME_IMPL_DRV_AROUND(ready_output(port->data, event));
}

static inline void tame_impl_drv_output(ErlDrvData data, char *bytes, ErlDrvSizeT len)
{
    TAME_IMPL_DRV_AROUND(output(port->data, bytes, len));
}

static inline void tame_impl_drv_vector(ErlDrvData data, ErlIOVec *vector)
{
    TAME_IMPL_DRV_AROUND(outputv(port->data, vector));
}

static inline void tame_impl_drv_timeout(ErlDrvData data)
{
    TAME_IMPL_DRV_AROUND(timeout(port->data));
}

static inline void tame_impl_drv_ready_async(ErlDrvData data, ErlDrvThreadData thread_data)
{
    TAME_IMPL_DRV_AROUND(ready_async(port->data, thread_data));
}

static inline void tame_impl_drv_process_exit(ErlDrvData data, ErlDrvMonitor *monitor)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);

    port->fired = monitor;
    tame_impl_drv_library.entry->process_exit(port->data, monitor);
    port->fired = NULL;
    tame_impl_drv_leave(port, &frame);
}

static inline void tame_impl_drv_emergency_close(ErlDrvData data)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;

    tame_impl_drv_library.entry->emergency_close(port->data);
}

static inline ErlDrvSSizeT tame_impl_drv_controls(ErlDrvData data, unsigned int command,
                                                  char *bytes, ErlDrvSizeT len, char **reply,
                                                  ErlDrvSizeT room)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);
    const ErlDrvSSizeT size =
        tame_impl_drv_library.entry->control(port->data, command, bytes, len, reply, room);

    tame_impl_drv_leave(port, &frame);
    return size;
}

static inline ErlDrvSSizeT tame_impl_drv_call(ErlDrvData data, unsigned int command, char *bytes,
                                              ErlDrvSizeT len, char **reply, ErlDrvSizeT room,
                                              unsigned int *flags)
{
    struct tame_impl_drv_port *port = (struct tame_impl_drv_port *)data;
    const struct tame_impl_drv_frame frame = tame_impl_drv_enter(port);
    const ErlDrvSSizeT size =
        tame_impl_drv_library.entry->call(port->data, command, bytes, len, reply, room, flags);

    tame_impl_drv_leave(port, &frame);
    return size;
}

static inline void tame_impl_drv_stop_select(ErlDrvEvent event, void *reserved)
{
    if (!tame_impl_drv_bell_close(event) && tame_impl_drv_library.entry->stop_select != NULL)
        tame_impl_drv_library.entry->stop_select(event, reserved);
}

/* Before the driver is unloaded; no port lives. */
static inline void tame_impl_drv_finish(void)
{
    if (tame_impl_drv_library.entry->finish != NULL)
        tame_impl_drv_library.entry->finish();
    tame_impl_drv_threads_close();
}

/* ---- the table ---- */

static inline ErlDrvEntry *tame_impl_drv_refused(const ErlDrvEntry *entry, const char *reason)
{
    fprintf(stderr, "tame: the driver %s is refused: %s\n",
            entry->driver_name == NULL ? "without a name" : entry->driver_name, reason);
    return NULL;
}

/* What driver_init returns. `entry` and `drop` are the author's. */
static inline ErlDrvEntry *tame_impl_drv_entry(const ErlDrvEntry *entry, tame_drv_drop drop)
{
    struct tame_impl_drv_library *library = &tame_impl_drv_library;
    ErlDrvEntry *ours = &library->ours;

    if (entry->driver_name == NULL)
        return tame_impl_drv_refused(entry, "it has no driver_name");
    if (entry->driver_flags & TAME_IMPL_DRV_INIT_ACK)
        return tame_impl_drv_refused(entry, "ERL_DRV_FLAG_USE_INIT_ACK is not supported");
    memset(library, 0, sizeof *library);
    library->entry = entry;
    library->drop = drop;
    library->atom_data = driver_mk_atom((char *)"data");
    library->atom_error = driver_mk_atom((char *)"error");
    library->atom_badarg = driver_mk_atom((char *)"badarg");
    library->atom_busy = driver_mk_atom((char *)"busy");
    if (pthread_mutex_init(&library->bells_lock, NULL) != 0 || !tame_impl_drv_threads_open())
        return tame_impl_drv_refused(entry, "there is no memory");

    *ours = *entry;
    ours->extended_marker = (int)ERL_DRV_EXTENDED_MARKER;
    ours->major_version = ERL_DRV_EXTENDED_MAJOR_VERSION;
    ours->minor_version = ERL_DRV_EXTENDED_MINOR_VERSION;
    ours->start = tame_impl_drv_start;
    ours->flush = tame_impl_drv_flush;
    ours->stop = tame_impl_drv_stop;
    ours->ready_input = tame_impl_drv_ready_input;
    ours->stop_select = tame_impl_drv_stop_select;
    ours->finish = tame_impl_drv_finish;
    /* The VM looks which of these there are. */
    ours->ready_output = entry->ready_output == NULL ? NULL : tame_impl_drv_ready_output;
    ours->output = entry->output == NULL ? NULL : tame_impl_drv_output;
    ours->outputv = entry->outputv == NULL ? NULL : tame_impl_drv_vector;
    ours->control = entry->control == NULL ? NULL : tame_impl_drv_controls;
    ours->call = entry->call == NULL ? NULL : tame_impl_drv_call;
    ours->timeout = entry->timeout == NULL ? NULL : tame_impl_drv_timeout;
    ours->ready_async = entry->ready_async == NULL ? NULL : tame_impl_drv_ready_async;
    ours->process_exit = entry->process_exit == NULL ? NULL : tame_impl_drv_process_exit;
    ours->emergency_close = entry->emergency_close == NULL ? NULL : tame_impl_drv_emergency_close;
    return ours;
}

/* Defines the driver NAME with the functions of ENTRY, a static ErlDrvEntry. DROP is a tame_drv_drop
 * or NULL. At file level, once. */
#define TAME_DRIVER_INIT(NAME, ENTRY, DROP)           \
    DRIVER_INIT(NAME)                                 \
    {                                                 \
        return tame_impl_drv_entry(&(ENTRY), (DROP)); \
    }

/* The driver queue is ours, a port that is made so would have no struct of ours, and the last one may end
 * the VM: tame_drv_demonitor. */
#pragma GCC poison driver_enq driver_enqv driver_enq_bin driver_pushq driver_pushqv driver_pushq_bin
#pragma GCC poison driver_deq driver_pdl_create driver_create_port driver_demonitor_process

#endif
