/* The NIFs of Tame.Threads (test/support/threads.ex): any of a list of uses of enif_*, on any kind
 * of thread: a normal scheduler, a dirty one, a thread of enif_thread_create, and in callbacks.
 *
 * A use (an `op`) gets a term and makes one that the test compares. On a scheduler both belong to
 * the environment of the NIF; elsewhere to one of its own. `caller` is what the manual of erl_nif
 * wants for caller_env there: the NIF's or the callback's environment, NULL on an own thread. */
#include <erl_nif.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef ERL_NIF_TERM (*op)(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                           const ErlNifPid *pid);

static ErlNifResourceType *plain_type; /* its destructor says on which thread it runs */
static ErlNifResourceType *work_type;  /* its callbacks do an op */

static ERL_NIF_TERM atom(ErlNifEnv *env, const char *name)
{
    return enif_make_atom(env, name);
}

static ERL_NIF_TERM here(ErlNifEnv *env)
{
    const int type = enif_thread_type();

    return atom(env, type == ERL_NIF_THR_UNDEFINED             ? "none"
                     : type == ERL_NIF_THR_NORMAL_SCHEDULER    ? "normal"
                     : type == ERL_NIF_THR_DIRTY_CPU_SCHEDULER ? "dirty_cpu"
                     : type == ERL_NIF_THR_DIRTY_IO_SCHEDULER  ? "dirty_io"
                                                               : "unknown");
}

/* ---- terms as a whole --------------------------------------------------------------------- */

static ERL_NIF_TERM copy(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifPid *pid)
{
    ErlNifEnv *other = enif_alloc_env();
    const ERL_NIF_TERM back = enif_make_copy(env, enif_make_copy(other, term));

    (void)caller, (void)pid;
    enif_free_env(other);
    return back;
}

static ERL_NIF_TERM to_binary(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                              const ErlNifPid *pid)
{
    ErlNifBinary binary;

    (void)caller, (void)pid;
    return enif_term_to_binary(env, term, &binary) ? enif_make_binary(env, &binary)
                                                   : atom(env, "refused");
}

static ERL_NIF_TERM from_binary(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                const ErlNifPid *pid)
{
    ErlNifBinary binary;
    ERL_NIF_TERM decoded;

    (void)caller, (void)pid;
    return enif_inspect_binary(env, term, &binary) &&
                   enif_binary_to_term(env, binary.data, binary.size, &decoded, 0) == binary.size
               ? decoded
               : atom(env, "refused");
}

static ERL_NIF_TERM hash_phash2(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                const ErlNifPid *pid)
{
    (void)caller, (void)pid;
    return enif_make_uint64(env, enif_hash(ERL_NIF_PHASH2, term, 0));
}

/* Its value is the emulator's own: the test compares it with that of another thread. */
static ERL_NIF_TERM hash_internal(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                  const ErlNifPid *pid)
{
    (void)caller, (void)pid;
    return enif_make_uint64(env, enif_hash(ERL_NIF_INTERNAL_HASH, term, 17));
}

static ERL_NIF_TERM compare(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                            const ErlNifPid *pid)
{
    const ERL_NIF_TERM other = enif_make_copy(env, term);

    (void)caller, (void)pid;
    return enif_compare(term, other) == 0 && enif_is_identical(term, other) &&
                   enif_compare(term, atom(env, "a")) != 0
               ? atom(env, "equal")
               : atom(env, "different");
}

static ERL_NIF_TERM print(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                          const ErlNifPid *pid)
{
    const size_t size = 4096;
    char *text = enif_alloc(size); /* freed below */
    ERL_NIF_TERM printed;

    (void)caller, (void)pid;
    enif_snprintf(text, size, "%T", term);
    printed = enif_make_string(env, text, ERL_NIF_LATIN1);
    enif_free(text);
    return printed;
}

