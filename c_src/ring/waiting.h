/* waiting.h - the model of waiting: which side of a ring spins, for how long, and whom it wakes.
 *
 * Plain C; the time is given, so a test can be the clock (test/c/waiting_test.c).
 *
 * Two facts decide, and each is learned where it can be seen:
 *
 *     pause   a fact of the ring: from a reply that the VM has taken to its next request. The VM
 *             says it with each request. No wake-up is in it.
 *     work    a fact of the function: from a request to its reply, time in the queue included, but
 *             not the wake-up of a worker that slept. The host says it with each reply.
 *
 * What both sides do then:
 *
 *                  request                          reply
 *     VM     ───────┬───────────────────────────────┬──────────▶
 *                   │ work <= spin: spins; polls    │ pause: told with the next request
 *                   │               in company      │
 *                   │ work <= POLL: polls           │
 *                   │ else, or crowded: receive     │
 *     host   ───────┴───────── work ────────────────┴──────────▶
 *            pause <= PAUSE: spins    SHORT: attends    pause <= PAUSE: spins again
 *            else, or crowded, or      else: wakes another
 *            beside: sleeps
 *
 * Attending. One worker at most attends to the queue: it spins, or is at a call that is over sooner
 * than another worker would be awake. The VM wakes a sleeper only where nobody attends; so a stream
 * of short calls has one worker, the one that served last. A caller that stops spinning, whose call
 * nobody has taken, wakes a sleeper whatever is said: a call that was expected to be short may
 * block. One that polls does so when its call has waited longer than a wake-up takes: before, the
 * worker that attends is on its way to it, or at the calls before it. A second worker would find
 * nothing, and have taken somebody's core.
 *
 * Crowded. A side that finds by the clock that it was not running while it spun, or that polled in
 * vain for a call whose work was short, has lost its core. Once is chance: an interrupt, a thread of
 * the system. Twice within WAITING_AGAIN_NS of spinning, and others want the cores: it does not spin
 * for a while then, twice as long each time in a row.
 *
 * Beside. The system may wake a worker on the CPU that its caller is on, whatever others are idle.
 * The VM says with each request where it was. A worker there does not spin: its caller cannot take
 * the reply while it does. It sleeps, and the system may put it elsewhere for the next call. Where it
 * does not, and calls come soon, the worker goes: else it would sleep, and be woken there, for ever.
 *
 * Company. A caller that polls gives its scheduler to the next process, and looks again when it has
 * its turn. Where the call before on the same scheduler was another process's, and not long ago,
 * that is better than to spin: while the host is at one call the next one is made. A turn is bad
 * where others than callers had most of it. One such turn is chance: a garbage collection, an
 * interrupt. Another in a row, and callers spin for a time, which is so long that what is lost by
 * trying again is a small part of it.
 *
 * Deep. With WAITING_DEEP calls under way the host has work for a while. A caller that looks in vain
 * then gives its core away, not only its turn: the thread of another scheduler, or of the worker, may
 * be waiting for that core. Otherwise the system lets each of them wait for 4 ms, and all its callers
 * with it.
 *
 * Nothing here is more than a hint: every wait ends, and what a host says of itself costs its own
 * callers at most the spinning that they were asked to do (spin_us). Estimates are read and written
 * by several threads without a lock; one may be lost. */
#ifndef TAME_RING_WAITING_H
#define TAME_RING_WAITING_H

#include <stdint.h>

/* How long it takes until a thread that sleeps runs: 5 to 60 us here. */
#define WAITING_WAKE_NS 50000

/* The longest pause for which a worker spins. For longer ones it costs more than a wake-up does. */
#define WAITING_PAUSE_NS 200000

/* Calls with longer pauses than this come seldom. It is twice the pause above, because pauses vary: a
 * worker that stayed beside its caller at 0.2 ms could not spin through the shorter ones. */
#define WAITING_SELDOM_NS 400000

/* A caller polls, in turns with other processes, for this long: to be woken from receive takes two
 * wake-ups, which is less than a third of it. What it takes of its scheduler is what the call would
 * take in the VM. */
#define WAITING_POLL_NS 400000

