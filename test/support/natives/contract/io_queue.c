/* I/O vectors and I/O queues. */
#include "contract.h"

/* How a vector is made: in the environment, or in none; in the library's struct, or not. */
enum how { IN_ENV, IN_ENV_STRUCT, NO_ENV, NO_ENV_STRUCT, OF_ANOTHER_ENV, HOWS };

struct made {
    ErlNifIOVec own, *vector;
    term tail;
    int how;
};

/* "Fills iovec with the list of binaries provided in iovec_term. The number of elements handled in
 * the call is limited to max_elements, and tail is set to the remainder of the list ... If no
 * environment is given the iovec owns the data in the vector and it has to be explicitly freed using
 * enif_free_iovec. Returns true on success, or false if iovec_term not an iovec." */
static int make(ErlNifEnv *env, struct made *made, int how, size_t most, term list)
{
    ErlNifEnv *other = how == OF_ANOTHER_ENV ? enif_alloc_env() : NULL;
    term tail = 0;
    int ok;

    made->how = how;
    made->vector = how == IN_ENV_STRUCT || how == NO_ENV_STRUCT ? &made->own : NULL;
    if (other != NULL)
        list = enif_make_copy(other, list);
    ok = enif_inspect_iovec(how == IN_ENV || how == IN_ENV_STRUCT ? env : NULL, most, list, &tail,
                            &made->vector);
    made->tail = ok ? enif_make_copy(env, tail) : 0;
    if (other != NULL)
        enif_free_env(other); /* the vector has what it needs */
    return ok;
}

static void done(struct made *made)
{
    if (made->how != IN_ENV && made->how != IN_ENV_STRUCT)
        enif_free_iovec(made->vector);
}

static term contents(ErlNifEnv *env, const SysIOVec *vector, int len)
{
    term list = enif_make_list(env, 0);

    for (int i = len - 1; i >= 0; i--)
        list = enif_make_list_cell(env, bytes(env, vector[i].iov_base, vector[i].iov_len), list);
    return list;
}

/* IN: {MaxElements, Term}. */
CASE(iovec)
{
    struct results r = {.len = 0};
    const term *in;
    unsigned long most;
    struct made made;
    int arity;

    if (!enif_get_tuple(env, IN, &arity, &in) || arity != 2 || !enif_get_ulong(env, in[0], &most))
        return enif_make_badarg(env);
    for (int how = 0; how < HOWS; how++) {
        if (!make(env, &made, how, most, in[1])) {
            add_int(env, &r, 0);
            continue;
        }
        add_int(env, &r, made.vector->iovcnt);
        add_int(env, &r, (long)made.vector->size);
        add(&r, contents(env, made.vector->iov, made.vector->iovcnt));
        add(&r, made.tail);
        add_int(env, &r, made.vector == &made.own);
        done(&made);
    }
    return all(env, &r);
}

/* One step of a queue's life; what it gave. */
static term step(ErlNifEnv *env, ErlNifIOQueue *queue, const term *in, int arity)
{
    const term nothing = enif_make_list(env, 0);
    unsigned long how, skip, most;
    size_t size = 4711;
    ErlNifBinary bin;
    term head = nothing;
    int len = -2;

    /* {Bytes, Skip, Owned}: "Enqueue the bin into q skipping the first skip bytes. Returns true on
     * success, or false if skip is greater than the size of bin. Any ownership of the binary data is
     * transferred to the queue". */
    if (arity == 3 && enif_inspect_binary(env, in[0], &bin) && enif_get_ulong(env, in[1], &skip) &&
        enif_get_ulong(env, in[2], &how)) {
        if (how == 1) {
            const ErlNifBinary from = bin;
            enif_alloc_binary(from.size, &bin);
            memcpy(bin.data, from.data, from.size);
        }
        return enif_make_int(env, enif_ioq_enq_binary(queue, &bin, skip) != 0);
    }
    /* {List, Skip, MaxElements, How}: "Enqueue the iovec into q skipping the first skip bytes." */
    if (arity == 4 && enif_get_ulong(env, in[1], &skip) && enif_get_ulong(env, in[2], &most) &&
        enif_get_ulong(env, in[3], &how)) {
        struct made made;
        if (!make(env, &made, (int)how % HOWS, most, in[0]))
            return nothing;
        const int ok = enif_ioq_enqv(queue, made.vector, skip) != 0;
        done(&made);
        return enif_make_tuple2(env, enif_make_int(env, ok), made.tail);
    }
    /* {Count}: "Dequeue count bytes from the I/O queue. If size is not NULL, the new size of the
     * queue is placed there. Returns true on success, or false if the I/O does not contain count
     * bytes. On failure the queue is left un-altered." */
    if (arity == 1 && enif_get_ulong(env, in[0], &most)) {
        const int ok = enif_ioq_deq(queue, most, &size) != 0;
        return enif_make_tuple3(env, enif_make_int(env, ok), enif_make_ulong(env, size),
                                enif_make_ulong(env, enif_ioq_size(queue)));
    }
    /* {}: "Get the I/O queue as a pointer to an array of SysIOVecs"; "Get the head of the I/O queue
     * as a binary term. If size is not NULL, the size of the head is placed there. Returns true on
     * success, or false if the queue is empty." */
    const SysIOVec *vector = enif_ioq_peek(queue, &len);
    const int ok = enif_ioq_peek_head(env, queue, &size, &head) != 0;
    return enif_make_tuple6(env, enif_make_int(env, len), enif_make_int(env, vector == NULL),
                            contents(env, vector, len), enif_make_int(env, ok),
                            enif_make_ulong(env, size), head);
}

/* IN: a list of steps. The result has what each gave, and what the queue held in the end. */
CASE(io_queue)
{
    struct results r = {.len = 0};
    ErlNifIOQueue *queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL);
    term head, tail = IN;
    const term *in;
    int arity;

    while (r.len < 200 && enif_get_list_cell(env, tail, &head, &tail) &&
           enif_get_tuple(env, head, &arity, &in))
        add(&r, step(env, queue, in, arity));
    add(&r, step(env, queue, NULL, 0));
    add_int(env, &r, (long)enif_ioq_size(queue));
    enif_ioq_destroy(queue);
    return all(env, &r);
}

/* "Currently only ERL_NIF_IOQ_NORMAL is a valid option." */
CASE(io_queue_options)
{
    return enif_make_int(env, enif_ioq_create((ErlNifIOQueueOpts)2) == NULL);
}

/* What the head gave lives on with its environment, when the queue is gone. IN: a binary. */
CASE(io_queue_head_outlives)
{
    ErlNifIOQueue *queue = enif_ioq_create(ERL_NIF_IOQ_NORMAL);
    ErlNifBinary bin;
    term head, part;

    if (!enif_inspect_binary(env, IN, &bin) || bin.size == 0 ||
        !enif_ioq_enq_binary(queue, &bin, 0) || !enif_ioq_peek_head(env, queue, NULL, &head) ||
        !enif_ioq_deq(queue, 1, NULL))
        return enif_make_badarg(env);
    part = enif_ioq_peek_head(env, queue, NULL, &part) ? part : head;
    enif_ioq_destroy(queue);
    return enif_make_tuple2(env, head, part);
}