/* A message that is copied: without an environment of its own. */
static ERL_NIF_TERM send_copied(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                const ErlNifPid *pid)
{
    return enif_send(caller, pid, NULL, enif_make_tuple2(env, atom(env, "message"), term))
               ? atom(env, "sent")
               : atom(env, "refused");
}

/* A message that is moved: its environment goes with it. */
static ERL_NIF_TERM send_moved(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                               const ErlNifPid *pid)
{
    ErlNifEnv *message = enif_alloc_env();
    const int sent = enif_send(
        caller, pid, message,
        enif_make_tuple2(message, atom(message, "message"), enif_make_copy(message, term)));

    enif_free_env(message);
    return sent ? atom(env, "sent") : atom(env, "refused");
}

/* ---- maps: `term` is one of the keys 0 to N - 1, each its own value, or N ------------------- */

static ERL_NIF_TERM map_from_arrays(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                    const ErlNifPid *pid)
{
    unsigned count;
    ERL_NIF_TERM *keys, map;

    (void)caller, (void)pid;
    if (!enif_get_uint(env, term, &count))
        return atom(env, "refused");
    keys = enif_alloc(sizeof *keys * (count + 1)); /* freed below */
    for (unsigned i = 0; i < count; i++)
        keys[i] = enif_make_uint(env, i);
    if (!enif_make_map_from_arrays(env, keys, keys, count, &map))
        map = atom(env, "refused");
    enif_free(keys);
    return map;
}

static ERL_NIF_TERM map_put(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                            const ErlNifPid *pid)
{
    ERL_NIF_TERM map = enif_make_new_map(env);
    unsigned count;

    (void)caller, (void)pid;
    if (!enif_get_uint(env, term, &count))
        return atom(env, "refused");
    for (unsigned i = 0; i < count; i++) {
        const ERL_NIF_TERM key = enif_make_uint(env, i);

        if (!enif_make_map_put(env, map, key, key, &map))
            return atom(env, "refused");
    }
    return map;
}

/* Updates each key to what it is, gets it, and removes all but the last. */
static ERL_NIF_TERM map_update(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM map,
                               const ErlNifPid *pid)
{
    size_t count;

    (void)caller, (void)pid;
    if (!enif_get_map_size(env, map, &count))
        return atom(env, "refused");
    for (size_t i = 0; i < count; i++) {
        const ERL_NIF_TERM key = enif_make_uint64(env, i);
        ERL_NIF_TERM value;

        if (!enif_make_map_update(env, map, key, key, &map) ||
            !enif_get_map_value(env, map, key, &value) || !enif_is_identical(key, value))
            return atom(env, "refused");
    }
    for (size_t i = 0; i + 1 < count; i++)
        if (!enif_make_map_remove(env, map, enif_make_uint64(env, i), &map))
            return atom(env, "refused");
    return map;
}

/* The sum of the keys, forth and back. */
static ERL_NIF_TERM map_iterator(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM map,
                                 const ErlNifPid *pid)
{
    ErlNifMapIterator at;
    ERL_NIF_TERM key, value;
    ErlNifUInt64 sum = 0, number;

    (void)caller, (void)pid;
    if (!enif_map_iterator_create(env, map, &at, ERL_NIF_MAP_ITERATOR_FIRST))
        return atom(env, "refused");
    for (; enif_map_iterator_get_pair(env, &at, &key, &value); enif_map_iterator_next(env, &at))
        sum += enif_get_uint64(env, key, &number) ? number : 0;
    for (enif_map_iterator_prev(env, &at); enif_map_iterator_get_pair(env, &at, &key, &value);
         enif_map_iterator_prev(env, &at))
        sum += enif_get_uint64(env, key, &number) ? number : 0;
    enif_map_iterator_destroy(env, &at);
    return enif_make_uint64(env, sum);
}

/* ---- lists, tuples, binaries, atoms -------------------------------------------------------- */