/* Callers keep company when one calls this soon after the other. */
#define WAITING_COMPANY_NS 100000

/* Of a turn each call, and each look of one that polls, has this much at most: 0.4 to 1 us were seen, 3
 * in the first turn after some in which all spun. A process that only counts has 2 us of a turn, one
 * that makes lists 14. */
#define WAITING_SHARE_NS 5000

/* After two bad turns in a row callers spin for this many times the length of the last one, and no
 * longer than that. */
#define WAITING_BAD_TURNS 16
#define WAITING_BAD_MAX_NS 1000000000

/* This many calls keep the host busy while one scheduler has no core: to give it away takes 2 to 50
 * us. */
#define WAITING_DEEP 16

/* Callers of another scheduler give the core back when they look in vain: 64 of them keep it for 0.1
 * ms. If it comes back later than this, another program had it. */
#define WAITING_AWAY_NS 1000000

/* To yield takes 0.1 us, and a look is one NIF call more: a shorter call is spun for. */
#define WAITING_YIELD_NS 500

/* A call is short when it is over before another worker would be awake. */
#define WAITING_SHORT_NS 20000

/* Threads that share a core take turns of a few ms; what comes by chance was seen 4 to 8 times in
 * 250 ms. */
#define WAITING_AGAIN_NS 20000000

/* One call beside its caller is chance, and to move takes some us. */
#define WAITING_BESIDE 2

/* How long a crowded side does not spin. */
#define WAITING_CROWDED_NS 1000000
#define WAITING_CROWDED_MAX_NS 64000000

/* Bytes that pass from one core's cache to the other's take 0.1 to 0.2 ns each, and what is made of
 * them as long again: a caller spins longer by that. */
#define WAITING_BYTES_PER_NS 3

/* Functions share an estimate by number. Those of the libraries of one host begin at multiples of
 * 2^14, and are not to share theirs number by number. */
#define WAITING_FUNCTIONS 64

static inline uint32_t waiting_place(uint32_t function)
{
    return (function ^ function >> 14) % WAITING_FUNCTIONS;
}

/* ---- estimates ---- */

/* Falls by half the difference, rises by an eighth: one call that took long, or one long pause, is
 * not the end of spinning, and a short one soon brings it back. */
static inline void waiting_learn(uint32_t *known, uint64_t seen, uint32_t most)
{
    const uint32_t old = __atomic_load_n(known, __ATOMIC_RELAXED);
    const uint32_t now = seen > most ? most : (uint32_t)seen;

    __atomic_store_n(known, now < old ? old - (old - now + 1) / 2 : old + (now - old + 7) / 8,
                     __ATOMIC_RELAXED);
}

/* ---- others want the cores ---- */

struct waiting_crowd {
    uint64_t lost_ns; /* when the core was lost last */
    uint64_t until_ns;
    uint64_t backoff_ns;
};

static inline int waiting_is_crowded(const struct waiting_crowd *crowd, uint64_t now_ns)
{
    return now_ns < __atomic_load_n(&crowd->until_ns, __ATOMIC_RELAXED);
}

/* Who waits since then has lost its core; so have others who waited at that time, which counts
 * once. */
static inline void waiting_lost_core(struct waiting_crowd *crowd, uint64_t since_ns,
                                     uint64_t now_ns)
{
    const uint64_t lost_ns = __atomic_load_n(&crowd->lost_ns, __ATOMIC_RELAXED);
    const uint64_t until_ns = __atomic_load_n(&crowd->until_ns, __ATOMIC_RELAXED);
    uint64_t backoff_ns = __atomic_load_n(&crowd->backoff_ns, __ATOMIC_RELAXED) * 2;

    if (since_ns < lost_ns)
        return;
    __atomic_store_n(&crowd->lost_ns, now_ns, __ATOMIC_RELAXED);
    if (lost_ns == 0 || now_ns > (lost_ns > until_ns ? lost_ns : until_ns) + WAITING_AGAIN_NS)
        return;
    if (backoff_ns < WAITING_CROWDED_NS)
        backoff_ns = WAITING_CROWDED_NS;
    if (backoff_ns > WAITING_CROWDED_MAX_NS)
        backoff_ns = WAITING_CROWDED_MAX_NS;
    __atomic_store_n(&crowd->backoff_ns, backoff_ns, __ATOMIC_RELAXED);
    __atomic_store_n(&crowd->until_ns, now_ns + backoff_ns, __ATOMIC_RELAXED);
}

