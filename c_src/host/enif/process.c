/* The functions of the API on processes, ports and messages. */
#include "life/call.h"
#include "life/thread.h"
#include "memory/otp.h"
#include "memory/vm_clock.h"
#include "term/atom.h"
#include "term/hash.h"
#include "wire/prepare.h"
#include "wire/query.h"
#include "wire/tell.h"

/* ---- pids and ports as values --------------------------------------------------------- */

int enif_get_local_pid(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifPid *pid)
{
    (void)env;
    if (!is_local_pid(t))
        return 0;
    pid->pid = t;
    return 1;
}

int enif_get_local_port(ErlNifEnv *env, ERL_NIF_TERM t, ErlNifPort *port)
{
    (void)env;
    if (!is_local_port(t))
        return 0;
    port->port_id = t;
    return 1;
}

void enif_set_pid_undefined(ErlNifPid *pid)
{
    pid->pid = ATOM(undefined);
}

int enif_is_pid_undefined(const ErlNifPid *pid)
{
    return pid->pid == ATOM(undefined);
}

int enif_is_pid(ErlNifEnv *env, ERL_NIF_TERM t)
{
    return enif_term_type(env, t) == ERL_NIF_TERM_TYPE_PID;
}

int enif_is_port(ErlNifEnv *env, ERL_NIF_TERM t)
{
    return enif_term_type(env, t) == ERL_NIF_TERM_TYPE_PORT;
}

/* ---- questions ------------------------------------------------------------------------ */

/* {Name, Argument} */
static term ask(ErlNifEnv *scratch, const char *name, term argument)
{
    env_init(scratch, ENV_INDEPENDENT);
    return query_ask(scratch, query_term(scratch, name, 1, argument));
}

static int is_alive(term identifier)
{
    ErlNifEnv scratch;
    term answer = ask(&scratch, "alive", identifier);

    env_destroy(&scratch);
    return answer == ATOM(true);
}

int enif_is_process_alive(ErlNifEnv *env, ErlNifPid *pid)
{
    (void)env;
    return is_local_pid(pid->pid) && is_alive(pid->pid);
}

int enif_is_port_alive(ErlNifEnv *env, ErlNifPort *port)
{
    (void)env;
    return is_alive(port->port_id);
}

static term whereis(term name)
{
    ErlNifEnv scratch;
    term answer;

    if (!is_atom(name))
        return TERM_NONE;
    /* As a binary: the question must not make the atom. */
    struct atom *atom = atom_of(name);
    env_init(&scratch, ENV_INDEPENDENT);
    answer =
        query_ask(&scratch, query_term(&scratch, "whereis", 1,
                                       term_binary(&scratch, atom->name, atom->size, 0, NULL)));
    env_destroy(&scratch); /* pids and ports of this node are no pointers */
    return answer;
}

int enif_whereis_pid(ErlNifEnv *env, ERL_NIF_TERM name, ErlNifPid *pid)
{
    (void)env;
    pid->pid = whereis(name);
    return is_local_pid(pid->pid);
}

int enif_whereis_port(ErlNifEnv *env, ERL_NIF_TERM name, ErlNifPort *port)
{
    (void)env;
    port->port_id = whereis(name);
    return is_local_port(port->port_id);
}

/* ---- messages ------------------------------------------------------------------------- */

/* For how long a thread that sends one process message after message takes it to be alive. */
#define RECEIVER_NS 1000000

/* Whether there is this process: the VM is asked, once in a call or a millisecond. A probe has no VM. */
static int receives(term pid)
{
    const int64_t now_ns = vm_clock_ns();
    ErlNifEnv scratch;
    term answer;

    if (host_thread.receiver == pid && now_ns - host_thread.receiver_ns < RECEIVER_NS)
        return 1;
    answer = ask(&scratch, "alive", pid);
    env_destroy(&scratch);
    host_thread.receiver = answer == ATOM(true) ? pid : TERM_NONE;
    host_thread.receiver_ns = now_ns;
    return answer != ATOM(false);
}

/* Does not wait until the message is there, unless too much is on its way. */
int enif_send(ErlNifEnv *env, const ErlNifPid *to, ErlNifEnv *msg_env, ERL_NIF_TERM message)
{
    /* Its arguments are kept by the caller, so for nobody else: it may be killed. */
    const int is_to_caller = env != NULL && env->call != NULL && env->call->caller == to->pid;
    int ok = is_local_pid(to->pid) && (is_to_caller || receives(to->pid)) &&
             tell_message(is_to_caller ? env : NULL, to->pid, message);

    if (ok && msg_env != NULL)
        env_reset(msg_env);
    return ok;
}

int enif_port_command(ErlNifEnv *env, const ErlNifPort *to, ErlNifEnv *msg_env,
                      ERL_NIF_TERM message)
{
    ErlNifEnv scratch;
    int ok;

    (void)env;
    env_init(&scratch, ENV_INDEPENDENT);
    ok = prepare_question(message) &&
         query_ask(&scratch, query_term(&scratch, "port_command", 2, to->port_id, message)) ==
             ATOM(true);
    env_destroy(&scratch);
    if (ok && msg_env != NULL)
        env_reset(msg_env);
    return ok;
}

/* ---- what the VM must make ------------------------------------------------------------ */

ERL_NIF_TERM enif_make_ref(ErlNifEnv *env)
{
    term ref = query_ask(env, ATOM_LITERAL("make_ref"));

    return ref == TERM_NONE ? enif_make_badarg(env) : ref;
}

ERL_NIF_TERM enif_make_unique_integer(ErlNifEnv *env, ErlNifUniqueInteger properties)
{
    term list = TERM_NIL;

    if (properties & ERL_NIF_UNIQUE_POSITIVE)
        list = term_cons(env, ATOM(positive), list);
    if (properties & ERL_NIF_UNIQUE_MONOTONIC)
        list = term_cons(env, ATOM(monotonic), list);
    term made = query_ask(env, query_term(env, "unique_integer", 1, list));
    return made == TERM_NONE ? enif_make_badarg(env) : made;
}

/* What the VM says of a term, a number. None says that it was not asked, because it makes no more atoms or would
 * not read the term: then the call raises. */
static ErlNifUInt64 ask_number(const char *name, term t)
{
    ErlNifEnv scratch;
    term answer = TERM_NONE;

    env_init(&scratch, ENV_INDEPENDENT);
    if (prepare_question(t))
        answer = query_ask(&scratch, query_term(&scratch, name, 1, t));
    env_destroy(&scratch);
    if (is_small(answer))
        return (ErlNifUInt64)small_value(answer);
    if (host_thread.call_env != NULL)
        enif_raise_exception(host_thread.call_env, ATOM_LITERAL("system_limit"));
    return 0;
}

ErlNifUInt64 enif_hash(ErlNifHash type, ERL_NIF_TERM t, ErlNifUInt64 salt)
{
    if (type == ERL_NIF_INTERNAL_HASH)
        return term_hash(t, salt) & (otp_hashes_wide() ? UINT64_MAX : UINT32_MAX);
    return ask_number("phash2", t);
}

#if HAS_NIF_2_18
/* Words of the VM's heap, which only the VM knows. */
size_t enif_term_size(ERL_NIF_TERM t)
{
    return (size_t)ask_number("flat_size", t);
}
#endif