/* A list, or a tuple's elements, taken apart and made anew as a list. */
static ERL_NIF_TERM list(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifPid *pid)
{
    ERL_NIF_TERM made = enif_make_list(env, 0), back, head;
    unsigned length;

    (void)caller, (void)pid;
    if (!enif_get_list_length(env, term, &length))
        return atom(env, "refused");
    while (enif_get_list_cell(env, term, &head, &term))
        made = enif_make_list_cell(env, head, made);
    return enif_make_reverse_list(env, made, &back) ? back : atom(env, "refused");
}

static ERL_NIF_TERM tuple(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                          const ErlNifPid *pid)
{
    const ERL_NIF_TERM *elements;
    int arity;

    (void)caller, (void)pid;
    return enif_get_tuple(env, term, &arity, &elements)
               ? enif_make_tuple2(env, enif_make_tuple_from_array(env, elements, (unsigned)arity),
                                  enif_make_list_from_array(env, elements, (unsigned)arity))
               : atom(env, "refused");
}

/* The same bytes four times: allocated and grown, new, a part, and a resource's. */
static ERL_NIF_TERM binary(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                           const ErlNifPid *pid)
{
    ErlNifBinary in, grown;
    ERL_NIF_TERM fresh;
    void *object;
    ERL_NIF_TERM of_resource;

    (void)caller, (void)pid;
    if (!enif_inspect_binary(env, term, &in) || !enif_alloc_binary(in.size / 2, &grown) ||
        !enif_realloc_binary(&grown, in.size))
        return atom(env, "refused");
    memcpy(grown.data, in.data, in.size);
    memcpy(enif_make_new_binary(env, in.size, &fresh), in.data, in.size);
    object = enif_alloc_resource(plain_type, in.size + sizeof(ErlNifPid));
    enif_set_pid_undefined((ErlNifPid *)object); /* nobody is told of its end */
    memcpy((char *)object + sizeof(ErlNifPid), in.data, in.size);
    of_resource =
        enif_make_resource_binary(env, object, (char *)object + sizeof(ErlNifPid), in.size);
    enif_release_resource(object);
    return enif_make_list(env, 4, enif_make_binary(env, &grown), fresh,
                          enif_make_sub_binary(env, fresh, 0, in.size), of_resource);
}

static ERL_NIF_TERM iolist(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                           const ErlNifPid *pid)
{
    ErlNifBinary in;
    ERL_NIF_TERM fresh;

    (void)caller, (void)pid;
    if (!enif_inspect_iolist_as_binary(env, term, &in))
        return atom(env, "refused");
    memcpy(enif_make_new_binary(env, in.size, &fresh), in.data, in.size);
    return fresh;
}

/* A list of binaries through an I/O queue, and what is left of it after the first byte. */
static ERL_NIF_TERM ioq(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifPid *pid)
{
    ErlNifIOQueue *queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL); /* destroyed below */
    ErlNifIOVec *vector = NULL;
    ERL_NIF_TERM tail, head = atom(env, "refused");
    size_t size, left = 0;

    (void)caller, (void)pid;
    /* Owned by the environment. */
    if (enif_inspect_iovec(env, 1000000, term, &tail, &vector) && enif_ioq_enqv(queue, vector, 0) &&
        enif_ioq_deq(queue, 1, &left) && enif_ioq_peek_head(env, queue, &size, &head))
        head = enif_make_tuple2(env, enif_make_uint64(env, left), head);
    enif_ioq_destroy(queue);
    return head;
}

static ERL_NIF_TERM atoms(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                          const ErlNifPid *pid)
{
    char name[256];
    ERL_NIF_TERM existing;
    const int length = enif_get_string(env, term, name, sizeof name, ERL_NIF_LATIN1);

    (void)caller, (void)pid;
    if (length <= 0)
        return atom(env, "refused");
    return enif_make_existing_atom_len(env, name, (size_t)length - 1, &existing, ERL_NIF_LATIN1)
               ? existing
               : enif_make_atom_len(env, name, (size_t)length - 1);
}

