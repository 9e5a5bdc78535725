/* The functions of the API on I/O vectors and I/O queues.
 *
 * An element of either keeps what its bytes lie in, by the count of struct shared, or its bytes were
 * copied to where they can be kept. Only an element of a vector that belongs to an environment may
 * have nothing to keep: that environment does, and a queue that takes the element copies it. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc.h"
#include "term/binary.h"

/* In `flags` of a vector: the library's own struct, which is not to be freed. */
#define OWN_STRUCT 1

static void *at(const unsigned char *bytes)
{
    return (void *)(uintptr_t)bytes;
}

/* ---- vectors --------------------------------------------------------------------------- */

/* Counts a list's elements up to the most that are wanted, but one at least, as the VM; those with
 * bytes, and those bytes. Returns 0 when one of them is no binary, or the list is none. */
static int examine(term list, size_t most, size_t *elements, size_t *filled, size_t *size,
                   term *tail)
{
    *elements = *filled = *size = 0;
    while (is_list_cell(list) && (*elements == 0 || *elements < most)) {
        const struct box_binary *binary = binary_whole(cell_of(list)[0]);
        if (binary == NULL)
            return 0;
        ++*elements;
        *filled += binary->size > 0;
        *size += binary->size;
        list = cell_of(list)[1];
    }
    *tail = list;
    return (list == TERM_NIL || is_list_cell(list)) && *filled <= INT_MAX;
}

/* With memory for `len` elements: in the library's struct, in the environment, or, without one, in
 * memory that enif_free_iovec frees. */
static ErlNifIOVec *vector(ErlNifEnv *env, ErlNifIOVec *given, size_t len)
{
    const size_t bytes = sizeof(ErlNifIOVec) + len * (sizeof(SysIOVec) + sizeof(void *));
    ErlNifIOVec *made;

    if (given != NULL && len < ERL_NIF_IOVEC_SIZE) {
        given->iov = given->small_iov;
        given->ref_bins = given->small_ref_bin;
        given->flags = OWN_STRUCT;
        return given;
    }
    made = env != NULL ? env_alloc(env, bytes) : host_malloc(bytes); /* else the library's */
    made->iov = (SysIOVec *)(made + 1);
    made->ref_bins = (void **)(made->iov + len);
    made->flags = 0;
    return made;
}

int enif_inspect_iovec(ErlNifEnv *env, size_t max_elements, ERL_NIF_TERM list, ERL_NIF_TERM *tail,
                       ErlNifIOVec **iovec)
{
    size_t elements, filled, size, at_element = 0;
    ErlNifIOVec *made;

    if (!examine(list, max_elements, &elements, &filled, &size, tail))
        return 0;
    made = vector(env, *iovec, filled);
    made->iovcnt = (int)filled;
    made->size = size;
    for (; elements > 0; elements--, list = cell_of(list)[1]) {
        struct box_binary *binary = binary_whole(cell_of(list)[0]);
        struct shared *keep = binary->owner;
        const unsigned char *data = binary->data;

        if (binary->size == 0)
            continue;
        if (env != NULL) {
            binary_settle(env, binary);
            data = binary->data;
            keep = binary->owner;
        } else if (keep == NULL || binary->header == box_header(BOX_BINARY, BINARY_LENT)) {
            struct binary *copy = binary_new(binary->size);
            memcpy(copy->data, data, binary->size);
            data = copy->data;
            keep = &copy->shared; /* counted for the vector already */
        } else {
            shared_keep(keep);
        }
        made->iov[at_element] = (SysIOVec){at(data), binary->size};
        made->ref_bins[at_element++] = keep;
    }
    *iovec = made;
    return 1;
}

void enif_free_iovec(ErlNifIOVec *iovec)
{
    for (int i = 0; i < iovec->iovcnt; i++)
        shared_drop(iovec->ref_bins[i]);
    if ((iovec->flags & OWN_STRUCT) == 0)
        free(iovec);
}

/* ---- queues ---------------------------------------------------------------------------- */

struct erts_io_queue {
    SysIOVec *vector;      /* of `room` elements; those from head to tail are in the queue */
    struct shared **keeps; /* likewise */
    size_t head, tail, room, size;
};

