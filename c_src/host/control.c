/* The control port, see control.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "atom.h"
#include "call.h"
#include "control.h"
#include "crash.h"
#include "etf.h"
#include "host.h"
#include "lease.h"
#include "load.h"
#include "map.h"
#include "monitor.h"
#include "query.h"
#include "resource.h"
#include "ring_door.h"
#include "worker.h"

/* A pipe's whole content in one read. */
#define READ_BYTES (64u * 1024)

/* Ours lie above what a library may expect to be free, or write to by mistake. */
#define CONTROL_LEAST_FD 100

/* ---- opening -------------------------------------------------------------------------- */

static void close_all_but(int in, int out)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    if (folder == NULL)
        return;
    while ((entry = readdir(folder)) != NULL) {
        int fd = atoi(entry->d_name);
        if (fd > STDERR_FILENO && fd != in && fd != out && fd != dirfd(folder))
            close(fd);
    }
    closedir(folder);
}

int control_open(void)
{
    int in = fcntl(CONTROL_IN_FD, F_DUPFD_CLOEXEC, CONTROL_LEAST_FD);
    int out = fcntl(CONTROL_OUT_FD, F_DUPFD_CLOEXEC, CONTROL_LEAST_FD);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (in < 0 || out < 0 || null < 0)
        return -1;
    if (fcntl(STDERR_FILENO, F_GETFD) < 0)
        dup2(null, STDERR_FILENO);
    if (dup2(null, STDIN_FILENO) < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
        return -1;
    close_all_but(in, out);
    host.control.in = in;
    host.control.out = out;
    return 0;
}

/* ---- writing -------------------------------------------------------------------------- */

static void put_length(unsigned char *to, size_t length)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(length >> (24 - 8 * i));
}