static ERL_NIF_TERM numbers(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                            const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_list(env, 5, enif_make_uint64(env, UINT64_MAX),
                          enif_make_int64(env, INT64_MIN), enif_make_int(env, -1),
                          enif_make_double(env, 0.5),
                          enif_make_string(env, "text", ERL_NIF_LATIN1));
}

/* ---- the emulator's counters and clocks ----------------------------------------------------- */

static ERL_NIF_TERM make_ref(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                             const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_tuple2(env, enif_make_ref(env), enif_make_ref(env));
}

static ERL_NIF_TERM unique_integer(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                   const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_list(
        env, 4, enif_make_unique_integer(env, 0),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_MONOTONIC),
        enif_make_unique_integer(env, ERL_NIF_UNIQUE_POSITIVE | ERL_NIF_UNIQUE_MONOTONIC));
}

static ERL_NIF_TERM a_time(ErlNifEnv *env, ErlNifTime time)
{
    return time == ERL_NIF_TIME_ERROR ? atom(env, "error") : enif_make_int64(env, time);
}

static ERL_NIF_TERM clocks(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                           const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_tuple2(env, a_time(env, enif_monotonic_time(ERL_NIF_NSEC)),
                            a_time(env, enif_time_offset(ERL_NIF_NSEC)));
}

static ERL_NIF_TERM system_info(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                const ErlNifPid *pid)
{
    ErlNifSysInfo info;

    (void)caller, (void)pid, (void)term;
    enif_system_info(&info, sizeof info);
    return enif_make_tuple2(
        env, enif_make_int(env, info.scheduler_threads),
        enif_make_int64(env, enif_convert_time_unit(1, ERL_NIF_SEC, ERL_NIF_USEC)));
}

/* ---- processes, ports, resources, events ---------------------------------------------------- */

static ERL_NIF_TERM self(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term, const ErlNifPid *pid)
{
    ErlNifPid self;

    (void)caller, (void)pid, (void)term;
    return enif_self(env, &self) != NULL ? enif_make_pid(env, &self) : atom(env, "none");
}

static ERL_NIF_TERM whereis(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                            const ErlNifPid *pid)
{
    ErlNifPid found;

    (void)pid, (void)term;
    return enif_whereis_pid(caller, atom(env, "init"), &found) ? enif_make_pid(env, &found)
                                                               : atom(env, "refused");
}

static ERL_NIF_TERM alive(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                          const ErlNifPid *pid)
{
    ErlNifPid copy = *pid;

    (void)term;
    return atom(env, enif_is_process_alive(caller, &copy) ? "true" : "false");
}

/* {Port, Data}. The one function that takes no NULL for caller_env, says its source, and an
 * environment that is no caller's on an own thread. */
static ERL_NIF_TERM port_command(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                 const ErlNifPid *pid)
{
    const ERL_NIF_TERM *elements;
    int arity;
    ErlNifPort port;

    (void)pid;
    return enif_get_tuple(env, term, &arity, &elements) && arity == 2 &&
                   enif_get_local_port(env, elements[0], &port) &&
                   enif_port_command(caller != NULL ? caller : env, &port, NULL, elements[1])
               ? atom(env, "sent")
               : atom(env, "refused");
}

static ERL_NIF_TERM port_command_null(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                      const ErlNifPid *pid)
{
    const ERL_NIF_TERM *elements;
    int arity;
    ErlNifPort port;

    (void)caller, (void)pid;
    return enif_get_tuple(env, term, &arity, &elements) && arity == 2 &&
                   enif_get_local_port(env, elements[0], &port) &&
                   enif_port_command(NULL, &port, NULL, elements[1])
               ? atom(env, "sent")
               : atom(env, "refused");
}

static ERL_NIF_TERM port_alive(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                               const ErlNifPid *pid)
{
    ErlNifPort port;

    (void)pid;
    return atom(env, enif_get_local_port(env, term, &port) && enif_is_port_alive(caller, &port)
                         ? "true"
                         : "false");
}

