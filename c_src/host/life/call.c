/* One call of a NIF (see call.h), with the hops of enif_schedule_nif and exceptions. */
#include <pthread.h>
#include <stdatomic.h>

#include "life/call.h"
#include "life/library.h"
#include "life/limits.h"
#include "life/resource_type.h"
#include "life/thread.h"
#include "life/worker.h"
#include "term/atom.h"
#include "term/copy.h"
#include "wire/prepare.h"
#include "wire/query.h"
#include "wire/tell.h"

/* When hops have left this much behind, what is still needed moves to a fresh arena. */
#define HOP_GARBAGE_BYTES (8u << 20)

/* The calls that run, and the libraries whose functions may be called. */
static struct {
    pthread_mutex_t lock;
    struct call *first;
    struct library *libraries[LIBRARIES_MAX];
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* By the number of a function (library.h). Pages that no library has are never touched. */
static _Atomic unsigned char is_dirty[LIBRARIES_MAX * LIBRARY_FUNCTIONS_MAX];

int host_call_is_dirty(unsigned function)
{
    return function < sizeof is_dirty && is_dirty[function];
}

static int thread_type(unsigned flags)
{
    /* Both, which enif_schedule_nif takes, are the latter. */
    return flags & ERL_NIF_DIRTY_JOB_IO_BOUND    ? ERL_NIF_THR_DIRTY_IO_SCHEDULER
           : flags & ERL_NIF_DIRTY_JOB_CPU_BOUND ? ERL_NIF_THR_DIRTY_CPU_SCHEDULER
                                                 : ERL_NIF_THR_NORMAL_SCHEDULER;
}

/* ---- running -------------------------------------------------------------------------- */

/* A chain of hops that makes terms all the time must not grow for ever. */
static void collect_garbage(ErlNifEnv *env)
{
    struct hop hop = env->hop;
    ErlNifEnv fresh;

    env_init(&fresh, env->kind);
    fresh.call = env->call;
    fresh.library = env->library;
    fresh.call_id = env->call_id;
    fresh.call_number = env->call_number;
    term *argv = env_alloc(&fresh, (size_t)hop.argc * sizeof(term));
    for (int i = 0; i < hop.argc; i++)
        argv[i] = term_copy(&fresh, hop.argv[i]);
    hop.argv = argv;
    env_destroy(env);
    *env = fresh;
    env->hop = hop;
}

static term run_hops(ErlNifEnv *env, term result)
{
    size_t limit_bytes = HOP_GARBAGE_BYTES;

    while (result == TERM_NONE && env->exception == TERM_NONE && env->hop.function != NULL) {
        if (env->used_bytes > limit_bytes) {
            collect_garbage(env);
            limit_bytes = 2 * env->used_bytes + HOP_GARBAGE_BYTES;
        }
        struct hop hop = env->hop;
        env->hop = (struct hop){0};
        host_thread.type = thread_type((unsigned)hop.flags);
        result = hop.function(env, hop.argc, hop.argv);
    }
    return result;
}

/* The list's elements as an array. NULL: it is no proper list of this length. */
static term *list_to_array(ErlNifEnv *env, term list, unsigned len)
{
    term *array = env_alloc(env, len * sizeof *array);
    unsigned i = 0;

    for (; is_list_cell(list) && i < len; list = cell_of(list)[1])
        array[i++] = cell_of(list)[0];
    return list == TERM_NIL && i == len ? array : NULL;
}

/* ---- replying ------------------------------------------------------------------------- */

/* What any thread of the library has sent by now reaches its receiver before the reply does: the
 * thread may be one that the NIF waited for. */
static void sync_messages(struct call_writer *writer)
{
    if (!writer->in_order)
        tell_sync();
}

static void reply(struct call *call, enum reply_kind kind, term t, struct call_writer *writer)
{
    struct reply reply = {.kind = kind};
    struct etf_out out;
    ErlNifEnv *env = &call->env;
    unsigned char *room = NULL;

    if (kind == REPLY_BADARG) {
        sync_messages(writer);
        writer->done(writer, &reply);
        return;
    }
    if (!prepare(t, env, writer->most, &out)) {
        /* The leases in out stay: the VM must hear of them. */
        t = ATOM_LITERAL("system_limit");
        reply.kind = REPLY_RAISE;
        out.size = out.atoms.len = 0;
        etf_size(t, 0, &out);
    }
    sync_messages(writer);
    for (;;) {
        reply.size = out.size;
        reply.leases = out.leases.items;
        reply.leases_len = out.leases.len;
        room = writer->room(writer, &reply);
        if (room != NULL)
            break;
        /* {tame, {reply_too_large, Bytes}} */
        t = query_term(env, "tame", 1,
                       query_term(env, "reply_too_large", 1, term_unsigned(env, out.size)));
        reply.kind = REPLY_RAISE;
        out.size = 0;
        etf_size(t, 0, &out);
    }
    etf_write(t, room);
    writer->done(writer, &reply);
    etf_out_free(&out);
}

/* ---- libraries ------------------------------------------------------------------------ */

static void mark_dirty(unsigned number, const struct library *library)
{
    const ErlNifFunc *function;

    for (int i = 0; (function = library_function(library, i)) != NULL; i++)
        is_dirty[number * LIBRARY_FUNCTIONS_MAX + (unsigned)i] =
            thread_type(library_flags(library, function)) != ERL_NIF_THR_NORMAL_SCHEDULER;
}

void host_calls_begin(unsigned number, struct library *library)
{
    if (library != NULL)
        mark_dirty(number, library);
    pthread_mutex_lock(&calls.lock);
    calls.libraries[number] = library;
    pthread_mutex_unlock(&calls.lock);
}

struct library *host_calls_library(unsigned number)
{
    struct library *library = NULL;