/* bytes begins with four that are free for the length. Frames of several threads never mix. */
static void write_frame(unsigned char *bytes, size_t size)
{
    /* What a pipe takes in one piece cannot be half written. */
    struct crash_record *torn = size > PIPE_BUF ? host.crash.record : NULL;

    put_length(bytes, size - 4);
    pthread_mutex_lock(&host.control.write_lock);
    if (torn != NULL)
        torn->writing_frame = 1;
    while (size > 0) {
        ssize_t n = write(host.control.out, bytes, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            _exit(0); /* nobody reads: the VM is gone, or has closed the port */
        bytes += n;
        size -= (size_t)n;
    }
    if (torn != NULL)
        torn->writing_frame = 0;
    pthread_mutex_unlock(&host.control.write_lock);
}

/* The frame's bytes, freed by the caller. Four are left for the length. */
static unsigned char *encode(term frame, size_t *size)
{
    struct etf_out out;

    etf_out_init(&out);
    etf_size(frame, ETF_COMPARABLE, &out);
    unsigned char *bytes = host_malloc(out.size + 5);
    bytes[4] = ETF_VERSION;
    etf_write(frame, bytes + 5);
    *size = out.size + 5;
    etf_out_free(&out);
    return bytes;
}

unsigned char *control_frame(term frame, size_t *size)
{
    unsigned char *bytes = encode(frame, size);

    put_length(bytes, *size - 4);
    return bytes;
}

static void write_term(term frame)
{
    size_t size;
    unsigned char *bytes = encode(frame, &size);

    write_frame(bytes, size);
    free(bytes);
}

void control_tell(ErlNifEnv *env, term frame)
{
    (void)env;
    if (host.control.out >= 0)
        write_term(frame);
}

void control_hello(void)
{
    ErlNifEnv env;
    term info;

    env_init(&env, ENV_INDEPENDENT);
    info = enif_make_new_map(&env);
    info = map_put(&env, info, atom_make_latin1((unsigned char *)"workers", 7, 1),
                   make_small(host.workers));
    info = map_put(
        &env, info, atom_make_latin1((unsigned char *)"nif_version", 11, 1),
        term_tuple(&env, 2,
                   (term[]){make_small(ERL_NIF_MAJOR_VERSION), make_small(ERL_NIF_MINOR_VERSION)}));
    control_tell(&env, query_term(&env, "hello", 3, make_small(CONTROL_PROTOCOL),
                                  make_small(getpid()), info));
    env_destroy(&env);
}

/* Names in queries go as binaries, but the terms of a phash2 may hold atoms that are new: then the
 * VM is told first. Resources in them are known to it. */
void control_query(uint64_t id, term what)
{
    ErlNifEnv env;

    env_init(&env, ENV_INDEPENDENT);
    write_term(query_term(&env, "query", 2, term_unsigned(&env, id), what));
    env_destroy(&env);
}

static term lease_list(ErlNifEnv *env, const uint64_t *leases, size_t len)
{
    term list = TERM_NIL;

    while (len-- > 0)
        list = term_cons(env, term_unsigned(env, leases[len]), list);
    return list;
}

int control_send(struct call *call, term pid, term message)
{
    struct etf_out out;
    ErlNifEnv env;
    int ok;

    if (host.control.out < 0)
        return 1;
    ok = host_prepare(message, call, &out);
    if (ok) {
        env_init(&env, ENV_INDEPENDENT);
        write_term(query_term(&env, "send", 3, pid, message,
                              lease_list(&env, out.leases.items, out.leases.len)));
        env_destroy(&env);
        host.sent++; /* after it is written: a sync that follows comes behind it */
    }
    etf_out_free(&out);
    return ok;
}

/* ---- replies -------------------------------------------------------------------------- */

/* {reply, Id, {value | raise, Term} | badarg, Leases} */
struct control_writer {
    struct call_writer writer;
    uint64_t id;
    unsigned char *frame; /* freed by done */
    size_t room_at, size;
};

/* All of the frame but the term, which room_at leaves space for. */
static void build_frame(struct control_writer *writer, const struct reply *reply)
{
    ErlNifEnv env;
    struct etf_out out;
    size_t tail_size;

    env_init(&env, ENV_INDEPENDENT);
    /* The term's place is held by nil, the last byte of the first three elements. */
    term kind = reply->kind == REPLY_VALUE ? atom_make((unsigned char *)"value", 5, 1)
                                           : atom_make((unsigned char *)"raise", 5, 1);
    term result =
        reply->kind == REPLY_BADARG ? ATOM(badarg) : term_tuple(&env, 2, (term[]){kind, TERM_NIL});
    term leases = lease_list(&env, reply->leases, reply->leases_len);
    term frame = query_term(&env, "reply", 3, term_unsigned(&env, writer->id), result, leases);

    etf_out_init(&out);
    etf_size(leases, ETF_COMPARABLE, &out);
    tail_size = out.size;
    out.size = 0;
    etf_size(frame, ETF_COMPARABLE, &out);
    size_t size = 5 + out.size, extra = reply->kind == REPLY_BADARG ? 0 : reply->size - 1;
    writer->frame = host_realloc(writer->frame, size + extra);
    writer->size = size + extra;
    writer->room_at = size - tail_size - 1;
    writer->frame[4] = ETF_VERSION;
    etf_write(frame, writer->frame + 5);
    if (extra > 0)
        etf_write(leases, writer->frame + writer->size - tail_size);
    etf_out_free(&out);
    env_destroy(&env);
}

static unsigned char *room(struct call_writer *call_writer, const struct reply *reply)
{
    struct control_writer *writer = (struct control_writer *)call_writer;

    /* What a frame's length can say, and the external format's own bound. */
    if (reply->size > UINT32_MAX - 4096)
        return NULL;
    build_frame(writer, reply);
    return writer->frame + writer->room_at;
}

static void done(struct call_writer *call_writer, const struct reply *reply)
{
    struct control_writer *writer = (struct control_writer *)call_writer;

    if (reply->kind == REPLY_BADARG)
        build_frame(writer, reply);
    write_frame(writer->frame, writer->size);
    free(writer->frame);
}

struct call_job {
    struct job job;
    int function;
    uint64_t id;
    const unsigned char *args; /* in frame */
    size_t size;
    unsigned char frame[];
};

static void run_call(struct job *job)
{
    struct call_job *call = (struct call_job *)job;
    struct control_writer writer = {.writer = {.room = room, .done = done, .in_order = 1},
                                    .id = call->id};

    if (host_call(call->function, call->id, call->args, call->size, &writer.writer) < 0)
        host_die("the VM calls function %d with arguments that it does not take", call->function);
    free(job);
}

struct frame_job {
    struct job job;
    size_t size;
    unsigned char frame[];
};

static void run_load(struct job *job)
{
    struct frame_job *frame_job = (struct frame_job *)job;

    load_request(frame_job->frame, frame_job->size);
    free(job);
}

static void run_ring(struct job *job)
{
    struct frame_job *frame_job = (struct frame_job *)job;
    ErlNifEnv env;
    term settings;

    env_init(&env, ENV_CALLBACK);
    if (etf_read(&env, frame_job->frame, frame_job->size, ETF_TRUSTED, &settings) == 0 ||
        !is_kind(settings, BOX_MAP))
        host_die("a malformed ring request");
    ring_door_open(&env, settings);
    env_destroy(&env);
    free(job);
}

static void run_stop(struct job *job)
{
    free(job);
    load_unload();
    _exit(0);
}

/* ---- reading -------------------------------------------------------------------------- */

static void take_leases(struct etf_cursor *cursor)
{
    ErlNifEnv env;
    size_t size;
    const unsigned char *bytes = etf_skip(cursor, &size);
    term list, *id_ref;

    env_init(&env, ENV_INDEPENDENT);
    if (bytes != NULL && etf_read(&env, bytes, size, ETF_TRUSTED, &list) == size) {
        for (; is_list_cell(list); list = cell_of(list)[1]) {
            term pair = cell_of(list)[0];
            if (!is_tuple(pair) || box_size(pair) != 2)
                break;
            id_ref = ((struct box_tuple *)box_of(pair))->elements;
            if (!is_small(id_ref[0]) || !is_kind(id_ref[1], BOX_REF))
                host_die("a lease that is no reference of this node");
            struct box_ref *ref = box_of(id_ref[1]);
            lease_add((uint64_t)small_value(id_ref[0]), ref->words, ref->len);
        }
    }
    env_destroy(&env);
}

static void take_gone(struct etf_cursor *cursor)
{
    ErlNifEnv env;
    size_t size;
    const unsigned char *bytes = etf_skip(cursor, &size);
    term list;

    env_init(&env, ENV_INDEPENDENT);
    if (bytes != NULL && etf_read(&env, bytes, size, ETF_TRUSTED, &list) == size) {
        for (; is_list_cell(list); list = cell_of(list)[1])
            lease_gone((uint64_t)small_value(cell_of(list)[0]));
    }
    env_destroy(&env);
}

static void take_call(const unsigned char *frame, size_t size, struct etf_cursor *cursor)
{
    struct call_job *call = host_malloc(sizeof *call + size);

    call->job.run = run_call;
    call->id = (uint64_t)etf_integer(cursor);
    call->function = (int)etf_integer(cursor);
    memcpy(call->frame, frame, size);
    call->args = call->frame + (cursor->at - frame);
    call->size = (size_t)(cursor->end - cursor->at);
    worker_do(&call->job);
}

static void take_frame_job(void (*run)(struct job *), const unsigned char *frame, size_t size)
{
    struct frame_job *job = host_malloc(sizeof *job + size);

    job->job.run = run;
    job->size = size;
    memcpy(job->frame, frame, size);
    worker_do(&job->job);
}

/* By this thread, whatever the others do. */
static void answer_ping(int64_t number)
{
    ErlNifEnv env;

    env_init(&env, ENV_INDEPENDENT);
    control_tell(&env, query_term(&env, "pong", 1, term_integer(&env, number)));
    env_destroy(&env);
}

static int is_name(const unsigned char *name, size_t size, const char *expected)
{
    return name != NULL && strlen(expected) == size && memcmp(name, expected, size) == 0;
}

/* One frame, without its length. Nothing here may block: the end of the port must be seen. */
static void take_frame(const unsigned char *frame, size_t size)
{
    struct etf_cursor cursor = {frame, frame + size, 0};
    unsigned char buffer[2 * ATOM_CHARS_MAX];
    const unsigned char *name;
    size_t name_size;

    if (etf_u8(&cursor) != ETF_VERSION)
        host_die("a frame of %zu bytes that is no term", size);
    if (cursor.at < cursor.end && (*cursor.at == ETF_SMALL_TUPLE || *cursor.at == ETF_LARGE_TUPLE))
        etf_tuple(&cursor);
    name = etf_atom(&cursor, buffer, &name_size);

    if (is_name(name, name_size, "call")) {
        take_call(frame, size, &cursor);
    } else if (is_name(name, name_size, "answer")) {
        uint64_t id = (uint64_t)etf_integer(&cursor);
        query_answered(id, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "leases")) {
        take_leases(&cursor);
    } else if (is_name(name, name_size, "gone")) {
        take_gone(&cursor);
    } else if (is_name(name, name_size, "cancel")) {
        host_cancel((uint64_t)etf_integer(&cursor));
    } else if (is_name(name, name_size, "down")) {
        monitor_down((uint64_t)etf_integer(&cursor));
    } else if (is_name(name, name_size, "ping")) {
        answer_ping(etf_integer(&cursor));
    } else if (is_name(name, name_size, "grow")) {
        ring_door_grow();
    } else if (is_name(name, name_size, "load")) {
        take_frame_job(run_load, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "ring")) {
        take_frame_job(run_ring, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "node")) {
        name = etf_atom(&cursor, buffer, &name_size);
        int64_t creation = etf_integer(&cursor);
        if (!cursor.bad)
            host_set_node(name, name_size, (uint32_t)creation);
    } else if (is_name(name, name_size, "stop")) {
        take_frame_job(run_stop, frame, 0);
    } else {
        host_die("a frame of unknown kind '%.*s'", (int)name_size,
                 name == NULL ? "" : (char *)name);
    }
    if (cursor.bad)
        host_die("a malformed frame '%.*s' of %zu bytes", (int)name_size, (char *)name, size);
}

/* Returns 0 at the end of the stream. */
static size_t read_some(unsigned char *to, size_t size)
{
    for (;;) {
        ssize_t n = read(host.control.in, to, size);
        if (n >= 0)
            return (size_t)n;
        if (errno != EINTR)
            return 0;
    }
}

void control_read(void)
{
    size_t max = READ_BYTES, have = 0;
    unsigned char *bytes = host_malloc(max);

    for (;;) {
        size_t n = read_some(bytes + have, max - have), pos = 0;

        if (n == 0)
            _exit(0); /* at once, whatever the other threads do */
        have += n;
        while (have - pos >= 4) {
            size_t size = (size_t)bytes[pos] << 24 | (size_t)bytes[pos + 1] << 16 |
                          (size_t)bytes[pos + 2] << 8 | bytes[pos + 3];
            if (size > have - pos - 4) {
                if (size + 4 > max) {
                    max = size + 4;
                    memmove(bytes, bytes + pos, have - pos);
                    have -= pos;
                    pos = 0;
                    bytes = host_realloc(bytes, max);
                }
                break;
            }
            take_frame(bytes + pos + 4, size);
            pos += 4 + size;
        }
        have -= pos;
        memmove(bytes, bytes + pos, have);
        if (have == 0 && max > READ_BYTES) { /* one large frame is not kept for ever */
            max = READ_BYTES;
            bytes = host_realloc(bytes, max);
        }
    }
}