/* A resource that is released at once: its destructor tells the test on which thread it runs. */
static ERL_NIF_TERM resource(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                             const ErlNifPid *pid)
{
    void *object = enif_alloc_resource(plain_type, sizeof *pid), *again;
    ErlNifEnv *other = enif_alloc_env(); /* freed below, and the term with it */

    (void)caller, (void)term;
    memcpy(object, pid, sizeof *pid);
    if (!enif_get_resource(other, enif_make_resource(other, object), plain_type, &again) ||
        again != object)
        enif_set_pid_undefined((ErlNifPid *)object);
    enif_release_resource(object);
    enif_free_env(other);
    return atom(env, "released");
}

static ERL_NIF_TERM monitor(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                            const ErlNifPid *pid)
{
    void *object = enif_alloc_resource(plain_type, sizeof *pid);
    ErlNifMonitor monitor;
    int monitored, ended;

    (void)term;
    enif_set_pid_undefined((ErlNifPid *)object);
    monitored = enif_monitor_process(caller, object, pid, &monitor) == 0;
    ended = monitored && enif_demonitor_process(caller, object, &monitor) == 0;
    enif_release_resource(object);
    return atom(env, ended ? "true" : "false");
}

/* Waits for a pipe that has something to read: {select, Resource, undefined, ready_input} follows.
 */
static ERL_NIF_TERM select_event(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                 const ErlNifPid *pid)
{
    struct plain {
        ErlNifPid pid;
        int fds[2];
    } *plain = enif_alloc_resource(plain_type, sizeof *plain);
    int selected = -1;

    (void)term;
    enif_set_pid_undefined(&plain->pid);
    if (pipe(plain->fds) == 0 && write(plain->fds[1], "x", 1) == 1)
        /* The event keeps the resource; the pipe is left to the end of the throw-away VM. */
        selected = enif_select(caller, plain->fds[0], ERL_NIF_SELECT_READ, plain, pid,
                               enif_make_atom(env, "undefined"));
    enif_release_resource(plain);
    return enif_make_int(env, selected);
}

/* ---- what needs a process, or a library ------------------------------------------------------ */

static ERL_NIF_TERM consume_timeslice(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                      const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_int(env, enif_consume_timeslice(env, 1));
}

static ERL_NIF_TERM current_alive(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                  const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return enif_make_int(env, enif_is_current_process_alive(env));
}

static ERL_NIF_TERM priv_data(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                              const ErlNifPid *pid)
{
    (void)caller, (void)pid, (void)term;
    return atom(env, enif_priv_data(env) == &plain_type ? "found" : "other");
}

static ERL_NIF_TERM next(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    (void)argc, (void)argv;
    return atom(env, "scheduled");
}

static ERL_NIF_TERM schedule_nif(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                 const ErlNifPid *pid)
{
    (void)caller, (void)pid;
    return enif_schedule_nif(env, "next", 0, next, 1, &term);
}

/* An exception sent as a term, as a result that was made on an own thread would be. */
static ERL_NIF_TERM raise_and_send(ErlNifEnv *caller, ErlNifEnv *env, ERL_NIF_TERM term,
                                   const ErlNifPid *pid)
{
    ErlNifEnv *message = enif_alloc_env();
    const ERL_NIF_TERM raised = enif_raise_exception(message, atom(message, "reason"));

    (void)term;
    (void)enif_send(caller, pid, NULL, enif_make_tuple2(env, atom(env, "message"), raised));
    enif_free_env(message);
    return atom(env, "sent");
}

