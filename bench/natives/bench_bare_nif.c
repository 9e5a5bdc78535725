/* bench_bare: the least that a call of the VM to another core costs: a NIF that copies a binary into
 * memory, says so, spins for the answer of a thread that spins as well, and makes a binary of it. No
 * isolation: no process, no table, no arguments but these, nobody who would notice a thread that
 * blocks or dies. What bench/limit.exs compares isolated calls with. */
#include <erl_nif.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tame/clock.h"

enum { BYTES_MAX = 1 << 20, LINE = 64 };

/* Each side writes its own line only. */
struct shared {
    _Alignas(LINE) _Atomic uint32_t asked;
    uint32_t bytes, spin_ns, stop;
    _Alignas(LINE) _Atomic uint32_t answered;
    _Alignas(LINE) unsigned char data[BYTES_MAX];
};

static struct shared shared;
static unsigned char mine[BYTES_MAX]; /* the thread's */
static ErlNifMutex *lock;             /* one call at a time */
static ErlNifTid thread;

static void await(_Atomic uint32_t *word, uint32_t value)
{
    while (atomic_load_explicit(word, memory_order_acquire) != value)
        tame_impl_pause();
}

static void *serve(void *nothing)
{
    (void)nothing;
    for (uint32_t i = 1;; i++) {
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
    atomic_fetch_add_explicit(&shared.asked, 1, memory_order_release);
}

static ERL_NIF_TERM start(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    /* () -> ok: from here on a core is busy, until stop/0 */
    (void)argc;
    (void)argv;
    memset(&shared, 0, sizeof shared);
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
    lock = enif_mutex_create("bench_bare"); /* the process's */
    return lock == NULL ? -1 : 0;
}

static ErlNifFunc functions[] = {
    {"start", 0, start, 0}, {"stop", 0, stop, ERL_NIF_DIRTY_JOB_IO_BOUND}, {"echo", 2, echo, 0}};

ERL_NIF_INIT(bench_bare, functions, load, NULL, NULL, NULL)