/* Spinning has paid. */
static inline void waiting_uncrowded(struct waiting_crowd *crowd)
{
    const uint64_t backoff_ns = __atomic_load_n(&crowd->backoff_ns, __ATOMIC_RELAXED);

    if (backoff_ns > 0)
        __atomic_store_n(&crowd->backoff_ns, backoff_ns / 2, __ATOMIC_RELAXED);
}

/* ---- the VM's side: one for a scheduler ---- */

struct waiting_scheduler {
    uint64_t caller; /* who made the last call, and when */
    uint64_t called_ns;
    uint64_t visits;   /* calls, and looks of those who poll */
    uint64_t bad_ns;   /* when a bad turn ended; 0: the last one was good */
    uint64_t until_ns; /* callers spin */
};

/* A process calls on this scheduler. Returns whether it is in company. */
static inline int waiting_called(struct waiting_scheduler *scheduler, uint64_t caller,
                                 uint64_t now_ns)
{
    const int others =
        scheduler->caller != caller && now_ns < scheduler->called_ns + WAITING_COMPANY_NS;

    scheduler->caller = caller;
    scheduler->called_ns = now_ns;
    scheduler->visits++;
    return others && now_ns >= scheduler->until_ns;
}

/* A caller that polls has its turn again, and looks; visits was the scheduler's number when it gave
 * its turn away. */
static inline void waiting_looked(struct waiting_scheduler *scheduler, uint64_t since_ns,
                                  uint64_t visits, uint64_t now_ns)
{
    const uint64_t most_ns = (++scheduler->visits - visits) * WAITING_SHARE_NS;

    if (since_ns < scheduler->bad_ns)
        return; /* what was bad in it is known */
    if (now_ns <= since_ns + most_ns) {
        scheduler->bad_ns = 0;
        return;
    }
    if (scheduler->bad_ns > 0) {
        const uint64_t spin_ns = (now_ns - since_ns) * WAITING_BAD_TURNS;

        scheduler->until_ns =
            now_ns + (spin_ns < WAITING_BAD_MAX_NS ? spin_ns : WAITING_BAD_MAX_NS);
    }
    scheduler->bad_ns = now_ns;
}

/* ---- the VM's side: one for a ring ---- */

enum waiting_how { WAITING_SPIN, WAITING_POLL, WAITING_RECEIVE };

struct waiting_vm {
    uint32_t work_ns[WAITING_FUNCTIONS];
    struct waiting_crowd crowd;
    struct waiting_crowd away; /* who have the cores that callers give away */
    uint64_t replied_ns;       /* when a reply was taken last */
};

static inline uint64_t waiting_pause_ns(const struct waiting_vm *vm, uint64_t now_ns)
{
    const uint64_t replied_ns = __atomic_load_n(&vm->replied_ns, __ATOMIC_RELAXED);

    return now_ns > replied_ns ? now_ns - replied_ns : 0;
}

static inline uint32_t waiting_spin_ns(uint32_t spin_ns, uint64_t bytes)
{
    return spin_ns + (uint32_t)(bytes / WAITING_BYTES_PER_NS);
}

/* How the caller of a function begins to wait, who may spin for limit_ns; woke: a worker had to be
 * woken for it; company: as waiting_called says. */
static inline enum waiting_how waiting_begin(const struct waiting_vm *vm, uint32_t function,
                                             uint32_t limit_ns, int woke, int company,
                                             uint64_t now_ns)
{
    const uint64_t expected_ns =
        (uint64_t)__atomic_load_n(&vm->work_ns[waiting_place(function)], __ATOMIC_RELAXED) +
        (woke ? WAITING_WAKE_NS : 0);

    if (waiting_is_crowded(&vm->crowd, now_ns))
        return WAITING_RECEIVE;
    if (expected_ns <= (company ? WAITING_YIELD_NS : limit_ns))
        return WAITING_SPIN;
    return expected_ns <= WAITING_POLL_NS ? WAITING_POLL : WAITING_RECEIVE;
}