static const struct {
    const char *name;
    op run;
} ops[] = {{"copy", copy},
           {"to_binary", to_binary},
           {"from_binary", from_binary},
           {"hash_phash2", hash_phash2},
           {"hash_internal", hash_internal},
           {"compare", compare},
           {"print", print},
           {"send_copied", send_copied},
           {"send_moved", send_moved},
           {"map_from_arrays", map_from_arrays},
           {"map_put", map_put},
           {"map_update", map_update},
           {"map_iterator", map_iterator},
           {"list", list},
           {"tuple", tuple},
           {"binary", binary},
           {"iolist", iolist},
           {"ioq", ioq},
           {"atoms", atoms},
           {"numbers", numbers},
           {"make_ref", make_ref},
           {"unique_integer", unique_integer},
           {"clocks", clocks},
           {"system_info", system_info},
           {"self", self},
           {"whereis", whereis},
           {"alive", alive},
           {"port_command", port_command},
           {"port_command_null", port_command_null},
           {"port_command_closed", port_command},
           {"port_alive", port_alive},
           {"resource", resource},
           {"monitor", monitor},
           {"select_event", select_event},
           {"consume_timeslice", consume_timeslice},
           {"current_alive", current_alive},
           {"priv_data", priv_data},
           {"schedule_nif", schedule_nif},
           {"raise_and_send", raise_and_send}};

static op find_op(ErlNifEnv *env, ERL_NIF_TERM name)
{
    char text[32];

    if (enif_get_atom(env, name, text, sizeof text, ERL_NIF_LATIN1))
        for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
            if (strcmp(ops[i].name, text) == 0)
                return ops[i].run;
    return NULL;
}

/* ---- the kinds of threads ---------------------------------------------------------------------
 */

/* An op that is done elsewhere: a resource of work_type. Its answer goes to pid: {Ref, Thread,
 * Term}. */
struct work {
    op run;
    ErlNifEnv *env; /* owned; holds term and reference */
    ERL_NIF_TERM term, reference;
    ErlNifPid pid;
    ErlNifMonitor monitor;
    int fds[2];
    int in_dtor; /* the op is for the destructor */
};

/* (Op, Term, Ref) -> {Ref, Thread, Term}, where the NIF runs. */
static ERL_NIF_TERM scheduler_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    const op run = find_op(env, argv[0]);
    ErlNifPid self;
    ERL_NIF_TERM term;

    (void)argc;
    if (run == NULL)
        return enif_make_badarg(env);
    term = run(env, env, argv[1], enif_self(env, &self));
    /* What enif_schedule_nif returns is no term, and has to be returned as it is. */
    return run == schedule_nif ? term : enif_make_tuple3(env, argv[2], here(env), term);
}

static void do_work(ErlNifEnv *caller, struct work *work)
{
    const ERL_NIF_TERM term = work->run(caller, work->env, work->term, &work->pid);

    (void)enif_send(caller, &work->pid, NULL,
                    enif_make_tuple3(work->env, work->reference, here(work->env), term));
    enif_free_env(work->env);
    work->env = NULL;
}

static struct work *new_work(ErlNifEnv *env, const ERL_NIF_TERM argv[])
{
    struct work *work = enif_alloc_resource(work_type, sizeof *work);

    memset(work, 0, sizeof *work);
    work->run = find_op(env, argv[0]);
    work->env = enif_alloc_env();
    work->term = enif_make_copy(work->env, argv[1]);
    work->reference = enif_make_copy(work->env, argv[2]);
    enif_self(env, &work->pid);
    return work;
}

static void *on_thread(void *arg)
{
    do_work(NULL, arg);
    return NULL;
}

static void *release_on_thread(void *arg)
{
    enif_release_resource(arg);
    return NULL;
}

/* On a dirty I/O scheduler, which waits for the thread. */
static ERL_NIF_TERM with_thread(ErlNifEnv *env, struct work *work, void *(*run)(void *))
{
    ErlNifTid tid;

    if (enif_thread_create("threads_test", &tid, run, work, NULL) != 0)
        return enif_make_badarg(env);
    enif_thread_join(tid, NULL);
    return atom(env, "ok");
}

static ERL_NIF_TERM thread_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);
    const ERL_NIF_TERM ok = with_thread(env, work, on_thread);

    (void)argc;
    enif_release_resource(work);
    return ok;
}

