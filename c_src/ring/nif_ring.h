/* nif_ring.h - a ring in the VM: its structs, and what every NIF asks of it.
 *
 * Private to the NIFs' files, nif_*.c and tame_ring_nif.c. What is free, who waits and for what is
 * kept here, in memory that the host cannot reach.
 *
 * A slot's word is id << 3 | phase, so that a step for a call that is over cannot hit the next one:
 *
 *     FREE -> BUSY          a NIF owns it; from PARKED on by compare-and-swap only
 *     BUSY -> PARKED        its caller lives and comes again by itself, poll/2 or wait/3; one that
 *                           is not monitored may have died, which the reader finds
 *     PARKED -> BUSY        it did
 *     BUSY -> WAITING       it waits in receive, the message to it is made
 *     WAITING -> BUSY       the NIF took it back: the reply came just then
 *     WAITING -> EXCLUSIVE  the reader, cancel/2 or process_down owns it
 *     EXCLUSIVE -> TOLD     the message is being sent: the caller takes the reply
 *     TOLD -> BUSY          it does
 *     ... -> ABANDONED      the caller died or stopped waiting; the reader frees it when the reply
 *                           comes
 *
 * Lives of a struct ring: counted in refs by the resource, the reader thread's entry in the
 * library, each process's watch that is to tell it of the process's end, each proxy, each copy and each reading under way. A caller holds the resource itself: it
 * has the ring's term, or keeps it while it calls by a route. */
#ifndef TAME_RING_NIF_RING_H
#define TAME_RING_NIF_RING_H

#include <erl_nif.h>
#include <tame/watch.h>

#include "etf_names.h"
#include "ring_vm.h"
#include "waiting.h"

enum phase { FREE, BUSY, PARKED, WAITING, EXCLUSIVE, TOLD, ABANDONED };

/* One caller that does not spin any more. */
struct waiter {
    ErlNifPid pid;
    struct tame_impl_watched watched; /* not of one that polls in company; it holds the ring */
    ErlNifEnv *env;                   /* holds message; NULL: not armed, or sent */
    ERL_NIF_TERM message;             /* {Ref, ready} */
};

struct slot {
    _Alignas(64) uint64_t word;
    struct extent region;  /* of the request */
    struct waiter waiter;  /* from PARKED on */
    uint64_t abandoned_ns; /* since when, in phase ABANDONED */
    uint64_t submitted_ns; /* 0: not submitted */
    uint64_t looked_ns;    /* when its caller gave its turn away, where, after which visit there */
    const struct waiting_scheduler *looked_on;
    uint64_t looked_at;
    uint64_t replied_ns; /* when its caller saw the reply; 0: it has not noted that */
    uint32_t function;
    int polled_out; /* its caller has polled in vain */
    /* Ever; written by the slot's owner. */
    uint64_t answered, calls, spins, spins_paid;
};

/* A call that waits for a slot. */
struct line_entry {
    struct line_entry *next, *before;
    uint64_t id;
    uint32_t function;
    struct extent region;
    struct waiter waiter;
    size_t size;
    uint8_t data[]; /* without a region */
};

/* Calls in the order in which they came. */
struct line {
    struct line_entry *first, *last;
};

/* Ids of leases that were used, on their way to the reader, who drops the VM's holds. */
struct lease_list {
    struct lease_list *next;
    size_t len;
    uint64_t ids[];
};

/* A hash table that grows by one chain at a time, so that no call of it takes long. */
#define LEASE_SEGMENT 1024
#define LEASE_SEGMENTS_MAX 2048

struct ring;

/* What the loaded instances of this library share. One of another layout is not touched but for the
 * first word. */
struct library {
    uint64_t abi;
    uint32_t instances;               /* guarded by lock, as rings and reader are */
    ErlNifMutex *lock;                /* taken before a ring's lock */
    struct ring *rings;               /* whose readers are to be joined */
    void *(*reader)(void *);          /* of the newest instance: the others' code may go */
    void (*retire)(struct library *); /* closes all rings, and ends their readers */
    struct tame_impl_watches *watches;
    ErlNifResourceType *ring_type, *route_type, *proxy_type, *copy_type, *reading_type, *watch_type;
    uint64_t names_seed;
    ERL_NIF_TERM am_value, am_raise, am_badarg, am_error, am_busy, am_host_down, am_bad_reply,
        am_wait, am_poll, am_encode, am_measure, am_too_large, am_ok, am_closed, am_ready,
        am_decode, am_upgraded, am_owner_down, am_reply_too_large, am_gone, am_none, am_by;
};

/* The first words of struct library, for an instance that has another layout behind them. */
struct library_head {
    uint64_t abi;
    uint32_t instances;
    ErlNifMutex *lock;
    struct ring *rings;
    void *(*reader)(void *);
    void (*retire)(struct library *);
};

struct ring {
    struct library *library;
    struct ring *next; /* in library->rings */
    struct ring_vm vm;
    uint32_t refs;
    uint32_t spin_ns;
    uint32_t line_max;
    uint64_t reply_bytes_max; /* memory that a reply may take */
    ErlNifPid owner;
    struct tame_impl_watched owner_watched; /* it holds the ring */
    struct slot *slots;