/* Whether a caller that polls wakes a worker for its call, if nobody has it: at its first look,
 * looked_ns the one before, after the time that a wake-up takes. */
static inline int waiting_nudges(uint64_t submitted_ns, uint64_t looked_ns, uint64_t now_ns)
{
    return now_ns > submitted_ns + WAITING_WAKE_NS && looked_ns <= submitted_ns + WAITING_WAKE_NS;
}

/* Whether a caller that looked in vain gives the core away; depth: how many calls are under way
 * besides its own. */
static inline int waiting_gives_core(const struct waiting_vm *vm, uint32_t depth, uint64_t now_ns)
{
    return depth >= WAITING_DEEP && !waiting_is_crowded(&vm->away, now_ns);
}

/* It has the core again. What others had of it is no bad turn of this scheduler's. */
static inline void waiting_got_core(struct waiting_vm *vm, struct waiting_scheduler *scheduler,
                                    uint64_t since_ns, uint64_t now_ns)
{
    scheduler->visits += (now_ns - since_ns) / WAITING_SHARE_NS;
    if (now_ns > since_ns + WAITING_AWAY_NS)
        waiting_lost_core(&vm->away, since_ns, now_ns);
    else
        waiting_uncrowded(&vm->away);
}

/* A reply was taken that took this long, as the host says. */
static inline void waiting_replied(struct waiting_vm *vm, uint32_t function, uint64_t work_ns,
                                   uint64_t now_ns)
{
    waiting_learn(&vm->work_ns[waiting_place(function)], work_ns, 4 * WAITING_POLL_NS);
    __atomic_store_n(&vm->replied_ns, now_ns, __ATOMIC_RELAXED);
}

/* The caller had polled to the end: was it the call that took long, or others who took the cores? */
static inline void waiting_polled_out(struct waiting_vm *vm, uint64_t work_ns, uint64_t since_ns,
                                      uint64_t now_ns)
{
    if (work_ns < WAITING_POLL_NS / 2)
        waiting_lost_core(&vm->crowd, since_ns, now_ns);
}

/* ---- the host's side: one for a ring ---- */

struct waiting_host {
    uint32_t pause_ns;
    uint32_t work_ns[WAITING_FUNCTIONS];
    struct waiting_crowd crowd;
};

/* A request was taken, of whose pause the VM tells. Returns whether the worker attends to the queue
 * while it is at the call. */
static inline int waiting_taken(struct waiting_host *host, uint32_t function, uint64_t pause_ns)
{
    waiting_learn(&host->pause_ns, pause_ns, 4 * WAITING_PAUSE_NS);
    return __atomic_load_n(&host->work_ns[waiting_place(function)], __ATOMIC_RELAXED) <=
           WAITING_SHORT_NS;
}

static inline void waiting_worked(struct waiting_host *host, uint32_t function, uint64_t work_ns)
{
    waiting_learn(&host->work_ns[waiting_place(function)], work_ns, 4 * WAITING_SHORT_NS);
}

/* Whether a worker goes to another CPU, after this many calls in a row beside its callers. Where calls
 * come seldom it stays: it sleeps anyhow, is woken where it was, and its caller waits while it moves. */
static inline int waiting_leaves(const struct waiting_host *host, uint32_t beside)
{
    return beside % WAITING_BESIDE == 0 &&
           __atomic_load_n(&host->pause_ns, __ATOMIC_RELAXED) <= WAITING_SELDOM_NS;
}

/* For how long a worker spins for the next request; rang: the caller of the last one waited to be
 * woken, so it comes later by that; beside: the worker was on that caller's CPU. */
static inline uint64_t waiting_attend_ns(const struct waiting_host *host, int rang, int beside,
                                         uint64_t now_ns)
{
    if (beside || __atomic_load_n(&host->pause_ns, __ATOMIC_RELAXED) > WAITING_PAUSE_NS ||
        waiting_is_crowded(&host->crowd, now_ns))
        return 0;
    return WAITING_PAUSE_NS + (rang ? 2 * WAITING_WAKE_NS : 0);
}

#endif