static ERL_NIF_TERM dtor_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    work->in_dtor = 1;
    enif_release_resource(work);
    return atom(env, "ok");
}

static ERL_NIF_TERM dtor_thread_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    work->in_dtor = 1;
    return with_thread(env, work, release_on_thread);
}

/* The fourth argument is a process that the test ends. */
static ERL_NIF_TERM down_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);
    ErlNifPid victim;

    (void)argc;
    /* The callback releases it. */
    return enif_get_local_pid(env, argv[3], &victim) &&
                   enif_monitor_process(env, work, &victim, &work->monitor) == 0
               ? atom(env, "ok")
               : enif_make_badarg(env);
}

static ERL_NIF_TERM stop_nif(ErlNifEnv *env, int argc, const ERL_NIF_TERM argv[])
{
    struct work *work = new_work(env, argv);

    (void)argc;
    if (pipe(work->fds) != 0 ||
        enif_select(env, work->fds[0], ERL_NIF_SELECT_READ, work, NULL, atom(env, "undefined")) < 0)
        return enif_make_badarg(env);
    (void)enif_select(env, work->fds[0], ERL_NIF_SELECT_STOP, work, NULL, atom(env, "undefined"));
    enif_release_resource(work);
    return atom(env, "ok");
}

static void work_dtor(ErlNifEnv *env, void *object)
{
    struct work *work = object;

    if (work->in_dtor)
        do_work(env, work);
    if (work->env != NULL)
        enif_free_env(work->env);
}

static void work_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)pid, (void)monitor;
    do_work(env, object);
    enif_release_resource(object);
}

static void work_stop(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    struct work *work = object;

    (void)event, (void)is_direct_call;
    do_work(env, work);
    close(work->fds[0]);
    close(work->fds[1]);
}

static void plain_dtor(ErlNifEnv *env, void *object)
{
    ErlNifPid *pid = object;
    ErlNifEnv *message;

    if (enif_is_pid_undefined(pid))
        return;
    message = enif_alloc_env();
    (void)enif_send(env, pid, message,
                    enif_make_tuple2(message, atom(message, "dtor"), here(message)));
    enif_free_env(message);
}

static void plain_stop(ErlNifEnv *env, void *object, ErlNifEvent event, int is_direct_call)
{
    (void)env, (void)object, (void)event, (void)is_direct_call;
}

static void plain_down(ErlNifEnv *env, void *object, ErlNifPid *pid, ErlNifMonitor *monitor)
{
    (void)env, (void)object, (void)pid, (void)monitor;
}

static int load(ErlNifEnv *env, void **priv_data, ERL_NIF_TERM info)
{
    ErlNifResourceTypeInit work = {.dtor = work_dtor, .stop = work_stop, .down = work_down};
    ErlNifResourceTypeInit plain = {.dtor = plain_dtor, .stop = plain_stop, .down = plain_down};

    (void)info;
    *priv_data = &plain_type;
    work_type = enif_open_resource_type_x(env, "work", &work, ERL_NIF_RT_CREATE, NULL);
    plain_type = enif_open_resource_type_x(env, "plain", &plain, ERL_NIF_RT_CREATE, NULL);
    return work_type == NULL || plain_type == NULL;
}

static ErlNifFunc functions[] = {{"normal", 3, scheduler_nif, 0},
                                 {"dirty_cpu", 3, scheduler_nif, ERL_NIF_DIRTY_JOB_CPU_BOUND},
                                 {"dirty_io", 3, scheduler_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"thread", 3, thread_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"dtor", 3, dtor_nif, 0},
                                 {"dtor_thread", 3, dtor_thread_nif, ERL_NIF_DIRTY_JOB_IO_BOUND},
                                 {"down", 4, down_nif, 0},
                                 {"stop", 3, stop_nif, 0}};

ERL_NIF_INIT(Elixir.Tame.Threads, functions, load, NULL, NULL, NULL)
