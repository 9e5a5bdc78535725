/* One call of a NIF (see call.h), with the hops of enif_schedule_nif and exceptions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "atom.h"
#include "call.h"
#include "control.h"
#include "etf.h"
#include "host.h"
#include "lease.h"
#include "query.h"
#include "worker.h"

/* When hops have left this much behind, what is still needed moves to a fresh arena. */
#define HOP_GARBAGE_BYTES (8u << 20)

/* A longer name of a function is refused, as by the VM. */
#define FUNCTION_NAME_MAX 255

static const ErlNifFunc *function_at(int index)
{
    const struct library *library = &host.library;

    if (library->entry == NULL || index < 0 || index >= library->entry->num_of_funcs)
        return NULL;
    return (const ErlNifFunc *)((const char *)library->entry->funcs +
                                (size_t)index * library->function_bytes);
}

/* Before NIF version 2.7 there was no such field. */
static unsigned flags_of(const ErlNifFunc *function)
{
    return host.library.function_bytes == sizeof *function ? function->flags : 0;
}

static int thread_type(unsigned flags)
{
    return flags == ERL_NIF_DIRTY_JOB_CPU_BOUND  ? ERL_NIF_THR_DIRTY_CPU_SCHEDULER
           : flags == ERL_NIF_DIRTY_JOB_IO_BOUND ? ERL_NIF_THR_DIRTY_IO_SCHEDULER
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

/* The list's elements as an array. -1: it is no proper list of this length. */
static term *list_to_array(ErlNifEnv *env, term list, unsigned len)
{
    term *array = env_alloc(env, len * sizeof *array);
    unsigned i = 0;

    for (; is_list_cell(list) && i < len; list = cell_of(list)[1])
        array[i++] = cell_of(list)[0];
    return list == TERM_NIL && i == len ? array : NULL;
}

/* ---- replying ------------------------------------------------------------------------- */

static int declare_atoms(struct etf_out *out)
{
    term *atoms = out->atoms.items, names = TERM_NIL;
    ErlNifEnv env;
    int ok;

    env_init(&env, ENV_INDEPENDENT);
    for (size_t i = 0; i < out->atoms.len; i++) {
        struct atom *atom = atom_of(atoms[i]);
        names = term_cons(&env, term_binary(&env, atom->name, atom->size, 0, NULL), names);
    }
    ok = query_is_true(query_term(&env, "new_atoms", 1, names));
    for (size_t i = 0; ok && i < out->atoms.len; i++)
        atom_of(atoms[i])->declared = 1;
    env_destroy(&env);
    return ok;
}

int host_prepare(term t, struct call *call, struct etf_out *out)
{
    etf_out_init(out);
    etf_size(t, 0, out);
    while (out->resent.len > 0 &&
           !lease_hold(out, call == NULL ? 0 : call->id, call == NULL ? 0 : call->number)) {
        out->size = out->atoms.len = out->resent.len = 0;
        etf_size(t, 0, out);
    }
    return out->atoms.len == 0 || declare_atoms(out);
}

/* What any thread of the library has sent by now reaches its receiver before the reply does: the
 * thread may be one that the NIF waited for. */
static void sync_messages(struct call_writer *writer)
{
    uint64_t sent = host.sent, delivered = host.delivered;

    if (writer->in_order || sent == delivered)
        return;
    query_is_true(atom_make((const unsigned char *)"sync", 4, 1));
    while (delivered < sent && !atomic_compare_exchange_weak(&host.delivered, &delivered, sent)) {
    }
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
    if (!host_prepare(t, call, &out)) {
        /* The leases in out stay: the VM must hear of them. */
        t = atom_make((const unsigned char *)"system_limit", 12, 1);
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

/* ---- the call ------------------------------------------------------------------------- */

static void enter(struct call *call)
{
    pthread_mutex_lock(&host.calls.lock);
    call->next = host.calls.first;
    host.calls.first = call;
    pthread_mutex_unlock(&host.calls.lock);
}

static void leave(struct call *call)
{
    struct call **at = &host.calls.first;

    pthread_mutex_lock(&host.calls.lock);
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    pthread_mutex_unlock(&host.calls.lock);
}

int host_is_cancelled(struct call *call)
{
    struct call_writer *writer = call->writer;

    return call->cancelled || (writer->cancelled != NULL && writer->cancelled(writer));
}

void host_cancel(uint64_t id)
{
    pthread_mutex_lock(&host.calls.lock);
    for (struct call *call = host.calls.first; call != NULL; call = call->next) {
        if (call->id == id)
            call->cancelled = 1;
    }
    pthread_mutex_unlock(&host.calls.lock);
}

/* Reads the arguments; NULL: they are not what the function takes. */
static term *read_args(struct call *call, unsigned arity, const unsigned char *args, size_t size)
{
    term list;

    if (etf_read(&call->env, args, size, ETF_TRUSTED | ETF_BORROW | ETF_ASK, &list) != size)
        return NULL;
    if (host.library.wants_caller) {
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
        term name = term_binary(env, (const unsigned char *)call->function, strlen(call->function),
                                0, NULL);
        reply(call, REPLY_RAISE,
              query_term(env, "tame", 1, query_term(env, "returned_no_term", 1, name)), writer);
    } else {
        reply(call, REPLY_VALUE, result, writer);
    }
}

int host_call(int index, uint64_t id, const unsigned char *args, size_t size,
              struct call_writer *writer)
{
    const ErlNifFunc *function = function_at(index);
    struct call call;

    if (function == NULL)
        return -1;
    call = (struct call){
        .id = id, .number = ++host.last_call, .function = function->name, .writer = writer};
    env_init(&call.env, ENV_CALL);
    call.env.chunks = host_thread.spare_chunk;
    host_thread.spare_chunk = NULL;
    env_reset(&call.env);
    call.env.call = &call;

    term *argv = read_args(&call, function->arity, args, size);
    if (argv == NULL) {
        env_destroy(&call.env);
        return -1;
    }
    int type = host_thread.type;
    host_thread.in_call = 1;
    enter(&call);
    host_thread.type = thread_type(flags_of(function));
    host_thread.function = function;
    term result = function->fptr(&call.env, (int)function->arity, argv);
    if (result == TERM_NONE)
        result = run_hops(&call.env, result);
    host_thread.type = type;
    host_thread.function = NULL;
    leave(&call);
    finish(&call, result, writer);

    env_reset(&call.env);
    host_thread.spare_chunk = call.env.chunks;
    host_thread.in_call = 0;
    worker_call_ended();
    return 0;
}

/* ---- the API -------------------------------------------------------------------------- */

ERL_NIF_TERM enif_make_badarg(ErlNifEnv *env)
{
    return enif_raise_exception(env, ATOM(badarg));
}

ERL_NIF_TERM enif_raise_exception(ErlNifEnv *env, ERL_NIF_TERM reason)
{
    env->exception = reason;
    return TERM_NONE;
}

int enif_has_pending_exception(ErlNifEnv *env, ERL_NIF_TERM *reason)
{
    if (env->exception == TERM_NONE)
        return 0;
    if (reason != NULL)
        *reason = env->exception;
    return 1;
}

int enif_is_exception(ErlNifEnv *env, ERL_NIF_TERM t)
{
    /* What enif_schedule_nif returns is no term either, but no exception. */
    return t == TERM_NONE && env->exception != TERM_NONE;
}

ERL_NIF_TERM enif_schedule_nif(ErlNifEnv *env, const char *name, int flags, nif_function *function,
                               int argc, const ERL_NIF_TERM argv[])
{
    if (env->call == NULL || strlen(name) > FUNCTION_NAME_MAX || argc < 0 || argc > 255 ||
        (flags != 0 && flags != ERL_NIF_DIRTY_JOB_CPU_BOUND && flags != ERL_NIF_DIRTY_JOB_IO_BOUND))
        return enif_make_badarg(env);
    /* argv may lie on the stack of the NIF that is about to return. */
    term *copy = env_alloc(env, (size_t)argc * sizeof *copy);
    if (argc > 0)
        memcpy(copy, argv, (size_t)argc * sizeof *copy);
    env->hop = (struct hop){function, flags, argc, copy};
    return TERM_NONE;
}

int enif_consume_timeslice(ErlNifEnv *env, int percent)
{
    (void)percent; /* it is the caller who is charged, by the ring */
    return env->call != NULL && host_is_cancelled(env->call);
}

int enif_thread_type(void)
{
    return host_thread.type;
}
