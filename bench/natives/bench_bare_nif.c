/* bench_bare: the least that a call of the VM to another core costs: a NIF that copies a binary into
 * memory, says so, spins for the answer of a thread, and makes a binary of it. The thread spins as
 * well, for ever or for PATIENCE_NS: then it sleeps, and the NIF wakes it. No isolation: no process, no
 * table, no arguments but these, nobody who would notice a thread that blocks or dies. What
 * bench/limit.exs compares isolated calls with. */
#include <erl_nif.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tame/clock.h"

enum { BYTES_MAX = 1 << 20, LINE = 64, PATIENCE_NS = 100000 };

/* Each side writes its own line only. */
struct shared {
    _Alignas(LINE) _Atomic uint32_t asked;
    uint32_t bytes, spin_ns, stop, may_sleep;
    _Alignas(LINE) _Atomic uint32_t sleeps;
    _Alignas(LINE) _Atomic uint32_t answered;
    _Alignas(LINE) unsigned char data[BYTES_MAX];
};

static struct shared shared;
static unsigned char mine[BYTES_MAX]; /* the thread's */
static ErlNifMutex *lock;             /* one call at a time */
static ErlNifMutex *bed;              /* for the thread's sleep */
static ErlNifCond *rung;
static ErlNifTid thread;

static void await(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        tame_impl_pause();
}

static void await_patiently(uint32_t asked)
{
    const uint64_t start_ns = tame_now_ns();

    while (atomic_load_explicit(&shared.asked, memory_order_acquire) != asked) {
        tame_impl_pause();
        if (tame_now_ns() - start_ns < PATIENCE_NS)
            continue;
        enif_mutex_lock(bed);
        atomic_store(&shared.sleeps, 1);
        while (atomic_load(&shared.asked) != asked)
            enif_cond_wait(rung, bed);
        atomic_store(&shared.sleeps, 0);
        enif_mutex_unlock(bed);
    }
}

static void *serve(void *nothing)
{
    (void)nothing;
    for (uint32_t i = 1;; i++) {
        if (shared.may_sleep)
            await_patiently(i);
        else
            await(&shared.asked, i);
        if (shared.stop)
            return NULL;

        const uint64_t start_ns = shared.spin_ns > 0 ? tame_now_ns() : 0;

        memcpy(mine, shared.data, shared.bytes);
        while (shared.spin_ns > 0 && tame_now_ns() - start_ns < shared.spin_ns)
            ;
        memcpy(shared.data, mine, shared.bytes);
        atomic_store_explicit(&shared.answered, i, memory_order_release);
    }
}

static void ask(void)
{
    atomic_fetch_add(&shared.asked, 1);
    if (atomic_load(&shared.sleeps)) {
        enif_mutex_lock(bed);
        enif_cond_signal(rung);
        enif_mutex_unlock(bed);
    }
}

static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (spins | sleeps) -> ok; until stop/0 */
    (void)argc;
    memset(&shared, 0, sizeof shared);
    shared.may_sleep = enif_is_identical(argv[0], enif_make_atom(env, "sleeps"));
    if (enif_thread_create("bench_bare", &thread, serve, NULL, NULL) != 0)
        return enif_raise_exception(env, enif_make_atom(env, "system_limit"));
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM stop(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> ok */
    (void)argc;
    (void)argv;
    shared.stop = 1;
    ask();
    (void)enif_thread_join(thread, NULL);
    return enif_make_atom(env, "ok");
}

static ERL_NIF_TERM echo(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* (Bytes, Ns) -> Bytes, as many ns after the thread has seen them */
    ErlNifBinary bytes;
    unsigned ns;
    ERL_NIF_TERM result;
    unsigned char *data;

    (void)argc;
    if (!enif_inspect_binary(env, argv[0], &bytes) || bytes.size > BYTES_MAX ||
        !enif_get_uint(env, argv[1], &ns))
        return enif_make_badarg(env);
    enif_mutex_lock(lock);
    shared.bytes = (uint32_t)bytes.size;
    shared.spin_ns = ns;
    memcpy(shared.data, bytes.data, bytes.size);
    ask();
    await(&shared.answered, atomic_load_explicit(&shared.asked, memory_order_relaxed));
    data = enif_make_new_binary(env, bytes.size, &result); /* the VM's */
    memcpy(data, shared.data, bytes.size);
    enif_mutex_unlock(lock);
    return result;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    (void)env;
    (void)priv_data;
    (void)info;
    /* The process's, all three. */
    lock = enif_mutex_create("bench_bare");
    bed = enif_mutex_create("bench_bare_bed");
    rung = enif_cond_create("bench_bare");
    return lock == NULL || bed == NULL || rung == NULL ? -1 : 0;
}

static ErlNifFunc functions[] = {
    {"start", 1, start, 0}, {"stop", 0, stop, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"echo", 2, echo, 0}};

ERL_NIF_INIT(bench_bare, functions, load, NULL, NULL, NULL)