    /* Bits: slots in phase FREE. */
    RING_LINE uint64_t free[RING_SLOTS_MAX / 64];
    RING_LINE uint64_t next_id;
    uint64_t checked_ns; /* when the reader looked at all slots; 0: it is new */
    /* Written under lock. */
    RING_LINE uint32_t line_len;
    uint32_t closed;
    uint32_t removed; /* the pages went back to the system: what is read there is zeros */
    uint32_t stop;    /* the reader is to end, the ring goes on */
    RING_LINE struct waiting_vm waiting;
    uint8_t encodes[WAITING_FUNCTIONS]; /* the function's last arguments were long terms */

    /* Guards what follows. */
    RING_LINE ErlNifMutex *lock;
    struct line line;
    struct line dismissed; /* were in line when the ring was closed; each caller takes its own */
    struct extent *purges; /* regions to be purged and freed, by the reader */
    uint32_t purges_len, purges_max;
    ErlNifEnv *reason_env; /* why it was closed */
    ERL_NIF_TERM reason;
    struct proxy *
        *leases[LEASE_SEGMENTS_MAX]; /* the first of each chain, in segments; the ring's */
    size_t leases_chains, leases_unused, leases_holds;
    uint64_t leases_seed;
    uint64_t next_lease;
    uint64_t resources;     /* proxies that the host has used and that are alive */
    struct etf_names names; /* of nodes, that the host has written of late */
    struct lease_list *used;
    int used_closed; /* the reader has taken the last of them */

    /* Guards what follows, and vm.gone_tail. */
    RING_LINE ErlNifMutex *gone_lock;
    uint64_t *gone; /* a circle of ids that found no room on their way to the host */
    size_t gone_first, gone_len, gone_max;

    /* Slots that NIFs leave to the reader. */
    RING_LINE uint64_t ready[RING_SLOTS_MAX / 64];
    ErlNifTid reader;
    uint32_t reader_done;

    RING_LINE uint64_t waits, lined, busy, bad_replies, polls_paid;
};

struct ring_handle {
    struct ring *ring;
};

struct proxy {
    struct ring *ring;
    uint64_t id;
    /* Guarded by ring->lock. */
    int used;           /* the host has named it behind a reply, or used/2 did */
    uint32_t holds;     /* how often we keep it; if not 0, it is in the table of leases */
    struct proxy *next; /* in its chain there */
};

static inline void counted(uint64_t *counter)
{
    __atomic_fetch_add(counter, 1, __ATOMIC_RELAXED);
}

/* By the owner of what it is part of, on the way of every call. */
static inline void counted_alone(uint64_t *counter)
{
    __atomic_store_n(counter, *counter + 1, __ATOMIC_RELAXED);
}

static inline int is_closed(struct ring *ring)
{
    return (int)__atomic_load_n(&ring->closed, __ATOMIC_SEQ_CST);
}

/* Whether what was just read in the shared memory may be zeros instead of the host's words. */
static inline int is_removed(struct ring *ring)
{
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    return (int)__atomic_load_n(&ring->removed, __ATOMIC_SEQ_CST);
}

void ring_free(struct ring *ring);

static inline void ring_keep(struct ring *ring)
{
    __atomic_fetch_add(&ring->refs, 1, __ATOMIC_RELAXED);
}

static inline void ring_drop(struct ring *ring)
{
    if (__atomic_fetch_sub(&ring->refs, 1, __ATOMIC_ACQ_REL) == 1)
        ring_free(ring);
}

static inline void wake_reader(struct ring *ring)
{
    bell_ring(&ring->vm.header->vm_bell);
}

/* ---- nif_ring.c ---- */

static inline struct library *library_of(ErlNifEnv *env)
{
    return enif_priv_data(env);
}

int get_ring(ErlNifEnv *env, ERL_NIF_TERM term, struct ring **ring);

/* A reference that is none of our rings: one whose library was replaced by another layout (see
 * tame_ring_nif.c), which has closed it. */
int is_lost(ErlNifEnv *env, ERL_NIF_TERM ring_term);

/* What became of a call whose ring is lost: the host may have had it. */
ERL_NIF_TERM lost(ErlNifEnv *env, ERL_NIF_TERM ring_term);

/* A call on a lost ring, before it began. */
ERL_NIF_TERM lost_call(ErlNifEnv *env, ERL_NIF_TERM ring_term);

ERL_NIF_TERM raise_enomem(ErlNifEnv *env);
ERL_NIF_TERM make_error(ErlNifEnv *env, struct library *library, ERL_NIF_TERM reason);

/* The host is down, and may have had the call. */
ERL_NIF_TERM make_host_down(ErlNifEnv *env, struct ring *ring);

/* What a host wrote is wrong; or there is no host any more, and zeros were read. */
ERL_NIF_TERM make_bad_reply(ErlNifEnv *env, struct ring *ring, const char *what);

ERL_NIF_TERM make_too_large(ErlNifEnv *env, struct ring *ring, uint64_t bytes);

/* The host was dead before it could have heard of the call: it may be made again, elsewhere. */
ERL_NIF_TERM make_closed(ErlNifEnv *env, struct ring *ring);

/* Charges the calling process for time used. Here and not inline: the remainder that tame_charge
 * keeps is the thread's, and one for the library. */
void charge(ErlNifEnv *env, uint64_t ns);

/* The time in ns by the calling thread's own clock (tame/cycles.h): a third of what tame_now_ns costs, and
 * behind that by a microsecond at most. What one thread has noted by it is not compared with what
 * another reads by its own, unless either may be the later one. */
uint64_t own_now_ns(void);

/* Closes once. The reason may be 0. Never waits: the reader does what is to do, and ends. */
void ring_shut(struct ring *ring, ERL_NIF_TERM reason);

#endif
