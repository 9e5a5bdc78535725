/* Calls that come by the control port, see port_call.h. */
#include <stdlib.h>
#include <string.h>

#include "life/call.h"
#include "life/port_call.h"
#include "life/worker.h"
#include "memory/alloc.h"
#include "memory/die.h"
#include "port/port.h"
#include "term/atom.h"
#include "wire/prepare.h"
#include "wire/query.h"

/* ---- the reply ------------------------------------------------------------------------ */

/* What a frame's length can say, and the external format's own bound. */
#define FRAME_TERM_BYTES (UINT32_MAX - 4096)

/* {reply, Id, {value | raise, Term} | badarg, Leases} */
struct port_writer {
    struct call_writer writer;
    uint64_t id;
    unsigned char *frame; /* freed by done */
    size_t room_at, size;
};

/* All of the frame but the term, which room_at leaves space for. */
static void build_frame(struct port_writer *writer, const struct reply *reply)
{
    ErlNifEnv env;
    struct etf_out out;
    size_t tail_size, head = PORT_LENGTH_BYTES + 1;

    env_init(&env, ENV_INDEPENDENT);
    /* The term's place is held by nil, the last byte of the first three elements. */
    term kind = reply->kind == REPLY_VALUE ? ATOM_LITERAL("value") : ATOM_LITERAL("raise");
    term result =
        reply->kind == REPLY_BADARG ? ATOM(badarg) : term_tuple(&env, 2, (term[]){kind, TERM_NIL});
    term leases = prepare_lease_list(&env, reply->leases, reply->leases_len);
    term frame = query_term(&env, "reply", 3, term_unsigned(&env, writer->id), result, leases);

    etf_out_init(&out);
    etf_size(leases, ETF_COMPARABLE, &out);
    tail_size = out.size;
    out.size = 0;
    etf_size(frame, ETF_COMPARABLE, &out);
    size_t size = head + out.size, extra = reply->kind == REPLY_BADARG ? 0 : reply->size - 1;
    writer->frame = host_realloc(writer->frame, size + extra);
    writer->size = size + extra;
    writer->room_at = size - tail_size - 1;
    writer->frame[head - 1] = ETF_VERSION;
    etf_write(frame, writer->frame + head);
    if (extra > 0)
        etf_write(leases, writer->frame + writer->size - tail_size);
    etf_out_free(&out);
    env_destroy(&env);
}

static unsigned char *room(struct call_writer *call_writer, const struct reply *reply)
{
    struct port_writer *writer = (struct port_writer *)call_writer;

    if (reply->size > FRAME_TERM_BYTES)
        return NULL;
    build_frame(writer, reply);
    return writer->frame + writer->room_at;
}

static void done(struct call_writer *call_writer, const struct reply *reply)
{
    struct port_writer *writer = (struct port_writer *)call_writer;

    if (reply->kind == REPLY_BADARG)
        build_frame(writer, reply);
    port_write(writer->frame, writer->size);
    free(writer->frame);
}

/* ---- the call ------------------------------------------------------------------------- */

struct call_task {
    struct task task;
    int function;
    uint64_t id;
    size_t size;
    unsigned char args[];
};

static void run_call(struct task *task)
{
    struct call_task *call = (struct call_task *)task;
    struct port_writer writer = {
        .writer = {.most = FRAME_TERM_BYTES, .room = room, .done = done, .in_order = 1},
        .id = call->id};

    if (host_call(call->function, call->id, call->args, call->size, &writer.writer) < 0)
        host_die("the VM calls function %d with arguments that it does not take", call->function);
    free(task);
}

void port_call(struct etf_cursor *cursor)
{
    uint64_t id = (uint64_t)etf_integer(cursor);
    int function = (int)etf_integer(cursor);
    struct call_task *call = host_malloc(sizeof *call + etf_left(cursor));

    *call = (struct call_task){
        .task.run = run_call, .function = function, .id = id, .size = etf_left(cursor)};
    memcpy(call->args, cursor->at, call->size);
    worker_do(&call->task);
}