    if (number < LIBRARIES_MAX) {
        pthread_mutex_lock(&calls.lock);
        library = calls.libraries[number];
        pthread_mutex_unlock(&calls.lock);
    }
    return library;
}

struct library *host_calls_end(unsigned number)
{
    struct library *library = host_calls_library(number);

    if (library != NULL)
        host_calls_begin(number, NULL);
    return library;
}

/* No call of it runs, and none begins. */
static void let_go(struct library *library)
{
    resource_types_leave(library);
    shared_drop(&library->shared);
}

void host_calls_ended(struct library *library)
{
    pthread_mutex_lock(&calls.lock);
    int idle = library->calls == 0;
    library->is_retired = 1;
    pthread_mutex_unlock(&calls.lock);
    if (idle)
        let_go(library);
}

/* ---- the call ------------------------------------------------------------------------- */

/* NULL: there is no such function. */
static const ErlNifFunc *enter(struct call *call, unsigned number)
{
    unsigned at = number / LIBRARY_FUNCTIONS_MAX;
    const ErlNifFunc *function = NULL;

    pthread_mutex_lock(&calls.lock);
    call->library = at < LIBRARIES_MAX ? calls.libraries[at] : NULL;
    if (call->library != NULL)
        function = library_function(call->library, (int)(number % LIBRARY_FUNCTIONS_MAX));
    if (function != NULL) {
        call->library->calls++;
        call->next = calls.first;
        calls.first = call;
    }
    pthread_mutex_unlock(&calls.lock);
    return function;
}

static void leave(struct call *call)
{
    struct library *library = call->library;
    struct call **at = &calls.first;

    pthread_mutex_lock(&calls.lock);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    int is_last = --library->calls == 0 && library->is_retired;
    pthread_mutex_unlock(&calls.lock);
    if (is_last)
        let_go(library);
}

int host_is_cancelled(struct call *call)
{
    struct call_writer *writer = call->writer;

    return call->cancelled || (writer->cancelled != NULL && writer->cancelled(writer));
}

void host_cancel(uint64_t id)
{
    pthread_mutex_lock(&calls.lock);
    for (struct call *call = calls.first; call != NULL; call = call->next) {
        if (call->env.call_id == id)
            call->cancelled = 1;
    }
    pthread_mutex_unlock(&calls.lock);
}

/* Reads the arguments; NULL: they are not what the function takes. */
static term *read_args(struct call *call, unsigned arity, const unsigned char *args, size_t size)
{
    term list;

    if (etf_read(&call->env, args, size, ETF_TRUSTED | ETF_BORROW | ETF_ASK, &list) != size)
        return NULL;
    if (call->library->wants_caller) {
        if (!is_list_cell(list))
            return NULL;
        call->caller = cell_of(list)[0];
        list = cell_of(list)[1];
    }
    return list_to_array(&call->env, list, arity);
}

static void finish(struct call *call, term result, struct call_writer *writer)
{
    ErlNifEnv *env = &call->env;

    /* A pending exception wins, whatever the NIF returned. */
    if (env->exception == ATOM(badarg)) {
        reply(call, REPLY_BADARG, TERM_NONE, writer);
    } else if (env->exception != TERM_NONE) {
        reply(call, REPLY_RAISE, env->exception, writer);
    } else if (result == TERM_NONE) {
        /* The VM would most likely crash. */
        term name = term_latin1(env, call->function);
        reply(call, REPLY_RAISE,
              query_term(env, "tame", 1, query_term(env, "returned_no_term", 1, name)), writer);
    } else {
        reply(call, REPLY_VALUE, result, writer);
    }
}

int host_call(int number, uint64_t id, const unsigned char *args, size_t size,
              struct call_writer *writer)
{
    static _Atomic uint64_t last_number;
    struct call call = {.writer = writer,
                        .env = {.kind = ENV_CALL,
                                .chunks = host_thread.spare_chunk,
                                .call = &call,
                                .call_id = id,
                                .call_number = ++last_number}};

    host_thread.spare_chunk = NULL;
    env_reset(&call.env);

    const ErlNifFunc *function = enter(&call, (unsigned)number);
    if (function == NULL) {
        const int is_unloaded =
            call.library == NULL && (unsigned)number / LIBRARY_FUNCTIONS_MAX < LIBRARIES_MAX;
        if (is_unloaded)
            reply(&call, REPLY_RAISE, ATOM_LITERAL("unloaded"), writer);
        env_destroy(&call.env);
        return is_unloaded ? 0 : -1;
    }
    call.function = function->name;
    call.env.library = call.library;
    term *argv = read_args(&call, function->arity, args, size);
    if (argv == NULL) {
        leave(&call);
        env_destroy(&call.env);
        return -1;
    }
    int type = host_thread.type;
    worker_begin_call();
    host_thread.type = thread_type(library_flags(call.library, function));
    host_thread.function = function;
    host_thread.call_env = &call.env;
    host_thread.receiver = TERM_NONE; /* it may have ended since the last call */
    limits_watch();
    term result = function->fptr(&call.env, (int)function->arity, argv);
    if (result == TERM_NONE)
        result = run_hops(&call.env, result);
    host_thread.type = type;
    host_thread.function = NULL;
    host_thread.call_env = NULL;
    limits_watch();
    finish(&call, result, writer);
    leave(&call);

    env_reset(&call.env);
    host_thread.spare_chunk = call.env.chunks;
    worker_end_call();
    return 0;
}