ErlNifIOQueue *enif_ioq_create(ErlNifIOQueueOpts options)
{
    return options == ERL_NIF_IOQ_NORMAL ? host_calloc(sizeof(ErlNifIOQueue)) : NULL;
}

void enif_ioq_destroy(ErlNifIOQueue *queue)
{
    for (size_t i = queue->head; i < queue->tail; i++)
        shared_drop(queue->keeps[i]);
    free(queue->vector);
    free(queue->keeps);
    free(queue);
}

/* Room for one more: what was taken out in front is room again when it is most of the queue. */
static void make_room(ErlNifIOQueue *queue)
{
    const size_t len = queue->tail - queue->head;

    if (queue->tail < queue->room)
        return;
    if (queue->room == 0 || queue->head < queue->room / 2) {
        queue->room = queue->room == 0 ? 16 : 2 * queue->room;
        queue->vector = host_realloc(queue->vector, queue->room * sizeof *queue->vector);
        queue->keeps = host_realloc(queue->keeps, queue->room * sizeof *queue->keeps);
    }
    if (queue->head > 0) {
        memmove(queue->vector, queue->vector + queue->head, len * sizeof *queue->vector);
        memmove(queue->keeps, queue->keeps + queue->head, len * sizeof *queue->keeps);
        queue->head = 0;
        queue->tail = len;
    }
}

static void put(ErlNifIOQueue *queue, const unsigned char *data, size_t size, struct shared *keep)
{
    if (keep == NULL) {
        struct binary *copy = binary_new(size);
        memcpy(copy->data, data, size);
        data = copy->data;
        keep = &copy->shared; /* counted for the queue already */
    } else {
        shared_keep(keep);
    }
    make_room(queue);
    queue->vector[queue->tail] = (SysIOVec){at(data), size};
    queue->keeps[queue->tail++] = keep;
    queue->size += size;
}

/* The vector is as it was: the VM moves its first element by what was skipped. */
int enif_ioq_enqv(ErlNifIOQueue *queue, ErlNifIOVec *iovec, size_t skip)
{
    if (skip > iovec->size)
        return 0;
    for (int i = 0; i < iovec->iovcnt; i++) {
        const unsigned char *data = (const unsigned char *)iovec->iov[i].iov_base;
        const size_t size = iovec->iov[i].iov_len;

        if (size > skip)
            put(queue, data + skip, size - skip, iovec->ref_bins[i]);
        skip -= size < skip ? size : skip;
    }
    return 1;
}

int enif_ioq_enq_binary(ErlNifIOQueue *queue, ErlNifBinary *bin, size_t skip)
{
    const int ok = skip <= bin->size;

    if (skip < bin->size)
        put(queue, bin->data + skip, bin->size - skip, bin->ref_bin);
    enif_release_binary(bin);
    return ok;
}

size_t enif_ioq_size(ErlNifIOQueue *queue)
{
    return queue->size;
}

int enif_ioq_deq(ErlNifIOQueue *queue, size_t count, size_t *size)
{
    if (count > queue->size)
        return 0;
    queue->size -= count;
    while (count > 0) {
        SysIOVec *first = &queue->vector[queue->head];

        if (first->iov_len > count) {
            first->iov_base = (char *)first->iov_base + count;
            first->iov_len -= count;
            break;
        }
        count -= first->iov_len;
        shared_drop(queue->keeps[queue->head++]);
    }
    if (size != NULL)
        *size = queue->size;
    return 1;
}

SysIOVec *enif_ioq_peek(ErlNifIOQueue *queue, int *len)
{
    *len = (int)(queue->tail - queue->head);
    return *len > 0 ? queue->vector + queue->head : NULL;
}

int enif_ioq_peek_head(ErlNifEnv *env, ErlNifIOQueue *queue, size_t *size, ERL_NIF_TERM *made)
{
    const SysIOVec *first;
    const unsigned char *data;

    if (queue->size == 0)
        return 0;
    first = &queue->vector[queue->head];
    data = (const unsigned char *)first->iov_base;
    if (size != NULL)
        *size = first->iov_len;
    *made = first->iov_len <= BINARY_SHARE_BYTES
                ? term_small_binary(env, data, first->iov_len, 0)
                : term_binary(env, data, first->iov_len, 0, queue->keeps[queue->head]);
    return 1;
}
