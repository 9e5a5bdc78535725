/* The control port, see control.h. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "life/call.h"
#include "life/control.h"
#include "life/load.h"
#include "life/monitor.h"
#include "life/port_call.h"
#include "life/ring_door.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/die.h"
#include "memory/vm_clock.h"
#include "port/ask.h"
#include "port/port.h"
#include "term/atom.h"
#include "term/lease.h"
#include "term/map.h"
#include "wire/etf.h"
#include "wire/node.h"
#include "wire/query.h"
#include "wire/tell.h"

void control_hello(void)
{
    ErlNifEnv env;
    term info;

    env_init(&env, ENV_INDEPENDENT);
    info = map_empty(&env);
    info = map_put(&env, info, ATOM_LITERAL("workers"), make_small(worker_count()));
    info = map_put(
        &env, info, ATOM_LITERAL("nif_version"),
        term_tuple(&env, 2,
                   (term[]){make_small(ERL_NIF_MAJOR_VERSION), make_small(ERL_NIF_MINOR_VERSION)}));
    tell(query_term(&env, "hello", 3, make_small(CONTROL_PROTOCOL), make_small(getpid()), info));
    env_destroy(&env);
}

void control_refuse(const char *reason, const char *text)
{
    ErlNifEnv env;
    size_t size;

    env_init(&env, ENV_INDEPENDENT);
    tell(
        query_term(&env, "refused", 3, atom_named(reason), map_empty(&env), term_text(&env, text)));
    while (port_read(&size) != NULL) {
    }
    _exit(0);
}

/* ---- what workers do ------------------------------------------------------------------ */

struct frame_task {
    struct task task;
    size_t size;
    unsigned char frame[];
};

static void run_load(struct task *task)
{
    struct frame_task *frame_task = (struct frame_task *)task;

    load_request(frame_task->frame, frame_task->size);
    free(task);
}

static void run_unload(struct task *task)
{
    struct frame_task *frame_task = (struct frame_task *)task;
    struct etf_cursor cursor = {frame_task->frame, frame_task->frame + frame_task->size, 0};

    load_retire((unsigned)etf_integer(&cursor));
    free(task);
}

static void run_ring(struct task *task)
{
    struct frame_task *frame_task = (struct frame_task *)task;
    ErlNifEnv env;
    term settings;

    env_init(&env, ENV_CALLBACK);
    if (etf_read(&env, frame_task->frame, frame_task->size, ETF_TRUSTED, &settings) == 0 ||
        !is_kind(settings, BOX_MAP))
        host_die("a malformed ring request");
    ring_door_open(&env, settings);
    env_destroy(&env);
    free(task);
}

static void run_stop(struct task *task)
{
    free(task);
    load_unload_all();
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

static void take_frame_task(void (*run)(struct task *), const unsigned char *frame, size_t size)
{
    struct frame_task *task = host_malloc(sizeof *task + size);

    task->task.run = run;
    task->size = size;
    memcpy(task->frame, frame, size);
    worker_do(&task->task);
}

/* By this thread, whatever the others do. */
static void answer_ping(int64_t number)
{
    ErlNifEnv env;

    env_init(&env, ENV_INDEPENDENT);
    tell(query_term(&env, "pong", 1, term_integer(&env, number)));
    env_destroy(&env);
}

/* While the VM corrects its clock; the first came with a library. */
static void take_clock(struct etf_cursor *cursor)
{
    const int64_t offset_ns = etf_integer(cursor);

    if (offset_ns < -VM_CLOCK_OFFSET_MAX || offset_ns > VM_CLOCK_OFFSET_MAX)
        cursor->bad = 1;
    if (!cursor->bad)
        vm_clock_set(offset_ns);
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
        port_call(&cursor);
    } else if (is_name(name, name_size, "answer")) {
        uint64_t id = (uint64_t)etf_integer(&cursor);
        ask_answered(id, cursor.at, (size_t)(cursor.end - cursor.at));
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
    } else if (is_name(name, name_size, "clock")) {
        take_clock(&cursor);
    } else if (is_name(name, name_size, "grow")) {
        ring_door_grow();
    } else if (is_name(name, name_size, "load")) {
        take_frame_task(run_load, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "unload")) {
        take_frame_task(run_unload, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "ring")) {
        take_frame_task(run_ring, cursor.at, (size_t)(cursor.end - cursor.at));
    } else if (is_name(name, name_size, "node")) {
        name = etf_atom(&cursor, buffer, &name_size);
        int64_t creation = etf_integer(&cursor);
        if (!cursor.bad)
            node_set(name, name_size, (uint32_t)creation);
    } else if (is_name(name, name_size, "stop")) {
        take_frame_task(run_stop, frame, 0);
    } else {
        host_die("a frame of unknown kind '%.*s'", (int)name_size,
                 name == NULL ? "" : (char *)name);
    }
    if (cursor.bad)
        host_die("a malformed frame '%.*s' of %zu bytes", (int)name_size, (char *)name, size);
}

void control_read(void)
{
    const unsigned char *frame;
    size_t size;

    while ((frame = port_read(&size)) != NULL)
        take_frame(frame, size);
    _exit(0); /* at once, whatever the other threads do */
}
